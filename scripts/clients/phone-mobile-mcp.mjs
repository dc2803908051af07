// mobile-mcp, a program that knows nothing of Sinew, driving the virtual phone through adb.
import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const { SINEW_CLIENTS, SINEW_PHONE } = process.env;
const from = createRequire(`${SINEW_CLIENTS}/mobile-mcp/package.json`);
const load = async (name) => import(pathToFileURL(from.resolve(name)));
const { Client } = await load("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = await load("@modelcontextprotocol/sdk/client/stdio.js");

// Its way over plain adb; the other one installs an agent of its own on the phone.
const env = { ...process.env, MOBILEMCP_LEGACY_ROBOT: "1", MOBILEMCP_DISABLE_TELEMETRY: "1" };
const transport = new StdioClientTransport({
  command: process.execPath,
  args: [`${SINEW_CLIENTS}/mobile-mcp/node_modules/@mobilenext/mobile-mcp/lib/index.js`],
  env,
  stderr: "ignore",
});
const client = new Client({ name: "sinew-check", version: "1.0.0" });
await client.connect(transport);

let failed = 0;
async function check(what, run) {
  try {
    await run();
    console.log(`ok   mobile-mcp: ${what}`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL mobile-mcp: ${what}: ${error.message.split("\n").slice(0, 8).join(" | ")}`);
  }
}
let calls = 0;
let bytes = 0;
const call = async (name, args = {}) => {
  const request = { name, arguments: { device: SINEW_PHONE, ...args } };
  const result = await client.callTool(request);
  calls += 1;
  bytes += JSON.stringify(request).length + JSON.stringify(result).length;
  const text = result.content.filter((item) => item.type === "text").map((item) => item.text).join("\n");
  assert.ok(!result.isError, text);
  return { text, content: result.content };
};
const elements = async () => (await call("mobile_list_elements_on_screen")).text;

await check("finds the phone", async () => {
  const { text } = await call("mobile_list_available_devices");
  assert.ok(text.includes(SINEW_PHONE), text);
});
await check("reads the size of the screen", async () => {
  assert.match((await call("mobile_get_screen_size")).text, /1080.*2400/);
});
await check("opens an app and reads its elements", async () => {
  await call("mobile_launch_app", { packageName: "com.android.calculator2" });
  assert.match(await elements(), /equals/i);
});
await check("taps what it read", async () => {
  await call("mobile_launch_app", { packageName: "dev.sinew.notes" });
  const line = (await elements()).split(/\n|(?=\{)/).find((line) => line.includes("New note"));
  const [x, y] = middle(line);
  await call("mobile_click_on_screen_at_coordinates", { x, y });
  assert.match(await elements(), /note_body/);
});
await check("types, and reads it back", async () => {
  await call("mobile_type_keys", { text: "bread and butter", submit: false });
  assert.match(await elements(), /bread and butter/);
});
await check("presses a button", async () => {
  await call("mobile_press_button", { button: "HOME" });
  assert.match(await elements(), /Calculator/);
});
await check("writes a note and reads it back, as routines.mjs does", async () => {
  const tap = async (words) => {
    const line = (await elements()).split(/\n|(?=\{)/).find((line) => line.includes(words));
    const [x, y] = middle(line);
    await call("mobile_click_on_screen_at_coordinates", { x, y });
  };
  await call("mobile_launch_app", { packageName: "dev.sinew.notes" });
  await call("mobile_press_button", { button: "BACK" });
  [calls, bytes] = [0, 0];
  await call("mobile_launch_app", { packageName: "dev.sinew.notes" });
  await tap("New note");
  await tap("note_title");
  await call("mobile_type_keys", { text: "Groceries", submit: false });
  await tap("note_body");
  await call("mobile_type_keys", { text: "Lemons", submit: false });
  assert.match(await elements(), /Lemons/);
  await call("mobile_press_button", { button: "BACK" });
  await call("mobile_press_button", { button: "BACK" });
  console.log(`     a note written and read back, mobile-mcp: ${calls} calls, ${bytes} bytes`);
});
await check("takes a picture", async () => {
  const { content } = await call("mobile_take_screenshot");
  const image = content.find((item) => item.type === "image");
  assert.ok(image && Buffer.from(image.data, "base64").length > 5000, "no picture");
});

/// The middle of an element, in either of the two forms mobile-mcp has printed it.
function middle(line) {
  assert.ok(line, "the element is not listed");
  const number = (name) => Number(line.match(new RegExp(`"?${name}"?[:=]\\s*(-?\\d+)`))?.[1]);
  const [x, y, width, height] = ["x", "y", "width", "height"].map(number);
  if ([x, y, width, height].every(Number.isFinite)) return [x + width / 2, y + height / 2];
  const [, left, top] = line.match(/\(?(-?\d+)\s*,\s*(-?\d+)\)?/) ?? [];
  assert.ok(left && top, `no coordinates in ${line}`);
  return [Number(left), Number(top)];
}

await client.close();
process.exit(failed ? 1 : 0);
