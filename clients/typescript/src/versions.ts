import { isProblem, type Problem, type Result, unwrap } from "./problems.js";

/** What a read passes on to its request. */
export interface ReadInit {
  /** The browser's cache could return an older version, whose change would be refused. */
  cache: "no-store";
  headers: { "If-None-Match"?: string };
}

/** The result of a change. After a conflict, read the resource again and show what has changed. */
export type Change<T> = { conflict: false; data: T } | { conflict: true; problem: Problem<"version_mismatch"> };

export interface Versioned<T> {
  /** Reads the resource. An unchanged resource is not transferred again (304). */
  read(): Promise<T>;
  /** Changes the version that was read or written last. */
  change<W>(write: (header: { "If-Match": string }) => Promise<Result<W>>): Promise<Change<W>>;
}

/** Remembers the ETag of a resource, so that a change applies only to the version that was seen. */
export function versioned<T>(read: (init: ReadInit) => Promise<Result<T>>): Versioned<T> {
  let tag: string | null = null;
  let seen: { data: T; tag: string } | undefined;
  return {
    async read() {
      const result = await read({ cache: "no-store", headers: seen ? { "If-None-Match": seen.tag } : {} });
      if (result.response.status === 304 && seen) {
        tag = seen.tag;
        return seen.data;
      }
      const data = unwrap(result);
      tag = result.response.headers.get("etag");
      seen = tag === null ? undefined : { data, tag };
      return data;
    },
    async change(write) {
      if (tag === null) throw new Error("read the resource before a change");
      const result = await write({ "If-Match": tag });
      if (isProblem(result.error, "version_mismatch")) return { conflict: true, problem: result.error };
      const data = unwrap(result);
      tag = result.response.headers.get("etag");
      return { conflict: false, data };
    },
  };
}
