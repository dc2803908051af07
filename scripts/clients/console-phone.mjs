// The page of a phone, in headless Chromium: what is on the picture, what is beside it, and who is asked.
import assert from "node:assert/strict";
import { browser, console_, openSignedIn, pictures, records, run, waitingCall } from "./browser.mjs";
import { check, finish } from "./checks.mjs";

const phone = "virtual-phone";
const { page, errors } = await openSignedIn({ colorScheme: "light" });
const picture = page.getByAltText("The screen of the phone");
const element = (name) => page.locator(".elements button", { hasText: name });
const said = (text) => page.getByRole("status").filter({ hasText: text }).waitFor({ state: "attached" });
const callPhone = (tool, ...args) => run("call", phone, tool, ...args);
const gestures = ["input_text", "tap", "click_element", "long_press", "swipe", "insert_text", "press_key"];
const made = () => records(phone, ...gestures).filter((one) => one.door === "console").length;

/** The last record of a tool, once there are more of them. */
async function newest(tool, count) {
  for (let tries = 0; tries < 100; tries += 1) {
    const found = records(phone, tool);
    if (found.length > count) return found[0];
  }
  throw new Error(`no new call of ${tool}`);
}

callPhone("press_home");
await check("console", "the elements beside the picture follow the screen by themselves", async () => {
  await page.goto(`${console_}phone?id=${phone}`);
  await element("Notes").first().waitFor();
  callPhone("open_app", "app=Notes");
  await element("New note").waitFor();
  assert.equal(await element("Calculator").count(), 0, "nothing of the other screen is left");
});
await check("console", "an element that is gone when it is pressed is not pressed, and nothing else is", async () => {
  const before = made();
  let isPressed = false;
  await page.route("**/api/v1/call", async (route) => {
    // The screen changes between the press and the look.
    if (isPressed && route.request().postDataJSON().tool === "get_accessibility_tree") callPhone("press_home");
    await route.continue();
  });
  await element("New note").first().focus();
  isPressed = true;
  await page.keyboard.press("Enter");
  await page.getByRole("alert").filter({ hasText: /is not on the screen any more, so nothing was pressed/ }).waitFor();
  isPressed = false;
  await page.unrouteAll({ behavior: "wait" });
  assert.equal(made(), before);
  await element("Calculator").first().waitFor();
});
await check("console", "the focus stays with the element, and goes to the list when it is gone", async () => {
  callPhone("open_app", "app=Notes");
  await element("New note").first().focus();
  callPhone("press_home");
  await element("Calculator").first().waitFor();
  assert.equal(await page.evaluate(() => document.activeElement.className), "elements");
});
await check("console", "the picture and the places on it follow a phone that is turned", async () => {
  // What a phone of 1080 × 2400 pixels shows and says while somebody turns it. First it says what was.
  const turned = await page.evaluate(() => {
    const canvas = Object.assign(document.createElement("canvas"), { width: 900, height: 405 });
    canvas.getContext("2d").fillRect(100, 100, 300, 100);
    return canvas.toDataURL("image/jpeg").split(",")[1];
  });
  const sizes = [{ width: 1080, height: 2400 }, { width: 2400, height: 1080 }];
  const taps = [];
  await page.route("**/screen?*", (route) => route.fulfill(route.request().url().includes("known=turned") ? { status: 304 } : { body: Buffer.from(turned, "base64"), contentType: "image/jpeg", headers: { etag: '"turned"' } }));
  await page.route("**/api/v1/call", (route) => {
    const { tool, arguments: args } = route.request().postDataJSON();
    if (tool === "tap") taps.push(args);
    if (tool === "get_screen_info") return route.fulfill({ json: { content: [], structuredContent: sizes.length > 1 ? sizes.shift() : sizes[0] } });
    return tool === "tap" ? route.fulfill({ json: { content: [] } }) : route.continue();
  });
  const viewBox = (wanted) => page.waitForFunction((wanted) => document.querySelector(".screen svg").getAttribute("viewBox") === wanted, wanted);
  await viewBox("0 0 2400 1080");
  if (pictures) await page.screenshot({ path: `${pictures}/phone-turned.png` });
  const box = await picture.boundingBox();
  assert.ok(box.width > box.height);
  await page.mouse.click(box.x + box.width * 0.9, box.y + box.height / 2);
  await said("Tapped");
  assert.equal(taps.length, 1);
  assert.ok(Math.abs(taps[0].x - 2160) <= 5 && Math.abs(taps[0].y - 540) <= 5, JSON.stringify(taps));
  // A finger that went down before the phone was turned back does nothing.
  await page.mouse.move(box.x + box.width * 0.9, box.y + box.height / 2);
  await page.mouse.down();
  await page.unroute("**/api/v1/call");
  await page.unroute("**/screen?*");
  await viewBox("0 0 1080 2400");
  const before = made();
  await page.mouse.up();
  await page.keyboard.press("Shift");
  assert.equal(made(), before);
});
await check("console", "what is typed on the picture is one call for each text and each key", async () => {
  callPhone("open_app", "app=Notes");
  await element("New note").first().waitFor();
  await element("New note").first().focus();
  await page.keyboard.press("Enter");
  await said("Tapped");
  await element("note_body").or(element("Note")).first().waitFor();
  await picture.focus();
  const count = (tool) => records(phone, tool).length;
  const [texts, keys] = [count("input_text"), count("press_key")];
  await page.keyboard.type("Seeds and soil");
  await page.keyboard.press("Enter");
  await said("Pressed ENTER");
  assert.equal(count("input_text"), texts + 1);
  assert.equal(count("press_key"), keys + 1);
  await element("Seeds and soil").first().waitFor();
  if (pictures) await page.screenshot({ path: `${pictures}/phone-typed.png` });
  await page.keyboard.press("Tab");
  assert.notEqual(await page.evaluate(() => document.activeElement.tagName), "IMG", "Tab leads on");
  assert.equal(count("press_key"), keys + 1);
  callPhone("press_home");
});
await check("console", "a text is inserted at the caret where the phone offers that", async () => {
  const inserted = [];
  await page.route("**/api/v1/tools?*", (route) => route.fulfill({ json: { tools: [{ own_name: "insert_text" }] } }));
  await page.route("**/api/v1/policy/explain", (route) => route.fulfill({ json: { verdict: "allow" } }));
  await page.route("**/api/v1/call", (route) => {
    const { tool, arguments: args } = route.request().postDataJSON();
    if (tool !== "insert_text") return route.continue();
    inserted.push(args);
    return route.fulfill({ json: { content: [] } });
  });
  await page.reload();
  await page.getByLabel("Text for the focused field").fill("more");
  await page.getByRole("button", { name: "Type", exact: true }).click();
  await said("Typed");
  assert.deepEqual(inserted, [{ text: "more" }]);
  for (const path of ["tools?*", "policy/explain", "call"]) await page.unroute(`**/api/v1/${path}`);
});

async function hold() {
  await page.locator(".screen svg[viewBox]").waitFor({ state: "attached" });
  const box = await picture.boundingBox();
  await page.mouse.move(box.x + box.width / 2, box.y + box.height * 0.4);
  await page.mouse.down();
  await page.evaluate(() => new Promise((done) => setTimeout(done, 700)));
  await page.mouse.up();
}
await check("console", "a gesture that the policy asks about is explained, and made when it is confirmed", async () => {
  // Somebody else who could decide.
  for (const { name } of JSON.parse(run("people", "--output", "json")).people) run("people", "remove", name);
  await page.goto(`${console_}phone?id=${phone}`);
  await element("Calculator").first().waitFor();
  const count = records(phone, "long_press").length;
  await hold();
  await page.getByText(/^The policy asks a person before this call/).waitFor();
  await page.getByText(/^Press and hold at \d+, \d+$/).waitFor();
  if (pictures) await page.screenshot({ path: `${pictures}/phone-asks.png` });
  assert.equal(records(phone, "long_press").length, count, "nothing was sent");
  await page.getByRole("button", { name: "Confirm and call" }).click();
  await said("Pressed and held");
  assert.equal((await newest("long_press", count)).outcome, "ok");
});
await check("console", "where somebody else decides about a gesture, the page waits and says so", async () => {
  callPhone("press_home");
  run("people", "add", "gesture-judge", "--role", "approver");
  await hold();
  await page.getByRole("button", { name: "Call and wait" }).click();
  await page.getByText("Nothing is sent yet").waitFor();
  const { id } = await waitingCall();
  // Who asks does not decide.
  run("approvals", "deny", id);
  await page.getByRole("alert").filter({ hasText: "did not approve" }).waitFor();
  await page.getByText("Nothing is sent yet").waitFor({ state: "detached" });
  run("people", "remove", "gesture-judge");
  assert.match(errors.splice(0).join(), /^Failed to load resource: .*403[^,]*$/);
});
await check("console", "nothing was reported as an error on the page of the phone", async () => assert.deepEqual(errors, []));
await browser.close();
finish();
