// The console in headless Chromium.
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { axe, board, browser, callAsClient, console_, open, pictures, records, run, waitingCall } from "./browser.mjs";
import { check, finish, gateway } from "./checks.mjs";

const official = createRequire(`${gateway.clients}/client/package.json`);
const { Client, StreamableHTTPClientTransport } = official("@modelcontextprotocol/client");

const { context, page, errors } = await open({ colorScheme: "light" });
const title = (text) => page.getByRole("heading", { level: 1, name: text }).waitFor();

await check("console", "a browser at the root is led to the login", async () => {
  await page.goto(gateway.url);
  await page.getByRole("heading", { name: "With an admin token" }).waitFor();
});
await check("console", "a wrong token is refused", async () => {
  await page.getByLabel("Token").fill("wrong");
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByText("the token is not valid").waitFor();
  // The answer has the status 401, which the browser reports as an error of its own.
  assert.match(errors.splice(0).join(), /^Failed to load resource: .*401[^,]*$/);
});
await check("console", "the gateway's token signs in", async () => {
  await page.getByLabel("Token").fill(process.env.SINEW_OWN_TOKEN);
  await page.getByRole("button", { name: "Sign in" }).click();
  await title("Overview");
  await page.getByText(/of \d+ ready/).waitFor();
});
await check("console", "the devices are listed and found", async () => {
  await page.getByRole("link", { name: "Devices", exact: true }).click();
  await page.getByRole("link", { name: board }).waitFor();
  await page.getByLabel("Search").fill("virtual-phone");
  await page.getByText("1 device", { exact: true }).waitFor();
  assert.match(page.url(), /search=virtual-phone/);
});
await check("console", "a tool is called from a form and its result is shown", async () => {
  await page.goto(`${console_}device?id=${board}`);
  const tool = page.getByRole("button", { name: /self\.audio_speaker\.set_volume/ });
  await tool.click();
  const row = page.locator("li", { has: tool });
  await row.getByLabel("volume").fill("37");
  await row.getByRole("button", { name: "Call", exact: true }).click();
  await row.getByText(/Answered in/).waitFor();
  await row.getByRole("button", { name: "Copy as sinew call" }).click();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), `sinew call '${board}' 'self.audio_speaker.set_volume' 'volume=37'`);
  await row.getByRole("button", { name: "JSON", exact: true }).click();
  assert.deepEqual(JSON.parse(await row.getByLabel("Arguments as JSON").inputValue()), { volume: 37 });
  await row.getByLabel("Arguments as JSON").fill('{"volume": "loud"}');
  await row.getByRole("button", { name: "Call", exact: true }).click();
  await row.getByRole("alert").filter({ hasText: "volume" }).first().waitFor();
  assert.match(errors.splice(0).join(), /400/, "the refused call is the only error");
});
await check("console", "a call is in the list and has its detail", async () => {
  await page.goto(`${console_}calls?device=${board}`);
  const first = page.getByRole("row").filter({ hasText: "self.audio_speaker.set_volume" }).filter({ hasText: "ok" }).first();
  await first.getByRole("link").first().click();
  await title(/^Call \d+/);
  await page.getByText("What decided").waitFor();
  await page.getByText(/^allow by/).waitFor();
});
await check("console", "a call of an official client waits until a person allows it", async () => {
  const client = new Client({ name: "console-test", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`), { requestInit: { headers: { Authorization: `Bearer ${gateway.token}` } } }));
  await page.goto(`${console_}approvals`);
  await page.getByText("No call waits.").waitFor();
  const { tools } = await client.listTools();
  const name = tools.find((tool) => tool.name.endsWith("set_brightness")).name;
  const called = client.callTool({ name, arguments: { device: board, brightness: 61 } });
  await page.getByRole("heading", { name: /wants to call/ }).waitFor();
  await page.getByText('"brightness": 61').waitFor();
  if (pictures) await page.screenshot({ path: `${pictures}/waiting-call.png` });
  await page.getByRole("button", { name: "Allow once" }).click();
  const result = await called;
  assert.ok(!result.isError, JSON.stringify(result));
  await page.getByText("No call waits.").waitFor();
  await client.close();
});
for (const [era, mode] of [["2025-11-25", "legacy"], ["2026-07-28", { pin: "2026-07-28" }]]) {
  const asked = [];
  let answer;
  const client = new Client({ name: "console-test", version: "1" }, { capabilities: { elicitation: { form: {}, url: {} } }, versionNegotiation: { mode } });
  client.setRequestHandler("elicitation/create", async ({ params }) => {
    asked.push(params);
    return answer(params);
  });
  const completed = [];
  client.setNotificationHandler("notifications/elicitation/complete", ({ params }) => completed.push(params.elicitationId));
  await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`), { requestInit: { headers: { Authorization: `Bearer ${gateway.token}` } } }));
  const { tools } = await client.listTools();
  const named = (end) => tools.find((tool) => tool.name.endsWith(end)).name;
  await check("console", `an official client of ${era} leads its user to the page, and what it answers decides nothing`, async () => {
    answer = async ({ url }) => {
      await page.goto(url);
      await page.getByRole("heading", { name: "A call waits for you" }).waitFor();
      await page.getByText("It changes something.").or(page.getByText("Nobody said what it does.")).waitFor();
      await page.getByRole("button", { name: "Allow once" }).click();
      await page.getByRole("heading", { name: "Allowed" }).waitFor();
      return { action: "accept" };
    };
    const result = await client.callTool({ name: named("set_brightness"), arguments: { device: board, brightness: era.length + 20 } });
    assert.ok(!result.isError, JSON.stringify(result));
    assert.equal(asked.length, 1);
    assert.equal(asked[0].mode, "url");
    assert.ok(asked[0].url.startsWith(`${console_}approval?id=`), asked[0].url);
    if (mode === "legacy") assert.deepEqual(completed, [asked[0].elicitationId]);
  });
  await check("console", `an official client of ${era} asks its own user where the rule says so`, async () => {
    asked.length = 0;
    answer = () => ({ action: "accept", content: {} });
    const call = () => client.callTool({ name: named("set_theme"), arguments: { device: board, theme: "dark" } });
    const made = await call();
    assert.ok(!made.isError, JSON.stringify(made));
    assert.match(asked[0].message, /^Sinew asks: may `[^`]+` call `self\.screen\.set_theme` on/);
    answer = () => ({ action: "decline" });
    const declined = await call();
    assert.ok(declined.isError && JSON.stringify(declined).includes("sinew approvals approve"), JSON.stringify(declined));
    const [{ id }] = JSON.parse(run("approvals", "--output", "json")).approvals;
    run("approvals", "deny", id);
  });
  await client.close();
}
await check("console", "what is allowed always is listed and revoked", async () => {
  const ended = callAsClient(board, "self.screen.set_brightness", "brightness=33");
  await page.goto(`${console_}approvals`);
  await page.getByRole("button", { name: /^Always/ }).click();
  assert.equal(await ended, 0);
  const row = page.getByRole("row").filter({ hasText: "when it is revoked" });
  await row.getByRole("button", { name: "Revoke" }).click();
  await row.getByRole("button", { name: "Press again to revoke" }).click();
  await page.getByText("What you allow for ten minutes or always").waitFor();
  assert.deepEqual(JSON.parse(run("approvals", "grants", "--output", "json")).grants, []);
});
await check("console", "the keyboard decides about the first call, once for each press", async () => {
  await page.goto(`${console_}approvals`);
  await page.getByText("No call waits.").waitFor();
  const [one, two] = [41, 42].map((brightness) => callAsClient(board, "self.screen.set_brightness", `brightness=${brightness}`));
  await page.getByText('"brightness": 41').waitFor();
  await page.getByText('"brightness": 42').waitFor();
  const first = await page.locator("section.waiting pre").first().textContent();
  await page.keyboard.down("a");
  for (let times = 0; times < 20; times += 1) await page.keyboard.down("a");
  await page.keyboard.up("a");
  // The key that was held down decided about the first call alone.
  await page.getByText(first).waitFor({ state: "detached" });
  assert.equal(await page.locator("section.waiting").count(), 1);
  await page.keyboard.press("a");
  await page.getByRole("alert").filter({ hasText: "The list just moved" }).waitFor();
  await page.keyboard.press("d");
  await page.getByText("No call waits.").waitFor();
  const codes = await Promise.all([one, two]);
  assert.deepEqual(codes.toSorted(), [0, 77], "one was allowed and one denied");
});
await check("console", "nobody allows a call of their own", async () => {
  const own = spawn(gateway.sinew, ["call", board, "self.screen.set_brightness", "brightness=43"], { env: gateway.env, stdio: "ignore" });
  const ended = new Promise((done) => own.on("exit", done));
  await page.goto(`${console_}approvals`);
  await page.getByRole("button", { name: "Allow once" }).click();
  await page.getByRole("alert").filter({ hasText: "somebody else approves it" }).waitFor();
  await page.getByRole("button", { name: "Deny" }).click();
  assert.equal(await ended, 77);
  assert.match(errors.splice(0).join(), /^Failed to load resource: .*403[^,]*$/);
});
await check("console", "a device arrives and leaves while somebody looks", async () => {
  await page.goto(`${console_}devices`);
  await page.getByRole("link", { name: board }).waitFor();
  // Its hardware address is made from the number.
  const sim = spawn(gateway.sinew, ["sim", "board", "--first", "119"], { env: gateway.env, stdio: "ignore" });
  const row = page.getByRole("row").filter({ hasText: "board-000077" });
  await row.filter({ hasText: "ready" }).waitFor();
  sim.kill();
  await row.filter({ hasText: "away" }).waitFor();
});
await check("console", "a tap on the picture of the phone is one call", async () => {
  await page.goto(`${console_}phone?id=virtual-phone`);
  const picture = page.getByAltText("The screen of the phone");
  await page.waitForFunction(() => document.querySelector(".screen img")?.naturalWidth > 0 && document.querySelectorAll(".elements button").length > 0);
  if (pictures) await page.screenshot({ path: `${pictures}/phone.png` });
  const before = records("virtual-phone", "tap").length;
  const box = await picture.boundingBox();
  await page.mouse.click(box.x + box.width / 2, box.y + box.height * 0.6);
  await page.getByRole("status").filter({ hasText: "Tapped" }).waitFor({ state: "attached" });
  const taps = records("virtual-phone", "tap");
  assert.equal(taps.length, before + 1);
  assert.equal(taps[0].door, "console");
});
await check("console", "the phone is used with the keyboard alone", async () => {
  const presses = () => records("virtual-phone", "click_element").length;
  const before = presses();
  const element = page.locator(".elements button", { hasText: "Notes" }).first();
  await element.focus();
  // Where it is on the picture is shown to those who see it.
  await page.locator(".screen rect").waitFor({ state: "attached" });
  await page.keyboard.press("Enter");
  await page.getByRole("status").filter({ hasText: "Tapped Notes" }).waitFor({ state: "attached" });
  assert.equal(presses(), before + 1);
});
await check("console", "the live view is one record of the audit, and the page takes a phone over", async () => {
  const views = () => records("virtual-phone", "capture_screenshot").filter((one) => one.door === "console");
  assert.equal(views().length, 1, JSON.stringify(views()));
  const reserved = await fetch(`${gateway.url}/api/v1/devices/virtual-phone/reserve`, { method: "POST", headers: { Authorization: `Bearer ${gateway.token}`, "Content-Type": "application/json" }, body: JSON.stringify({ seconds: 300, wait: 20, purpose: "a test" }) });
  assert.ok(reserved.ok, await reserved.text());
  await page.goto(`${console_}phone?id=virtual-phone`);
  await page.getByText(/^Held by/).waitFor();
  if (pictures) await page.screenshot({ path: `${pictures}/phone-held.png` });
  await page.getByRole("button", { name: "Take over" }).click();
  await page.getByRole("button", { name: /Press again: the holder loses the phone/ }).click();
  await page.getByText(/^You have it/).waitFor();
  await page.getByRole("button", { name: "Release" }).click();
  await page.getByText("Nobody has it to themselves.").waitFor();
});
await check("console", "a lease is broken on the page of its device", async () => {
  await page.goto(`${console_}device?id=${board}`);
  await page.getByText("Hardware id").or(page.getByText("Since")).first().waitFor();
  // The page hears of the lease by itself.
  await fetch(`${gateway.url}/api/v1/devices/${board}/reserve`, { method: "POST", headers: { Authorization: `Bearer ${gateway.token}`, "Content-Type": "application/json" }, body: JSON.stringify({ seconds: 300 }) });
  await page.getByRole("button", { name: "Break the lease" }).click();
  await page.getByRole("button", { name: /Press again: the holder loses the device/ }).click();
  // Whoever broke it has the device for a moment.
  await page.getByText("Held by").waitFor({ state: "detached" });
  const told = spawnSync(gateway.sinew, ["call", board, "self.audio_speaker.set_volume", "volume=30"], { env: { ...gateway.env, SINEW_URL: gateway.url, SINEW_TOKEN: gateway.token }, encoding: "utf8" });
  assert.ok(told.status !== 0 && told.stderr.includes("from you"), told.stderr);
});
await check("console", "an administrator confirms a call that the policy asks about", async () => {
  await page.goto(`${console_}device?id=${board}`);
  await page.getByRole("button", { name: /self\.screen\.set_brightness/ }).click();
  await page.getByLabel("brightness").fill("50");
  await page.getByRole("button", { name: "Call", exact: true }).click();
  await page.getByRole("button", { name: "Confirm and call" }).click();
  await page.getByText(/Answered in/).waitFor();
});
await check("console", "schemas, texts and answers of a hostile device are inert", async () => {
  for (const device of ["evil", "hostile"]) {
    await page.goto(`${console_}device?id=${device}`);
    await page.locator(".tool-head").first().waitFor();
    for (const tool of await page.locator(".tool-head").all()) await tool.click();
    assert.ok(await page.locator("*").count() < 20_000, "the page stays small");
  }
  await page.goto(`${console_}device?id=evil`);
  await page.locator(".tool-head").first().click();
  await page.getByRole("button", { name: "Call", exact: true }).first().click();
  await page.getByText(/Answered in/).waitFor();
  await page.getByText("Not shown: what is called image/svg+xml").waitFor();
  assert.equal(await page.locator(".result img, .result script, .result iframe, .result a").count(), 0);
  await page.getByText("⟨U+202E⟩").first().waitFor();
  assert.equal(await page.title().then((text) => text.includes("pwned")), false);
});
await check("console", "what hostile devices and callers write is inert on every page", async () => {
  const html = `<script>document.title='pwned'</script><img src=x onerror="document.title='pwned'">\u202e`;
  const strange = await fetch(`${process.env.SINEW_DEVICES_URL.replace("ws:", "http:").replace(/(:\/\/[^/]+).*/, "$1")}/xiaozhi/ota/`, { method: "POST", headers: { "Device-Id": "02:00:00:00:66:66", "Client-Id": "5f2a1c00-0000-4000-8000-000000006666", "Content-Type": "application/json" }, body: JSON.stringify({ application: { name: html, version: html }, board: { type: html, name: html, mac: "02:00:00:00:66:66" } }) });
  assert.ok(strange.ok, await strange.text());
  const denied = fetch(`${gateway.url}/api/v1/call`, { method: "POST", headers: { Authorization: `Bearer ${gateway.token}`, "Content-Type": "application/json" }, body: JSON.stringify({ device: "evil", tool: "attack1", arguments: { [`${html}\u200b`]: html } }) }).then((answer) => answer.status);
  const failed = await callAsClient("evil", html.replaceAll("\u202e", ""));
  assert.notEqual(failed, 0);
  const { id } = await waitingCall();
  const record = JSON.parse(run("audit", "--device", "evil", "--output", "json")).records[0];
  for (const name of ["", "devices", "devices?search=" + encodeURIComponent(html), "device?id=evil", "device?id=" + encodeURIComponent(html), "phone?id=" + encodeURIComponent(html), "calls", "calls?device=" + encodeURIComponent(html), "calls?kind=", `call?id=${record.id}`, "call?id=" + encodeURIComponent(html), "approvals", `approval?id=${id}`, "routines", "waiting", "policy", "tokens", "people"]) {
    await page.goto(console_ + name);
    await page.waitForFunction(() => !document.querySelector("#content > .quiet:only-child"));
    if (name === "waiting") await page.getByText("<script>").first().waitFor();
    if (name.startsWith("approval")) await page.getByText("<script>").first().waitFor();
    assert.equal(await page.locator("main script, main iframe, main object, main [onerror], main [onclick], main img[src]:not([src^='blob:'])").count(), 0, name);
    assert.ok(!(await page.title()).includes("pwned"), name);
    assert.ok(!(await page.locator("body").innerText()).includes("\u202e"), `${name} turns the text around`);
  }
  run("approvals", "deny", id);
  assert.equal(await denied, 403);
  // What does not exist was asked for.
  assert.deepEqual(errors.splice(0).filter((text) => !/^Failed to load resource: .*4\d\d/.test(text)), []);
});
await check("console", "a thousand calls at once leave a page that can be read and used", async () => {
  const api = (token, path, body, method = "POST") => fetch(`${gateway.url}/api/v1/${path}`, { method, headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" }, body: body && JSON.stringify(body) });
  const own = process.env.SINEW_OWN_TOKEN;
  const crowd = await Promise.all(Array.from({ length: 25 }, async (_, number) => (await api(own, "tokens", { role: "client", label: `crowd-${number}` })).json()));
  const ask = ({ token }, brightness) => api(token, "call", { device: board, tool: "self.screen.set_brightness", arguments: { brightness } }).then((answer) => answer.status);
  const held = crowd.flatMap((one) => Array.from({ length: 8 }, (_, brightness) => ask(one, brightness)));
  const waiting = async () => (await (await api(own, "approvals", undefined, "GET")).json()).approvals;
  for (let tries = 0; (await waiting()).length < 200 && tries < 100; tries += 1);
  for (const one of crowd) assert.deepEqual(new Set(await Promise.all(Array.from({ length: 32 }, (_, place) => ask(one, 10 + place)))), new Set([503]));
  await page.goto(`${console_}approvals`);
  await page.waitForFunction(() => document.querySelectorAll("section.waiting").length === 200);
  assert.match(await page.title(), /^\(200\)/);
  await page.keyboard.press("d");
  await page.waitForFunction(() => document.querySelectorAll("section.waiting").length === 199);
  for (const { id } of await waiting()) await api(own, `approvals/${id}`, { decision: "deny" });
  await page.getByText("No call waits.").waitFor();
  const statuses = await Promise.all(held);
  assert.ok(statuses.every((status) => status === 403 || status === 503), `${statuses}`);
  for (const { id } of crowd) await api(own, `tokens/${id}`, undefined, "DELETE");
});
await check("console", "a page of another port shows no console in a frame and changes nothing", async () => {
  const seen = [];
  const other = createServer((request, response) => {
    seen.push(request.url);
    response.setHeader("Content-Type", "text/html");
    const target = `${console_}api/v1/devices/${board}/rename`;
    response.end(request.url === "/frame" ? `<iframe id=f src="${console_}approvals"></iframe>`
      : `<form method=post enctype=text/plain action="${target}"><input name='{"name":"stolen","x":"' value='"}'></form><img src="${console_}api/v1/phones/virtual-phone/screen">`);
  });
  await new Promise((done) => other.listen(0, "127.0.0.1", done));
  const origin = `http://127.0.0.1:${other.address().port}`;
  const visit = await context.newPage();
  const newest = () => JSON.parse(run("audit", "--device", "virtual-phone", "--output", "json")).records[0].id;
  const before = newest();
  await visit.goto(`${origin}/frame`);
  const frame = await (await visit.locator("#f").elementHandle()).contentFrame();
  assert.equal(await frame.locator("main").count(), 0, "the frame stays empty");
  await visit.goto(`${origin}/post`);
  const posted = visit.waitForResponse((answer) => answer.url().endsWith("/rename"));
  await visit.evaluate(() => document.forms[0].submit());
  assert.equal((await posted).status(), 403);
  await visit.waitForURL(/rename$/);
  await visit.goto(`${origin}/post`);
  const read = await visit.evaluate(async (url) => {
    const ways = [fetch(url, { credentials: "include" }), fetch(url, { credentials: "include", mode: "no-cors" }), fetch(url, { method: "POST", credentials: "include", headers: { "X-Sinew": "1" } })];
    return Promise.all(ways.map((way) => way.then((answer) => answer.text()).catch(() => "nothing")));
  }, `${console_}api/v1/devices`);
  assert.deepEqual(read, ["nothing", "nothing", "nothing"]);
  await visit.close();
  other.close();
  const [device] = JSON.parse(run("devices", "--output", "json")).devices.filter((one) => one.id === board);
  assert.notEqual(device.name, "stolen");
  assert.equal(newest(), before, "no picture was taken for it");
});
await check("console", "a link of `sinew console` signs in", async () => {
  const other = await open({});
  await other.page.goto(run("console", "--print"));
  await other.page.getByRole("heading", { level: 1, name: "Overview" }).waitFor();
  assert.equal(new URL(other.page.url()).hash, "");
  assert.deepEqual(other.errors, []);
  await other.context.close();
});
await check("console", "signing in and deciding work without scripts", async () => {
  const passphrase = run("people", "add", "anton", "--role", "approver");
  const plain = await open({ javaScriptEnabled: false });
  await plain.page.goto(`${console_}login`);
  await plain.page.getByLabel("Name").fill("anton");
  await plain.page.getByLabel("Passphrase").fill(passphrase);
  await plain.page.getByRole("button", { name: "Sign in" }).first().click();
  const ended = callAsClient(board, "self.screen.set_brightness", "brightness=12");
  const { id } = await waitingCall();
  await plain.page.goto(`${console_}approval?id=${id}`);
  if (pictures) await plain.page.screenshot({ path: `${pictures}/approval.png` });
  await plain.page.getByRole("button", { name: "Allow once" }).click();
  await plain.page.getByRole("heading", { name: "Allowed" }).waitFor();
  assert.equal(await ended, 0);
  await plain.context.close();
});
await check("console", "where a person could decide, a token does not confirm its own call", async () => {
  await page.goto(`${console_}device?id=${board}`);
  await page.getByRole("button", { name: /self\.screen\.set_brightness/ }).click();
  await page.getByLabel("brightness").fill("51");
  await page.getByRole("button", { name: "Call", exact: true }).click();
  await page.getByText("somebody else decides").waitFor();
  await page.getByRole("button", { name: "Call and wait" }).click();
  const { id } = await waitingCall();
  run("approvals", "deny", id);
  await page.getByRole("alert").filter({ hasText: "did not approve" }).waitFor();
  assert.match(errors.splice(0).join(), /^Failed to load resource: .*403[^,]*$/);
});
await check("console", "somebody who is removed is signed out at once", async () => {
  const passphrase = run("people", "add", "vera", "--role", "viewer");
  const other = await open({});
  await other.page.goto(`${console_}login`);
  await other.page.getByLabel("Name").fill("vera");
  await other.page.getByLabel("Passphrase").fill(passphrase);
  await other.page.keyboard.press("Enter");
  await other.page.getByText(/of \d+ ready/).waitFor();
  run("people", "remove", "vera");
  await other.page.getByRole("heading", { name: "With a passphrase" }).waitFor();
  await other.context.close();
});
await check("console", "nothing moves where motion is unwanted", async () => {
  for (const name of ["", "devices", "approvals"]) {
    await page.goto(console_ + name);
    await page.waitForFunction(() => !document.querySelector("#content > .quiet:only-child"));
    const moving = await page.evaluate(() => [...document.querySelectorAll("*")].filter((one) => {
      const style = getComputedStyle(one);
      return style.animationName !== "none" || style.transitionDuration.split(",").some((time) => parseFloat(time) > 0) || style.scrollBehavior === "smooth";
    }).length + document.getAnimations().length);
    assert.equal(moving, 0, name);
  }
});
await check("console", "the keyboard reaches everything, from the link to the content on", async () => {
  await page.goto(`${console_}devices`);
  await page.getByRole("link", { name: board }).waitFor();
  await page.keyboard.press("Tab");
  assert.equal(await page.evaluate(() => document.activeElement.textContent), "Skip to the content");
  await page.keyboard.press("Enter");
  assert.equal(await page.evaluate(() => document.activeElement.id), "main");
  const wanted = await page.locator("main :is(a, button, input, select):visible").count();
  const reached = new Set();
  for (let presses = 0; presses < wanted * 2 && reached.size < wanted; presses += 1) {
    await page.keyboard.press("Tab");
    const place = await page.evaluate(() => [...document.querySelectorAll("main :is(a, button, input, select)")].indexOf(document.activeElement));
    if (place >= 0) reached.add(place);
  }
  assert.equal(reached.size, wanted);
});
await check("console", "nothing was reported as an error in the browser", async () => assert.deepEqual(errors, []));

// A call that waits, for the pages about it; it stays open for ten minutes.
callAsClient(board, "self.screen.set_brightness", "brightness=77");
const { id: waits } = await waitingCall();
run("call", board, "self.audio_speaker.set_volume", "volume=20");
const [{ id: made }] = records(board, "self.audio_speaker.set_volume");
const PAGES = ["", "devices", `device?id=${board}`, "phone?id=virtual-phone", "calls", `call?id=${made}`, "approvals", `approval?id=${waits}`, "routines", "waiting", "policy", "tokens", "people"];

/** What axe finds on a page, and whether it is wider than the window. */
async function isAccessible(page, name, width) {
  if (pictures) await page.screenshot({ path: `${pictures}/${name.split("?")[0]}-${width}.png`, fullPage: width.endsWith("1280") });
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => axe.run());
  assert.deepEqual(violations.map((one) => `${one.id}: ${one.nodes.slice(0, 3).map((node) => node.target).join(" ")}`), []);
  assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "the page scrolls sideways");
}
for (const colorScheme of ["light", "dark"]) {
  for (const width of [1280, 320]) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await page.setViewportSize({ width, height: 900 });
    for (const name of PAGES) {
      await check("console", `${name.replace(/id=\d+|id=[0-9a-f]{6,}$/, "id=…") || "overview"} is accessible, ${colorScheme}, ${width} px`, async () => {
        await page.goto(console_ + name);
        await page.waitForFunction(() => !document.querySelector("#content > .quiet:only-child"));
        if (name.startsWith("device?")) {
          await page.getByRole("button", { name: /set_volume/ }).click();
        }
        if (name.startsWith("phone")) await page.waitForFunction(() => document.querySelector(".screen img")?.naturalWidth > 0);
        if (name.startsWith("call?")) await page.getByText("What decided").waitFor();
        if (name.startsWith("approval")) await page.getByRole("button", { name: "Deny" }).waitFor();
        await isAccessible(page, name || "overview", `${colorScheme}-${width}`);
        assert.deepEqual(errors.splice(0), []);
      });
    }
    await check("console", `the login is accessible, ${colorScheme}, ${width} px`, async () => {
      const visitor = await open({ colorScheme, viewport: { width, height: 900 } });
      await visitor.page.goto(`${console_}login`);
      await visitor.page.getByLabel("Token").fill("wrong");
      await visitor.page.getByRole("button", { name: "Sign in" }).last().click();
      await visitor.page.getByRole("alert").waitFor();
      await isAccessible(visitor.page, "login", `${colorScheme}-${width}`);
      await visitor.context.close();
    });
  }
}
run("approvals", "deny", waits);
await browser.close();
finish();
