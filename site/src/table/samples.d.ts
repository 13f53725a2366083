declare module "virtual:samples" {
  interface Sample {
    query: string;
    path: Record<string, string>;
    headers: Record<string, string>;
    body: string;
    caller: "anonymous" | "customer" | "staff";
  }
  const samples: Record<string, Sample | undefined>;
  export default samples;
}
