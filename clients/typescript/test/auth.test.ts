import assert from "node:assert/strict";
import { after, afterEach, before, mock, test } from "node:test";
import { AuthError, createAuth, type AuthOptions } from "@bodega/client";
import { Cognito } from "./cognito.js";

const redirectUri = "http://localhost/signed-in";
const cognito = new Cognito();
before(() => cognito.start());
after(() => cognito.stop());
afterEach(() => {
  mock.timers.reset();
  Object.assign(cognito, { delay: async () => {}, lifetime: 3600, rotates: false, refreshes: 0 });
});

function auth(options: Partial<AuthOptions> = {}) {
  const values = new Map<string, string>();
  const store = {
    getItem: (name: string) => values.get(name) ?? null,
    setItem: (name: string, value: string) => void values.set(name, value),
    removeItem: (name: string) => void values.delete(name),
  };
  return { values, auth: createAuth({ loginUrl: cognito.url, clientId: cognito.clientId, redirectUri, store, ...options }) };
}

function approve(page: string): string {
  const query = new URL(page).searchParams;
  assert.deepEqual([query.get("response_type"), query.get("code_challenge_method")], ["code", "S256"]);
  for (const name of ["code_challenge", "state"]) assert.match(query.get(name) ?? "", /^[\w-]{43}$/);
  return cognito.approve(page);
}

async function signedIn(options: Partial<AuthOptions> = {}) {
  const made = auth(options);
  await made.auth.finish(approve(await made.auth.begin()));
  return made;
}

const at = (now: number) => mock.timers.enable({ apis: ["Date"], now });
const refusal = (code: string) => (error: unknown) => error instanceof AuthError && error.code === code;

test("a sign-in exchanges its code by PKCE and returns to its page", async () => {
  const { auth: ann, values } = auth();
  assert.equal(await ann.token(), undefined);
  const page = await ann.begin("/cart");
  assert.ok(page.startsWith(`${cognito.url}/oauth2/authorize?`));
  assert.equal(new URL(page).searchParams.get("scope"), "openid email");
  assert.deepEqual(await ann.finish(approve(page)), { returnTo: "/cart" });
  assert.match((await ann.token()) ?? "", /^id-\d+$/);
  assert.deepEqual([...values.keys()], ["bodega.tokens"], "the verifier is used once");
  const { auth: other } = await signedIn({ use: "access_token" });
  assert.match((await other.token()) ?? "", /^access-\d+$/);
});

test("a code is refused without its verifier and a URL without its state", async () => {
  const [{ auth: ann }, { auth: mallory, values }] = [auth(), auth()];
  assert.equal(await ann.finish(redirectUri), undefined);
  const back = approve(await ann.begin());
  await assert.rejects(mallory.finish(back), refusal("state_mismatch"));
  const begun = JSON.parse((await mallory.begin(), values.get("bodega.sign-in") ?? ""));
  values.set("bodega.sign-in", JSON.stringify({ ...begun, state: new URL(back).searchParams.get("state") }));
  await assert.rejects(mallory.finish(back), refusal("invalid_grant"));
  assert.equal(await mallory.token(), undefined);
  await assert.rejects(ann.finish(`${redirectUri}?code=x&state=other`), refusal("state_mismatch"));
  const state = new URL(await ann.begin()).searchParams.get("state");
  await assert.rejects(ann.finish(`${redirectUri}?error=access_denied&state=${state}`), refusal("access_denied"));
});

test("concurrent requests refresh a token once before it expires", async () => {
  for (const isRotated of [false, true]) {
    Object.assign(cognito, { rotates: isRotated, refreshes: 0 });
    const began = Date.now();
    const { auth: ann } = await signedIn();
    const first = await ann.token();
    at(began + 3_000_000);
    assert.equal(await ann.token(), first, "still valid for more than a minute");
    mock.timers.reset();
    at(began + 3_590_000);
    const tokens = new Set(await Promise.all(Array.from({ length: 20 }, () => ann.token())));
    assert.equal(tokens.size, 1);
    assert.ok(!tokens.has(first));
    assert.equal(cognito.refreshes, 1);
    mock.timers.reset();
    at(began + 2 * 3_590_000);
    assert.ok(!tokens.has(await ann.token()));
    assert.equal(cognito.refreshes, 2);
    mock.timers.reset();
  }
});

test("a token is refreshed after the clock was set back and short tokens are used", async () => {
  const { auth: ann } = await signedIn();
  const first = await ann.token();
  at(Date.now() - 86_400_000);
  assert.notEqual(await ann.token(), first);
  mock.timers.reset();
  cognito.lifetime = 30;
  const { auth: short } = await signedIn();
  cognito.refreshes = 0;
  await short.token();
  assert.equal(cognito.refreshes, 0);
});

test("a customer whose refresh token has ended is a visitor and a failure is no end", async () => {
  const { auth: ann } = await signedIn();
  at(Date.now() + 3_600_000);
  cognito.refreshTokens.clear();
  assert.equal(await ann.token(), undefined);
  assert.equal(await ann.token(), undefined);
  assert.equal(cognito.refreshes, 1);
  mock.timers.reset();

  let isDown = false;
  const unsteady: typeof fetch = (...request) => (isDown ? Promise.reject(new TypeError("down")) : fetch(...request));
  const { auth: eve } = await signedIn({ fetch: unsteady });
  at(Date.now() + 3_600_000);
  isDown = true;
  await assert.rejects(eve.token(), /down/);
  isDown = false;
  assert.match((await eve.token()) ?? "", /^id-/);
});

test("a sign-out revokes the tokens also during a refresh", async () => {
  const { auth: ann, values } = await signedIn();
  const token = JSON.parse(values.get("bodega.tokens") ?? "").refresh_token;
  const page = new URL(await ann.signOut());
  assert.equal(page.pathname, "/logout");
  assert.deepEqual([...page.searchParams], [["client_id", "app"], ["logout_uri", redirectUri]]);
  assert.ok(!cognito.refreshTokens.has(token));
  assert.equal(await ann.token(), undefined);
  assert.equal(values.size, 0);

  const { auth: eve } = await signedIn();
  at(Date.now() + 3_600_000);
  cognito.delay = async () => void (await eve.signOut());
  assert.equal(await eve.token(), undefined);
  assert.equal(await eve.token(), undefined);
});
