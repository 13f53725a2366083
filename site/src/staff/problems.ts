import { type Code, isProblem, ProblemError, type Result, unwrap } from "@bodega/client";
import { SentenceError } from "./money";

export const CONFLICT = "Somebody else has changed this meanwhile. You see the new state now. Check it and try again.";

/** What staff read. Another code has the API's own text, which says what is wrong. */
const SENTENCES: Partial<Record<Code, string>> = {
  not_found: "This does not exist, or not any more.",
  forbidden: "Your account may not do this.",
  version_mismatch: CONFLICT,
  maintenance: "Maintenance mode is on, so nothing can be changed. Switch it off in the settings.",
  search_disabled: "This shop has no search engine.",
  illegal_transition: "The order or payment has moved on, so this is not possible any more.",
  insufficient_stock: "There are not so many pieces in stock.",
  already_exists: "This id exists already. Choose another one.",
  options_taken: "Another variant has these options.",
  rule_overlaps: "Another entry already covers the same place and goods.",
  not_uploaded: "The file has not arrived. Upload it again.",
  too_many_pictures: "A product has at most 20 pictures. Remove one first.",
  throttled: "The shop is busy at this moment. Try again.",
  unavailable: "The API is not reachable at this moment. Try again.",
};

export function explain(error: unknown): string {
  if (error instanceof SentenceError) return error.message;
  if (error instanceof TypeError) return "The API is not reachable. Check your connection and try again.";
  const problem = error instanceof ProblemError ? error.problem : isProblem(error) ? error : undefined;
  if (!problem) {
    const isSignIn = error instanceof ProblemError && error.status === 401;
    return isSignIn ? "Your sign-in has ended. Please sign in again." : "Something went wrong. Try again.";
  }
  const sentence = SENTENCES[problem.code] ?? `${problem.detail}`;
  const fields = problem.code === "invalid_body" ? (problem.errors ?? []) : [];
  const details = fields.map(({ pointer, detail }) => `${pointer.slice(1).replaceAll("/", " › ") || "body"}: ${detail}`);
  return details.length > 0 ? `Some values need another look. ${details.join("; ")}.` : sentence;
}

export function reference(error: unknown): string | null {
  return error instanceof ProblemError && error.status >= 500 ? error.requestId : null;
}

export const match = ({ version }: { version: number }) => ({ "If-Match": `"${version}"` });

/** Returns the data of a change. After a conflict shows the new state, and throws what a person reads. */
export function checked<T>(result: Result<T>, reload: () => void): T {
  if (isProblem(result.error, "version_mismatch")) reload();
  return unwrap(result);
}
