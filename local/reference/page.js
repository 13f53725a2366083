// Shows this system's openapi.yaml with Swagger UI, and sends requests as the chosen caller.
"use strict";

const SCHEME = "jwt"; // The name of the security scheme in openapi.yaml.
const METHODS = ["get", "post", "put", "patch", "delete"];
const CALLERS = {
  any: "every caller, also without a token",
  "signed in": "every caller with a token",
  customer: "customers who have signed up, and staff",
  reader: "callers who may see the resource, and staff",
  editor: "callers who may change the resource, and staff",
  owner: "the customer to whom the resource belongs, and staff",
  staff: "staff only",
};
// The callers that the page offers. Ann's token has a verified email address.
const CLAIMS = {
  ann: { sub: "ann", email: "ann@example.com" },
  sam: { sub: "sam", groups: ["staff"] },
};
const IS_NARROW = matchMedia("(max-width: 700px)").matches;

const page = {};
for (const id of ["task", "find", "found", "caller", "who", "other", "use", "state"]) page[id] = document.getElementById(id);
document.documentElement.classList.toggle("dark-mode", matchMedia("(prefers-color-scheme: dark)").matches);

// Returns every operation with its method and path.
function operations(api) {
  return Object.entries(api.paths ?? {}).flatMap(([path, item]) =>
    METHODS.filter((method) => item[method]).map((method) => ({ method: method.toUpperCase(), path, operation: item[method] })),
  );
}

// Puts the callers of `x-who` at the top of each description, and a link to the explorer. A
// deployment has no explorer, so openapi.yaml does not have the link. The parameters of a path join
// those of its operations.
function prepared(api) {
  for (const { method, path, operation } of operations(api)) {
    const callers = `**For ${CALLERS[operation["x-who"]] ?? operation["x-who"]}.**`;
    const explorer = `[What it reads and writes](/table/routes/${method}${path.split("/").map(encodeURIComponent).join("/")})`;
    operation.description = [`${callers} ${explorer}`, operation.description].filter(Boolean).join("\n\n");
    operation.parameters = [...(api.paths[path].parameters ?? []), ...(operation.parameters ?? [])];
  }
  return api;
}

// Follows the references of the part that is shown. Swagger UI itself reads the whole description
// anew for each part, which takes seconds.
function showParts() {
  let api = {};
  return {
    statePlugins: {
      spec: {
        wrapActions: {
          updateJsonSpec: (update) => (json) => update((api = prepared(json))),
          requestResolvedSubtree: (_, { specActions }) => (path) =>
            specActions.updateResolvedSubtree(path, withKey(resolved(api, at(api, path)))),
        },
      },
    },
  };
}

// Fills in a new key. A request that is sent again is then a repetition, as it is in a shop.
function withKey(part) {
  for (const parameter of part?.parameters ?? []) {
    if (parameter.name === "Idempotency-Key") parameter.example = crypto.randomUUID();
  }
  return part;
}

function at(api, path) {
  return path.reduce((part, key) => part?.[key], api);
}

// Returns a copy in which each reference is replaced by what it names. A reference inside of what it
// names stays.
function resolved(api, node, above = []) {
  if (Array.isArray(node)) return node.map((one) => resolved(api, one, above));
  if (node === null || typeof node !== "object") return node;
  const { $ref, ...own } = node;
  if (above.includes($ref)) return node;
  const named = $ref === undefined ? {} : resolved(api, at(api, $ref.split("/").slice(1)), [...above, $ref]);
  return { ...named, ...Object.fromEntries(Object.entries(own).map(([key, one]) => [key, resolved(api, one, above)])) };
}

// Shows examples of NDJSON as lines. Swagger UI treats the type as JSON, and shows one JSON string.
function showLines() {
  return {
    afterLoad() {
      const example = this.fn.getSampleSchema;
      this.fn.getSampleSchema = (schema, type, ...rest) => {
        const text = example(schema, type, ...rest);
        return type === "application/x-ndjson" ? JSON.parse(text) : text;
      };
    },
  };
}

// The operations as the search sees them, and those that it has found.
let index = [];
let found = [];
let active = -1;

const ui = SwaggerUIBundle({
  url: "/v1/openapi.yaml",
  dom_id: "#reference",
  plugins: [showParts, showLines],
  deepLinking: true,
  displayOperationId: true,
  displayRequestDuration: true,
  docExpansion: IS_NARROW ? "none" : "list",
  tryItOutEnabled: true,
  validatorUrl: null, // The default sends the description to another host.
  onComplete() {
    const api = ui.specSelectors.specJson().toJS();
    listTasks(api);
    index = operations(api).map((one) => entry(one, api.components?.parameters ?? {}));
    search();
    choose();
    follow();
  },
});

function listTasks(api) {
  for (const group of api["x-tagGroups"] ?? []) {
    const options = document.createElement("optgroup");
    options.label = group.name;
    options.append(...group.tags.map((name) => new Option(name)));
    page.task.append(options);
  }
}

// Changes whenever the reader, the search or the list of tasks moves the page.
let moves = 0;
for (const kind of ["keydown", "pointerdown", "wheel"]) addEventListener(kind, () => (moves += 1), { capture: true, passive: true });

// Opens a task or an operation. Swagger UI renders only the operations near the window.
function reach(place) {
  moves += 1;
  ui.layoutActions.show(place, true);
  ui.layoutActions.scrollTo(place);
  ui.layoutActions.scrollToVirtualizedOperation(place);
}

function showTask() {
  if (!page.task.value) return scrollTo(0, 0);
  reach(["operations-tag", page.task.value]);
}

function entry({ method, path, operation }, shared) {
  const { operationId: id, summary = "", description = "", tags: [tag], parameters = [] } = operation;
  const name = `${method} ${path} ${id} ${summary} ${tag}`.toLowerCase();
  const names = parameters.map((one) => (one.$ref ? shared[one.$ref.split("/").at(-1)] : one)?.name ?? "");
  const text = `${description} ${names.join(" ")}`.toLowerCase();
  return { method, path, id, summary, tag, name, text };
}

// Finds operations that have every word. Those with the words in their path, id or summary are first.
function search() {
  const words = page.find.value.toLowerCase().split(/\s+/).filter(Boolean);
  const rank = ({ id, name, text }) => {
    if (!words.every((word) => name.includes(word) || text.includes(word))) return undefined;
    return id.toLowerCase() === words[0] ? -1 : words.filter((word) => !name.includes(word)).length;
  };
  const ranked = words.length === 0 ? [] : index.map((one) => ({ one, at: rank(one) })).filter(({ at }) => at !== undefined);
  found = ranked.sort((a, b) => a.at - b.at).map(({ one }) => one);
  active = found.length > 0 ? 0 : -1;
  page.found.replaceChildren(...found.map(option));
  if (words.length > 0 && found.length === 0) page.found.append(Object.assign(document.createElement("li"), { textContent: "No operation has these words." }));
  show(words.length > 0);
}

function option({ method, path, id, summary }, at) {
  const item = document.createElement("li");
  item.id = `found-${at}`;
  item.setAttribute("role", "option");
  for (const [name, text] of Object.entries({ method, path, summary, id })) {
    item.append(Object.assign(document.createElement("span"), { className: name, textContent: text }));
  }
  // The field keeps the focus until the operation opens.
  item.addEventListener("pointerdown", (event) => event.preventDefault());
  item.addEventListener("click", () => open(at));
  return item;
}

function show(isOpen) {
  page.found.hidden = !isOpen;
  page.find.setAttribute("aria-expanded", String(isOpen));
  mark();
}

function mark() {
  [...page.found.children].forEach((item, at) => item.setAttribute("aria-selected", String(at === active)));
  if (active < 0 || page.found.hidden) return page.find.removeAttribute("aria-activedescendant");
  page.find.setAttribute("aria-activedescendant", `found-${active}`);
  page.found.children[active].scrollIntoView({ block: "nearest" });
}

function open(at) {
  show(false);
  page.find.blur();
  openOperation(found[at]);
}

function openOperation({ tag, id }) {
  ui.layoutActions.show(["operations-tag", tag], true);
  reach(["operations", tag, id]);
  // Operations above take their height only after they are rendered.
  const move = moves;
  const settle = () => move === moves && document.getElementById(`operations-${tag}-${id}`)?.scrollIntoView();
  for (const wait of [300, 1000]) setTimeout(settle, wait);
}

const KEYS = {
  ArrowDown: () => (active = (active + 1) % found.length),
  ArrowUp: () => (active = (active + found.length - 1) % found.length),
  Home: () => (active = 0),
  End: () => (active = found.length - 1),
};
page.find.addEventListener("input", search);
page.find.addEventListener("focus", search);
page.find.addEventListener("blur", () => show(false));
page.find.addEventListener("keydown", (event) => {
  if (event.key === "Escape") return show(false);
  if (found.length === 0 || page.found.hidden) return;
  if (event.key === "Enter") open(active);
  else if (KEYS[event.key]) KEYS[event.key]();
  else return;
  event.preventDefault();
  if (event.key !== "Enter") mark();
});
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.target.closest("input, select, textarea, [contenteditable]")) return;
  event.preventDefault();
  page.find.focus();
});

// Gets a token for the chosen caller. Only the local system issues tokens, and only to its own page.
async function choose() {
  const isOther = page.who.value === "?";
  page.other.hidden = page.use.hidden = !isOther;
  const sub = isOther ? page.other.value.trim() : page.who.value;
  if (ui.authSelectors.authorized()?.has(SCHEME)) ui.authActions.logout([SCHEME]);
  page.state.textContent = "";
  if (!sub) return;
  const response = await fetch("/_local/tokens", {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(isOther ? { sub } : CLAIMS[sub]),
  });
  const answer = await response.json();
  if (response.ok) ui.preauthorizeApiKey(SCHEME, answer.token);
  page.state.textContent = response.ok ? `token of ${sub} in use` : answer.message;
}

// Opens the operation that the address names. Swagger UI itself would hide its title under the header.
function follow() {
  const named = index.find(({ tag, id }) => location.hash === `#/${tag}/${id}`);
  if (named) openOperation(named);
}

addEventListener("hashchange", follow);
page.task.addEventListener("change", showTask);
page.who.addEventListener("change", choose);
page.caller.addEventListener("submit", (event) => {
  event.preventDefault();
  choose();
});
