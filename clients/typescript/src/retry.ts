export interface RetryOptions {
  /** The maximum number of attempts, 5 by default. */
  attempts?: number;
  /** The maximum time of all attempts in milliseconds, 60,000 by default. */
  limit?: number;
  /** The maximum random wait before the second attempt in milliseconds, 1,000 by default. */
  wait?: number;
}

type Fetch = (request: Request) => Promise<Response>;

/** The codes that a repetition of the same request can resolve. */
const TEMPORARY = new Set(["throttled", "unavailable", "idempotency_in_progress"]);
/** Statuses of responses without a code, which come from API Gateway or from a proxy. */
const OVERLOADED = new Set([429, 502, 503, 504]);
const IDEMPOTENT = new Set(["GET", "HEAD", "PUT", "DELETE"]);

/**
 * Returns a `fetch` that repeats requests which failed for a moment.
 *
 * A lost response does not say whether the request was executed. So only requests are repeated that
 * take effect once: by their method, by their key, or by the version that they change.
 */
export function retrying(fetch: Fetch, { attempts = 5, limit = 60_000, wait = 1_000 }: RetryOptions = {}): Fetch {
  return async (request) => {
    const signal = AbortSignal.any([request.signal, AbortSignal.timeout(limit)]);
    const end = performance.now() + limit;
    const last = isRepeatable(request) ? attempts : 1;
    for (let attempt = 1; ; attempt++) {
      const isLast = attempt >= last;
      // A request's body can be read once, so each attempt sends a copy.
      const copy = new Request(isLast ? request : request.clone(), { signal });
      const answer = await fetch(copy).catch((error: unknown) => {
        if (isLast || signal.aborted) throw error;
        return { error };
      });
      const response = answer instanceof Response ? answer : undefined;
      if (response && (isLast || !(await isTemporary(response)))) return response;

      const after = Number(response?.headers.get("retry-after")) * 1000 || 0;
      const pause = after + Math.random() * wait * 2 ** (attempt - 1);
      if (performance.now() + pause > end) {
        if (response) return response;
        throw (answer as { error: unknown }).error;
      }
      await response?.body?.cancel();
      await sleep(pause, signal);
    }
  };
}

function isRepeatable({ method, headers }: Request): boolean {
  return IDEMPOTENT.has(method) || headers.has("idempotency-key") || headers.has("if-match");
}

async function isTemporary(response: Response): Promise<boolean> {
  const isOverload = OVERLOADED.has(response.status);
  if (!isOverload && response.status !== 409) return false;
  const body = (await response.clone().json().catch(() => undefined)) as { code?: string } | undefined;
  return body?.code === undefined ? isOverload : TEMPORARY.has(body.code);
}

function sleep(milliseconds: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    signal.throwIfAborted();
    const stop = () => {
      clearTimeout(timer);
      reject(signal.reason);
    };
    const timer = setTimeout(() => {
      signal.removeEventListener("abort", stop);
      resolve();
    }, milliseconds);
    signal.addEventListener("abort", stop, { once: true });
  });
}
