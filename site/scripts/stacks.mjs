// Reads the descriptions of stacks, as `aws cloudformation describe-stacks` prints them.
//
//   node stacks.mjs output <stack> <name>      prints an output
//   node stacks.mjs config <shop> <edge>       prints /config.json
const outputs = (stack) =>
  Object.fromEntries((JSON.parse(stack)?.Outputs ?? []).map(({ OutputKey, OutputValue }) => [OutputKey, OutputValue]));

function required(all, name) {
  if (all[name]) return all[name];
  console.error(`The stack has no output ${name}. Deploy the current template first.`);
  process.exit(1);
}

/** Returns what `src/lib/config.ts` reads. The API has the address of the site. */
function config(shop, edge) {
  // Without a login, the pages take the API for a local system, which issues tokens to everybody.
  if (!shop.LoginUrl) {
    console.error("The shop's stack has no output LoginUrl. Deploy it with LoginDomain and LoginCallbacks.");
    process.exit(1);
  }
  return {
    name: required(edge, "ShopName"),
    loginUrl: shop.LoginUrl,
    clientId: required(shop, "UserPoolClientId"),
    ...(edge.CardForm ? { cardForm: edge.CardForm } : {}),
  };
}

const [what, first, second] = process.argv.slice(2);
if (what === "output") console.log(required(outputs(first), second));
else if (what === "config") console.log(JSON.stringify(config(outputs(first), outputs(second)), null, 2));
else process.exit(2);
