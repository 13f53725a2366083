import "./kit/tokens.css";
import "./kit/base.css";
import { type Component, mount } from "svelte";
import { connect } from "./lib/api";
import { loadConfig } from "./lib/config";
import { listen } from "./lib/router.svelte";

type Area = () => Promise<{ default: Component }>;

/** The areas by the first segment of the path. Every other path belongs to the shop. */
const areas: Record<string, Area> = {
  staff: () => import("./staff/Staff.svelte"),
  table: () => import("./table/Table.svelte"),
};
const shop: Area = () => import("./shop/Shop.svelte");

const area = (path: string): Area => areas[path.split("/")[1] ?? ""] ?? shop;

const here = area(location.pathname);
const [config, { default: Root }] = await Promise.all([loadConfig(), here()]);
connect(config);
listen((url) => area(url.pathname) === here);
mount(Root, { target: document.getElementById("site")! });
