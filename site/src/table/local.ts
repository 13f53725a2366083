// The routes of the local system that the explorer reads.
import { localToken } from "@bodega/client";
import type { Item } from "./keys.js";

export interface Index {
  name: string;
  partition_key: string;
  sort_key: string;
  projection: "ALL" | "KEYS_ONLY" | "INCLUDE";
  attributes: string[];
}

export interface Pattern {
  id: string;
  purpose: string;
  operation: string;
  /** The name of an index, or null or `table` for the table. */
  index: string | null;
  key: string;
  result: string;
  /** `eventual`, `strong` or `write`. */
  consistency: string;
  consistency_reason?: string | null;
  caller: string;
  routes: string[];
}

export interface Route {
  route: string;
  function: string;
  patterns: string[];
  uses?: Record<string, number>;
  later?: Record<string, Record<string, number>>;
}

export interface Cost {
  pattern: string;
  on: string;
  requests: number;
  half_read_units: number;
  write_units: Record<string, number>;
  items: number;
  bytes: number;
}

export interface Model {
  name: string;
  partition_key: string;
  sort_key: string;
  ttl: string;
  writable: boolean;
  indexes: Index[];
  areas: { name: string; patterns: Pattern[] }[];
  routes: Route[];
  costs: Cost[];
  prices: { read_unit: number | string; write_unit: number | string; region: string };
}

export interface Page<T> {
  items: T[];
  next_cursor: string | null;
}

export interface Partition {
  key: string;
  items: number;
  entities: Record<string, number>;
  bytes: number;
}

export interface Capacity {
  CapacityUnits?: number;
  ReadCapacityUnits?: number;
  WriteCapacityUnits?: number;
}

export interface Answer {
  status: number;
  micros: number;
  response: {
    Item?: Item;
    Items?: Item[];
    Responses?: Record<string, Item[]>;
    LastEvaluatedKey?: Item;
    ConsumedCapacity?: Capacity | Capacity[];
    __type?: string;
    message?: string;
    Message?: string;
  };
}

export interface Call {
  seq: number;
  at: string;
  request: string | null;
  route: string | null;
  /** Null for a caller that is no function. */
  function: string | null;
  operation: string;
  index: string | null;
  pattern: string | null;
  patterns: string[];
  body: unknown;
  /** Null if the caller got no answer. */
  status: number | null;
  error: string | null;
  message?: string | null;
  consumed: { on: string; read: number; write: number }[];
  items: { PK: string; SK: string; entity: string | null; change: "read" | "written" | "deleted" | "checked" }[];
  item_count?: number;
  micros: number;
}

export interface Hot {
  key: string;
  index: string | null;
  reads: number;
  writes: number;
  read_units: number;
  write_units: number;
  throttled: number;
}

export interface Sink {
  name: string;
  /** A mapping invokes a function. A sink is what the function writes to. */
  kind?: "mapping" | "sink";
  event?: string;
  verdict: "filtered" | "waiting" | "delivered" | "retrying" | "discarded";
  attempts?: number;
  error?: string | null;
}

export interface StreamRecord {
  seq: number;
  at: string;
  sequence_number: string;
  event: "INSERT" | "MODIFY" | "REMOVE";
  PK: string;
  SK: string;
  entity: string | null;
  ttl: boolean;
  changed: string[];
  old: Item | null;
  new: Item | null;
  /** The id of the request that wrote the item. */
  request?: string | null;
  sinks: Sink[];
}

export class LocalError extends Error {
  constructor(
    readonly status: number,
    message: string,
  ) {
    super(message);
  }
}

export async function ask<T>(path: string, init?: RequestInit): Promise<T> {
  const response = await fetch(path, init);
  const text = await response.text();
  let body: unknown;
  try {
    body = text ? JSON.parse(text) : undefined;
  } catch {
    body = undefined;
  }
  if (!response.ok || (text && body === undefined)) {
    const message = (body as { message?: string } | undefined)?.message;
    throw new LocalError(response.status, message ?? `the local system answered with status ${response.status}`);
  }
  return body as T;
}

export const post = <T>(path: string, body?: unknown): Promise<T> =>
  ask(path, {
    method: "POST",
    ...(body === undefined ? {} : { headers: { "content-type": "application/json" }, body: JSON.stringify(body) }),
  });

export function query(parameters: Record<string, string | null | undefined>): string {
  const given = Object.entries(parameters).filter((entry): entry is [string, string] => !!entry[1]);
  return given.length > 0 ? `?${new URLSearchParams(given)}` : "";
}

export const run = (operation: string, request: unknown): Promise<Answer> =>
  post("/_local/table/requests", { operation, request });

export const partitions = (
  parameters: { index?: string | undefined; prefix?: string | undefined; cursor?: string | undefined },
  signal?: AbortSignal,
): Promise<Page<Partition>> => ask(`/_local/table/partitions${query(parameters)}`, signal ? { signal } : {});

export const token = (sub: string, isStaff: boolean): Promise<string> =>
  localToken("", { sub, ...(isStaff ? { groups: ["staff"] } : {}) })();

/** Returns all items of an answer. */
export const itemsOf = ({ response }: Answer): Item[] =>
  response.Items ?? (response.Item ? [response.Item] : Object.values(response.Responses ?? {}).flat());

export function unitsOf({ response }: Answer): number {
  const all = response.ConsumedCapacity;
  const list = Array.isArray(all) ? all : all ? [all] : [];
  return list.reduce((sum, { CapacityUnits = 0 }) => sum + CapacityUnits, 0);
}
