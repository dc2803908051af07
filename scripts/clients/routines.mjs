// What an official client did once becomes a tool: recorded, replayed, proposed, and asked about once. Also prints what
// the same task costs by single calls, by run_steps and by a routine.
import assert from "node:assert/strict";
import { spawn, execFile } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";
import { promisify } from "node:util";
import { check, finish, gateway } from "./checks.mjs";

const require = createRequire(`${gateway.clients}/client/package.json`);
const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
const run = promisify(execFile);
const sinew = async (...args) => (await run(gateway.sinew, args, { env: gateway.env })).stdout;
const folder = `${gateway.state}/demo/routines`;

let calls = 0;
let bytes = 0;
const connect = async (mode) => {
  const client = new Client({ name: "routines", version: "1" }, { versionNegotiation: { mode } });
  const requestInit = { headers: { Authorization: `Bearer ${gateway.token}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`), { requestInit }));
  return client;
};
const client = await connect({ pin: "2026-07-28" });
const label = "routines";
const text = (result) => result.content.filter((item) => item.type === "text").map((item) => item.text).join("\n");
const call = async (name, args = {}) => {
  const request = { name, arguments: args };
  const result = await client.callTool(request);
  calls += 1;
  bytes += JSON.stringify(request).length + JSON.stringify(result).length;
  assert.ok(!result.isError, text(result));
  return result;
};
const find = async (words) => {
  const line = text(await call("get_screen")).split("\n").find((line) => line.includes(words));
  assert.ok(line, `${words} is not on the screen`);
  return line.split(" ")[0];
};
const listed = async (name) => {
  for (let tries = 0; tries < 100; tries += 1) {
    if ((await client.listTools()).tools.some((tool) => tool.name === name)) return;
    await sleep(100);
  }
  assert.fail(`${name} is not listed`);
};
/** Approves the call of this tool that waits, or will. */
const approve = async (tool) => {
  for (let tries = 0; tries < 200; tries += 1) {
    const waiting = JSON.parse(await sinew("approvals", "--json")).approvals
      .find((call) => call.tool === tool || call.tool === `${tool} (its steps)`);
    if (waiting) return sinew("approvals", "approve", waiting.id);
    await sleep(100);
  }
  assert.fail(`no call of ${tool} waits for approval`);
};
const leave = async () => {
  await call("press_back", { settle: true });
  await call("press_back", { settle: true });
};
/** Writes a note as a model would, looking before each step. */
const write = async (title, body) => {
  await call("open_app", { app: "Notes", settle: true });
  await call("click_element", { element_id: await find("New note"), settle: true });
  await call("set_text", { element_id: await find("Title"), text: title });
  await call("set_text", { element_id: await find("Write something"), text: body });
  assert.match(text(await call("get_screen")), new RegExp(body));
  await leave();
};

const costs = [];
const measure = async (what, work) => {
  [calls, bytes] = [0, 0];
  await work();
  costs.push(`${what}: ${calls} calls, ${bytes} bytes`);
};

await check(label, "what a client does is recorded", async () => {
  const recording = spawn(gateway.sinew, ["routine", "record", "jot_down", "--folder", folder], { env: gateway.env });
  await new Promise((resolve) => recording.stderr.on("data", (data) => String(data).includes("Press Enter") && resolve()));
  await measure("single calls", () => write("Groceries", "Lemons"));
  recording.stdin.end("\n");
  const code = await new Promise((resolve) => recording.on("close", resolve));
  assert.equal(code, 0);
  const file = await readFile(`${folder}/jot_down.md`, "utf8");
  assert.match(file, /selector: \{id: "new_note"\}/);
  assert.doesNotMatch(file, /element_id/);
});
await check(label, "it is a tool, and does the same again", async () => {
  await listed("jot_down");
  await measure("routine", () => call("jot_down", { note_title: "Tools", note_body: "A hammer" }));
  assert.match(text(await call("get_screen")), /A hammer/);
});
await check(label, "run_steps does the same with the steps in the call", async () => {
  const on = (id) => ({ selector: { id } });
  const steps = [
    { tool: "open_app", arguments: { app: "Notes", settle: true } },
    { tool: "click_element", arguments: { ...on("new_note"), settle: true } },
    { tool: "set_text", arguments: { ...on("note_title"), text: "Steps" } },
    { tool: "set_text", arguments: { ...on("note_body"), text: "In one call" } },
    { expect: { screen: { text: "In one call" } } },
    { tool: "press_back", arguments: { settle: true } },
    { tool: "press_back", arguments: { settle: true } },
  ];
  const first = await client.callTool({ name: "run_steps", arguments: { steps } });
  if (!/sinew approvals approve/.test(text(first))) assert.ok(!first.isError, text(first));
  else await approve("run_steps");
  await measure("run_steps", () => call("run_steps", { steps }));
});
await check(label, "a screen that changed fails with what is most like the element", async () => {
  const file = (await readFile(`${folder}/jot_down.md`, "utf8")).replaceAll("jot_down", "jot_elsewhere");
  const moved = file.replace('selector: {id: "new_note"}', 'selector: {description: "New notes", exact: true}');
  await writeFile(`${folder}/jot_elsewhere.md`, moved);
  await listed("jot_elsewhere");
  const result = await client.callTool({ name: "jot_elsewhere", arguments: { note_title: "a", note_body: "b" } });
  assert.ok(result.isError);
  assert.match(text(result), /click_element[^]*Most like it:[^]*"New note"/);
});
const careful = (await readFile(`${folder}/write_note.md`, "utf8"))
  .replaceAll("write_note", "careful")
  .replace(/```yaml[^]*```/, `\`\`\`yaml
- call: write_note
  device: routines
  arguments: {title: "\${title}", text: "\${text}"}
  as: note
- call: close_app
  device: virtual-phone
  arguments: {app: "dev.sinew.\${note.title}"}
- return: {status: success, title: "\${title}"}
\`\`\``);
await check(label, "a model proposes a routine, and a person accepts it", async () => {
  const proposed = client.callTool({ name: "save_routine", arguments: { name: "careful", file: careful } });
  await approve("save_routine");
  assert.ok(!(await proposed).isError, text(await proposed));
  await listed("careful");
});
for (const mode of ["legacy", { pin: "2026-07-28" }]) {
  await check(label, `a step that asks does not repeat those before it (${mode.pin ?? mode})`, async () => {
    const caller = await connect(mode);
    const count = async () => {
      const { records } = JSON.parse(await sinew("audit", "--limit", "500", "--json"));
      return records.filter((record) => record.name === "write_note").length;
    };
    const before = await count();
    const calling = caller.callTool({ name: "careful", arguments: { title: "notes", text: "x" } });
    await approve("careful");
    // What is closed is known after the first step only.
    await approve("careful");
    const result = await calling;
    assert.ok(!result.isError, text(result));
    assert.equal((await count()) - before, 1);
    await caller.close();
  });
}
costs.forEach((cost) => console.log(`     a note written and read back, ${cost}`));
await client.close();
finish();
