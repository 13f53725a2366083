import type { Schemas } from "./api";
import { countryName } from "./countries";

export type Address = Schemas["PostalAddress"];

/** The form chooses the country, when it knows where the shop ships to. */
export const newAddress = (name = ""): Address => ({
  name,
  line1: "",
  line2: "",
  city: "",
  region: "",
  postal_code: "",
  country: "",
  phone: "",
});

/** Returns the address without the fields that the customer left empty. */
export function filled(address: Address): Address {
  const { name, line1, city, country } = address;
  const optional = (["line2", "region", "postal_code", "phone"] as const)
    .map((field) => [field, address[field]?.trim()] as const)
    .filter(([, value]) => value);
  return { name: name.trim(), line1: line1.trim(), city: city.trim(), country, ...Object.fromEntries(optional) };
}

export function addressLines(address: Schemas["OrderAddress"]): string[] {
  const country = countryName(address.country);
  // After an erasure, an order's address has only the destination.
  if (!("line1" in address)) return [address.city, country];
  const { name, line1, line2, postal_code, city, region } = address;
  const place = [postal_code, city].filter(Boolean).join(" ");
  return [name, line1, line2, [place, region].filter(Boolean).join(", "), country].filter((line) => !!line) as string[];
}
