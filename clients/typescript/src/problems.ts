import type { components } from "./schema.js";

export type Code = components["schemas"]["Problem"]["code"];

/** An error of the API (RFC 9457). `switch (problem.code)` narrows it. */
export type Problem<C extends Code = Code> = {
  [K in C]: Omit<components["schemas"]["Problem"], "code"> & { code: K };
}[C];

/** What every request of the client returns. */
export interface Result<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** Returns whether an error is a problem with one of these codes, or with any code. */
export function isProblem<C extends Code = Code>(error: unknown, ...codes: C[]): error is Problem<C> {
  const { code } = (error ?? {}) as { code?: unknown };
  return typeof code === "string" && (codes.length === 0 || (codes as string[]).includes(code));
}

/** An error response. API Gateway's own errors, such as 401, have no problem. */
export class ProblemError extends Error {
  readonly problem: Problem | undefined;
  readonly status: number;
  /** Quote it when you report an error. */
  readonly requestId: string | null;

  constructor(error: unknown, response: Response) {
    super(isProblem(error) ? `${error.code}: ${error.detail}` : `status ${response.status}`);
    this.name = "ProblemError";
    this.problem = isProblem(error) ? error : undefined;
    this.status = response.status;
    this.requestId = response.headers.get("x-request-id");
  }
}

/** Returns the data of a response. Throws a {@link ProblemError} for an error response. */
export function unwrap<T>({ data, error, response }: Result<T>): T {
  if (!response.ok) throw new ProblemError(error, response);
  return data as T;
}
