/** Calls `work` now and again after each pause while the page is visible. Returns the end of it. */
export function poll(pause: number, work: () => Promise<void>): () => void {
  let ended = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  const turn = async (): Promise<void> => {
    clearTimeout(timer);
    if (!document.hidden) await work();
    clearTimeout(timer);
    if (!ended) timer = setTimeout(() => void turn(), pause);
  };
  const shown = (): void => {
    if (!document.hidden && !ended) void turn();
  };
  document.addEventListener("visibilitychange", shown);
  void turn();
  return () => {
    ended = true;
    clearTimeout(timer);
    document.removeEventListener("visibilitychange", shown);
  };
}
