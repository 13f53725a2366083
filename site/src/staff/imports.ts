import { unwrap } from "@bodega/client";
import { api, type Schemas } from "./api";
import { amountOf } from "./money";
import { categoryOf } from "./products";

/** A line of the file: the product for the API, or why the file's line cannot become one. */
export type Source = { line: number; json: string } | { line: number; problem: string };

export interface Report {
  line: number;
  id: string;
  status: Schemas["ImportedLine"]["status"];
  text: string;
}

const MAX_LINES = 1000;
const MAX_BYTES = 1_900_000;

export function sources(name: string, text: string): Source[] {
  const content = text.replace(/^\uFEFF/, "");
  return name.toLowerCase().endsWith(".csv") ? fromCsv(content) : fromJson(content);
}

function fromJson(text: string): Source[] {
  return text
    .split("\n")
    .map((json, i) => ({ line: i + 1, json: json.trim() }))
    .filter(({ json }) => json);
}

function fromCsv(text: string): Source[] {
  const [head, ...rows] = rowsOf(text);
  const names = head?.cells.map((name) => name.trim().toLowerCase()) ?? [];
  return rows.map(({ line, cells }) => {
    try {
      const given = Object.fromEntries(names.map((name, i) => [name, cells[i]?.trim() ?? ""]));
      return { line, json: JSON.stringify(productOf(given)) };
    } catch (error) {
      return { line, problem: (error as Error).message };
    }
  });
}

/** Columns that are empty are left out, so that the API names what is missing. */
function productOf(given: Record<string, string>): object {
  const { price, currency = "", category_path, weight_grams, stock, shippable, ...texts } = given;
  const filled = Object.fromEntries(Object.entries(texts).filter(([, text]) => text));
  return {
    ...filled,
    ...(category_path ? { category_path: categoryOf(category_path) } : {}),
    ...(price ? { price: amountOf(price, currency.toUpperCase()) } : {}),
    ...(weight_grams ? { weight_grams: Number(weight_grams) } : {}),
    ...(stock ? { stock: Number(stock) } : {}),
    ...(shippable ? { shippable: /^(true|yes|1)$/i.test(shippable) } : {}),
  };
}

interface Row {
  line: number;
  cells: string[];
}

/** Splits CSV (RFC 4180) with commas or semicolons. A quoted cell may have line breaks. */
function rowsOf(text: string): Row[] {
  const first = text.slice(0, text.search(/\r?\n|$/));
  const comma = first.split(";").length > first.split(",").length ? ";" : ",";
  const rows: Row[] = [];
  let [cells, cell, line, start, quoted] = [[] as string[], "", 1, 1, false];
  const end = () => {
    cells.push(cell);
    if (cells.some((text) => text.trim())) rows.push({ line: start, cells });
    [cells, cell, start] = [[], "", line];
  };
  for (let i = 0; i < text.length; i++) {
    const character = text[i]!;
    if (character === "\n") line++;
    if (quoted) {
      if (character !== '"') cell += character;
      else if (text[i + 1] === '"') cell += text[++i];
      else quoted = false;
    } else if (character === '"') quoted = true;
    else if (character === comma) [cell] = ["", cells.push(cell)];
    else if (character === "\n") end();
    else if (character !== "\r") cell += character;
  }
  end();
  return rows;
}

/** Sends the lines in parts that the API takes, and reports each line of the file. */
export async function* send(lines: readonly Source[]): AsyncGenerator<Report[]> {
  yield lines.flatMap((source) =>
    "problem" in source ? [{ line: source.line, id: "", status: "refused" as const, text: source.problem }] : [],
  );
  const good = lines.filter((source) => "json" in source);
  for (let i = 0; i < good.length; ) {
    let bytes = 0;
    const from = i;
    do bytes += 3 * (good[i++]?.json.length ?? 0);
    while (i < good.length && i - from < MAX_LINES && bytes + 3 * good[i]!.json.length < MAX_BYTES);
    const part = good.slice(from, i);
    const body = part.map(({ json }) => json).join("\n");
    const headers = { "content-type": "application/x-ndjson" };
    const { results } = unwrap(await api.POST("/v1/products/import", { body, headers, bodySerializer: (text) => text }));
    yield results.map(({ line, id, status, code, errors }) => ({
      line: part[line - 1]?.line ?? line,
      id: id ?? "",
      status,
      text: errors?.map(({ pointer, detail }) => `${pointer.slice(1)}: ${detail}`).join("; ") || (code ?? ""),
    }));
  }
}
