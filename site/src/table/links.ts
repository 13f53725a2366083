// The addresses of the explorer's pages.

const segment = encodeURIComponent;

export const partitionHref = (key: string, sortKey?: string): string =>
  `/table/p/${segment(key)}${sortKey === undefined ? "" : `?item=${segment(sortKey)}`}`;

/** A key has no space, because spaces are escaped. So a space can separate the keys of an entry. */
export const entryHref = (index: string, key: string, item?: { PK: string; SK: string }): string =>
  `/table/index/${index}/${segment(key)}${item ? `?item=${segment(`${item.PK} ${item.SK}`)}` : ""}`;

export const patternHref = (id: string): string => `/table/patterns/${segment(id)}`;
export const routeHref = (route: string): string => `/table/routes/${route.replace(" ", "").split("/").map(segment).join("/")}`;
