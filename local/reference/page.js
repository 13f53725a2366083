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
for (const id of ["task", "caller", "who", "other", "use", "state"]) page[id] = document.getElementById(id);
document.documentElement.classList.toggle("dark-mode", matchMedia("(prefers-color-scheme: dark)").matches);

// Puts the callers of `x-who` at the top of each description.
function withCallers(api) {
  for (const item of Object.values(api.paths ?? {})) {
    for (const operation of METHODS.map((method) => item[method]).filter(Boolean)) {
      const callers = `**For ${CALLERS[operation["x-who"]] ?? operation["x-who"]}.**`;
      operation.description = [callers, operation.description].filter(Boolean).join("\n\n");
    }
  }
  return api;
}

function showCallers() {
  return { statePlugins: { spec: { wrapActions: { updateJsonSpec: (update) => (api) => update(withCallers(api)) } } } };
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

const ui = SwaggerUIBundle({
  url: "/v1/openapi.yaml",
  dom_id: "#reference",
  plugins: [showCallers, showLines],
  deepLinking: true,
  displayRequestDuration: true,
  docExpansion: IS_NARROW ? "none" : "list",
  tryItOutEnabled: true,
  validatorUrl: null, // The default sends the description to another host.
  onComplete() {
    listTasks(ui.specSelectors.specJson().toJS());
    choose();
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

// Opens a task or an operation. Swagger UI renders only the operations near the window.
function reach(place) {
  ui.layoutActions.show(place, true);
  ui.layoutActions.scrollTo(place);
  ui.layoutActions.scrollToVirtualizedOperation(place);
}

function showTask() {
  if (!page.task.value) return scrollTo(0, 0);
  reach(["operations-tag", page.task.value]);
}

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

page.task.addEventListener("change", showTask);
page.who.addEventListener("change", choose);
page.caller.addEventListener("submit", (event) => {
  event.preventDefault();
  choose();
});
