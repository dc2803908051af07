// The page on which a person lets a client in, in headless Chromium: reached from a page of another site, with scripts
// and without, under its own policy for forms.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { check, finish } from "./checks.mjs";

const require = createRequire(`${process.env.SINEW_BROWSER}/package.json`);
const { chromium } = require("playwright-core");
const axe = readFileSync(require.resolve("axe-core/axe.min.js"), "utf8");
const sinew = process.env.SINEW_BIN;
const pictures = process.env.CONSOLE_PICTURES;
const verifier = "a-verifier-that-is-long-enough-to-be-a-secret-of-its-own";
const passphrase = "a passphrase for tests";

/** Answers every request with a page; `paths` are what was asked for. */
async function site(page) {
  const paths = [];
  const server = createServer((request, response) => {
    paths.push(request.url);
    response.setHeader("content-type", "text/html");
    response.end(page(request.url));
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  return { server, paths, port: server.address().port };
}

// The address is in the configuration, so the port must be known before.
const reserved = await site(() => "");
const { port } = reserved;
await new Promise((closed) => reserved.server.close(closed));
const url = `http://127.0.0.1:${port}`;
const state = mkdtempSync(`${tmpdir()}/sinew-sign-in-`);
writeFileSync(`${state}/sinew.toml`, `[clients]\npublic-url = "${url}"\n[oauth]\n`);
const kept = Object.entries(process.env).filter(([name]) => !name.startsWith("SINEW_"));
const env = { ...Object.fromEntries(kept), SINEW_STATE: state, ADB_SERVER_SOCKET: "localfilesystem:/nonexistent" };
const ports = ["--listen", `127.0.0.1:${port}`, "--devices", "127.0.0.1:0", "--mqtt", "127.0.0.1:0"];
const gateway = spawn(sinew, ["serve", "--config", `${state}/sinew.toml`, ...ports, "--output", "json"], { env });
await new Promise((started, failed) => {
  gateway.stdout.once("data", started);
  gateway.once("exit", (code) => failed(new Error(`the gateway ended with ${code}`)));
});
execFileSync(sinew, ["people", "add", "ada", "--role", "admin", "--passphrase-stdin"], { env, input: passphrase, stdio: "pipe" });

const program = await site((path) => `<title>Program</title><h1>${path.includes("code=") ? "Connected" : "Refused"}</h1>`);
const redirect = `http://127.0.0.1:${program.port}/callback`;
const registered = await fetch(`${url}/oauth/register`, {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify({ client_name: "Garden <b>planner</b>", redirect_uris: [redirect] }),
});
const { client_id } = await registered.json();
const query = new URLSearchParams({
  response_type: "code",
  client_id,
  redirect_uri: redirect,
  code_challenge: createHash("sha256").update(verifier).digest("base64url"),
  code_challenge_method: "S256",
  resource: `${url}/mcp`,
  state: "garden",
});
// `localhost` and `127.0.0.1` are different sites: the console's cookie is not sent with a request that begins here.
const other = await site(() => `<title>Other</title><a href="${url}/oauth/authorize?${query.toString().replaceAll("&", "&amp;")}">Connect</a>`);
const begin = `http://localhost:${other.port}/`;

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--disable-dev-shm-usage"] });

async function open(options) {
  const context = await browser.newContext({ reducedMotion: "reduce", ...options });
  const page = await context.newPage();
  const errors = [];
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(error.message));
  return { context, page, errors };
}

async function connect(page) {
  await page.goto(begin);
  await page.getByRole("link", { name: "Connect" }).click();
}

async function signIn(page) {
  await page.getByLabel("Name").fill("ada");
  await page.getByLabel("Passphrase").fill(passphrase);
  await page.getByRole("button", { name: "Sign in" }).first().click();
}

const asked = (page) => page.getByRole("heading", { level: 1, name: "A client wants to sign in" }).waitFor();

for (const [how, options] of [["with scripts", { colorScheme: "light" }], ["without scripts", { javaScriptEnabled: false }]]) {
  const { context, page, errors } = await open(options);
  await check("sign-in page", `${how}, a page of another site leads to the login and then to the question`, async () => {
    await connect(page);
    await signIn(page);
    await asked(page);
    await page.getByText("Garden <b>planner</b>").waitFor();
    await page.getByText("ada@localhost").waitFor();
  });
  await check("sign-in page", `${how}, "Allow" leads back to the client with a code for it`, async () => {
    await page.getByRole("button", { name: "Allow" }).click();
    await page.getByRole("heading", { name: "Connected" }).waitFor();
    const answer = new URL(page.url());
    assert.equal(answer.searchParams.get("state"), "garden");
    assert.equal(answer.searchParams.get("iss"), url);
    const form = { grant_type: "authorization_code", client_id, code: answer.searchParams.get("code"), redirect_uri: redirect, code_verifier: verifier };
    const tokens = await (await fetch(`${url}/oauth/token`, { method: "POST", body: new URLSearchParams(form) })).json();
    assert.match(tokens.access_token ?? JSON.stringify(tokens), /^sna_/);
  });
  await check("sign-in page", `${how}, whoever is signed in is asked at once, and may say no`, async () => {
    await connect(page);
    await asked(page);
    await page.getByRole("button", { name: "Deny" }).click();
    await page.getByRole("heading", { name: "Refused" }).waitFor();
    assert.equal(new URL(page.url()).searchParams.get("error"), "access_denied");
  });
  if (options.javaScriptEnabled !== false) {
    await check("sign-in page", "the client is listed and can be signed out", async () => {
      await page.goto(`${url}/console/tokens`);
      const row = page.getByRole("row").filter({ hasText: "ada@localhost" });
      await row.getByText("Garden <b>planner</b>").waitFor();
      if (pictures) await page.screenshot({ path: `${pictures}/signed-in-clients.png` });
      await row.getByRole("button", { name: "Sign out" }).click();
      await row.getByRole("button", { name: "Press again to sign out" }).click();
      await page.getByText("No client is signed in.").waitFor();
    });
  }
  await check("sign-in page", `${how}, the browser reports nothing`, async () => assert.deepEqual(errors, []));
  await context.close();
}
const looks = ["light", "dark"].flatMap((colorScheme) => [1280, 320].map((width) => [`${colorScheme}, ${width} px`, { colorScheme, viewport: { width, height: 900 } }]));
for (const [how, options] of looks) {
  const { context, page } = await open(options);
  await check("sign-in page", `${how}, axe finds nothing and nothing is wider than the screen`, async () => {
    await connect(page);
    await signIn(page);
    await asked(page);
    if (pictures) await page.screenshot({ path: `${pictures}/sign-in-${options.colorScheme}-${options.viewport.width}.png`, fullPage: true });
    await page.evaluate(axe);
    const { violations } = await page.evaluate(() => axe.run({ runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
    assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes[0].html}`), []);
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "it scrolls sideways");
  });
  await context.close();
}
await check("sign-in page", "no page of another site shows it in a frame", async () => {
  const { context, page } = await open({ colorScheme: "light" });
  const frame = await site(() => `<title>Frame</title><iframe src="${url}/console/authorize?${query.toString().replaceAll("&", "&amp;")}"></iframe>`);
  await page.goto(`http://127.0.0.1:${frame.port}/`);
  await page.waitForLoadState("networkidle");
  const inside = page.frames()[1];
  const text = await inside.evaluate(() => document.body?.innerText ?? "").catch(() => "");
  assert.ok(!text.includes("Sign in") && !text.includes("wants"), text);
  frame.server.close();
  await context.close();
});

await browser.close();
[program, other].forEach(({ server }) => server.close());
gateway.kill();
await new Promise((ended) => gateway.once("exit", ended));
rmSync(state, { recursive: true });
finish();
