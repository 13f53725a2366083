import type { Schemas } from "./api";

export const TIERS: Record<Schemas["Tier"], string> = { bronze: "Bronze", silver: "Silver", gold: "Gold" };
