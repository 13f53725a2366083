/** Returns a category's form in a path of the API: `TEA & COFFEE` becomes `TEA_20_26_20COFFEE`. */
export function categoryId(names: readonly string[]): string {
  return names.map(encodeName).join("~");
}

function encodeName(name: string): string {
  return [...new TextEncoder().encode(name)].map(encodeByte).join("");
}

function encodeByte(byte: number): string {
  const character = String.fromCharCode(byte);
  if (/[A-Za-z0-9-]/.test(character)) return character;
  return `_${byte.toString(16).toUpperCase().padStart(2, "0")}`;
}

export function categoryNames(id: string): string[] {
  return id.split("~").map((name) => {
    try {
      return decodeURIComponent(name.replaceAll("_", "%"));
    } catch {
      return name;
    }
  });
}

export const categoryHref = (names: readonly string[]): string => `/c/${categoryId(names)}`;
