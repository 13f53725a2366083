import { unwrap } from "@bodega/client";
import { api } from "./api";

/** The country codes of ISO 3166. */
const CODES =
  "AD AE AF AG AI AL AM AO AR AS AT AU AW AX AZ BA BB BD BE BF BG BH BI BJ BL BM BN BO BQ BR BS BT BW BY BZ CA CC CD CF CG CH CI CK CL CM CN CO CR CU CV CW CX CY CZ DE DJ DK DM DO DZ EC EE EG EH ER ES ET FI FJ FK FM FO FR GA GB GD GE GF GG GH GI GL GM GN GP GQ GR GT GU GW GY HK HN HR HT HU ID IE IL IM IN IO IQ IR IS IT JE JM JO JP KE KG KH KI KM KN KP KR KW KY KZ LA LB LC LI LK LR LS LT LU LV LY MA MC MD ME MF MG MH MK ML MM MN MO MP MQ MR MS MT MU MV MW MX MY MZ NA NC NE NF NG NI NL NO NP NR NU NZ OM PA PE PF PG PH PK PL PM PN PR PS PT PW PY QA RE RO RS RU RW SA SB SC SD SE SG SH SI SJ SK SL SM SN SO SR SS ST SV SX SY SZ TC TD TF TG TH TJ TK TL TM TN TO TR TT TV TW TZ UA UG UM US UY UZ VA VC VE VG VI VN VU WF WS YE YT ZA ZM ZW".split(
    " ",
  );

/** The countries in which each address has a postal code, as in `FORMATS` of shared/key-schema. */
const WITH_POSTAL_CODE =
  "AS AT AU AX BE BL BR CA CH CN CZ DE DK EE ES FI FK FM FR GB GF GG GL GP GR GS GU HU IM IN IO IT JE JP KR LI LT LU LV MF MH MP MQ MX MY NC NL NO NZ PF PL PM PN PR PT PW RE RO RU SE SG SH SJ SK SM TC TR TW UA US VI WF YT ZA".split(
    " ",
  );

export const needsPostalCode = (country: string): boolean => WITH_POSTAL_CODE.includes(country);

const names = new Intl.DisplayNames(undefined, { type: "region" });

export const countryName = (code: string): string => names.of(code) ?? code;

export interface Country {
  code: string;
  name: string;
  /** The only regions to which the shop ships. */
  regions?: string[];
}

const byName = (countries: Country[]): Country[] => countries.sort((a, b) => a.name.localeCompare(b.name));

export const allCountries = byName(CODES.map((code) => ({ code, name: countryName(code) })));

let known: Promise<Country[]> | undefined;

/** Returns the countries to which the shop ships, or all countries if the shop does not say. */
export function countries(): Promise<Country[]> {
  known ??= shippedTo().catch(() => {
    known = undefined;
    return [];
  });
  return known.then((found) => (found.length > 0 ? found : allCountries));
}

async function shippedTo(): Promise<Country[]> {
  const { items } = unwrap(await api.GET("/v1/shipping/countries"));
  return byName(
    items.map(({ country, regions }) => ({ code: country, name: countryName(country), ...(regions ? { regions } : {}) })),
  );
}

/** Returns the first of the countries that fits the browser's languages, otherwise the first of all. */
export function guessCountry(countries: readonly Country[]): string {
  const regions = navigator.languages.map((language) => new Intl.Locale(language).maximize().region);
  const code = regions.find((region) => countries.some(({ code }) => code === region));
  return code ?? countries[0]?.code ?? "";
}
