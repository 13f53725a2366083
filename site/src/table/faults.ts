// Faults that the page of the stream switches on and off.
import { ask, post } from "./local";

export interface Fault {
  target: string;
  kind: string;
  rate: number;
  name: string;
  effect: string;
}

export const FAULTS: Fault[] = [
  { target: "table", kind: "throttle", rate: 0.3, name: "The table throttles", effect: "DynamoDB rejects three of ten requests, as it does when a partition is hot. The functions retry, so responses take longer, and some requests get 503." },
  { target: "table", kind: "slow", rate: 1, name: "The table is slow", effect: "Every answer of DynamoDB is 300 ms late." },
  { target: "search", kind: "error", rate: 1, name: "The search index fails", effect: "StreamSearch cannot deliver. Its records wait and are retried, and the shop goes on without new search results." },
  { target: "bus", kind: "error", rate: 1, name: "The event bus fails", effect: "StreamEvents cannot publish. Mails and later work wait, and follow when the bus is back." },
  { target: "function:StreamEvents", kind: "crash", rate: 0.5, name: "StreamEvents crashes", effect: "Every second invocation ends in the middle. Lambda invokes it again with the same records, and marks prevent a second effect." },
  { target: "function:Notifier", kind: "error", rate: 1, name: "The notifier fails", effect: "No mail is sent. After some tries an event goes to a dead-letter queue, which is listed below." },
];

export interface Active {
  target: string;
  rule: { kind: string; rate: number; count: number | null };
  fired: number;
}

export async function active(): Promise<Active[]> {
  const all = await ask<Record<string, { fault?: Active["rule"]; fired?: number }[]>>("/_local/faults");
  return Object.entries(all).flatMap(([target, list]) =>
    list.flatMap(({ fault, fired = 0 }) => (fault ? [{ target, rule: fault, fired }] : [])),
  );
}

export const isOf = ({ target, kind }: Fault, { target: other, rule }: Active): boolean => target === other && kind === rule.kind;

export const inject = ({ target, kind, rate }: Fault): Promise<void> => post("/_local/faults", { target, kind, rate });

export const clearAll = (): Promise<void> => ask("/_local/faults", { method: "DELETE" });

/** The system can only remove all faults, so the others are added again. */
export async function remove(fault: Fault, now: Active[]): Promise<void> {
  await clearAll();
  for (const other of FAULTS) {
    if (other !== fault && now.some((one) => isOf(other, one))) await inject(other);
  }
}
