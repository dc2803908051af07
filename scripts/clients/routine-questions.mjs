// A routine whose second step asks the caller, through an official client of both eras: the first step is carried out
// once, the answer reaches the step that asked, and the last request once more does nothing.
// With the argument `serve` this file is the server on stdio that counts and asks.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { check, finish } from "./checks.mjs";

const sdk = createRequire(`${process.env.SINEW_CLIENTS}/sdk/package.json`);

if (process.argv[2] === "serve") {
  const { McpServer } = sdk("@modelcontextprotocol/sdk/server/mcp.js");
  const { StdioServerTransport } = sdk("@modelcontextprotocol/sdk/server/stdio.js");
  const server = new McpServer({ name: "asking-house", version: "1.0.0" });
  let counted = 0;
  const result = (value) => ({ content: [{ type: "text", text: JSON.stringify(value) }], structuredContent: value });
  const annotations = { readOnlyHint: true };
  server.registerTool("count", { description: "Count calls", inputSchema: {}, annotations }, async () => {
    counted += 1;
    return result({ counted });
  });
  server.registerTool("ask", { description: "Ask for a colour", inputSchema: {}, annotations }, async () => {
    const requestedSchema = { type: "object", properties: { colour: { type: "string" } }, required: ["colour"] };
    const answer = await server.server.elicitInput({ message: "Which colour?", requestedSchema });
    return result({ colour: answer.content?.colour ?? answer.action });
  });
  await server.connect(new StdioServerTransport());
} else {
  await main();
}

async function main() {
  const { Client, StreamableHTTPClientTransport } =
    createRequire(`${process.env.SINEW_CLIENTS}/client/package.json`)("@modelcontextprotocol/client");
  const folder = await mkdtemp(join(tmpdir(), "sinew-questions-"));
  const config = join(folder, "sinew.toml");
  const command = JSON.stringify([process.execPath, fileURLToPath(import.meta.url), "serve"]);
  await writeFile(config, `[[servers]]\nname = "house"\ncommand = ${command}\n`);
  await mkdir(join(folder, "routines"));
  const { SINEW_URL, SINEW_TOKEN, ...others } = process.env;
  const env = { ...others, SINEW_STATE: join(folder, "state") };
  const sinew = async (...words) => {
    const run = promisify(execFile)(process.env.SINEW_BIN, words, { env });
    return (await run.catch((failure) => assert.fail(failure.stdout + failure.stderr))).stdout;
  };
  await sinew("routine", "new", "choose", "--folder", join(folder, "routines"));
  const file = join(folder, "routines", "choose.md");
  const blank = (await readFile(file, "utf8")).replaceAll("{{", "").replaceAll("}}", "");
  await writeFile(file, blank.replace(/```yaml[^]*```/, `\`\`\`yaml
- call: count
  device: house
- call: ask
  device: house
  as: chosen
- expect: {value: "\${chosen.colour}", is: blue}
- return: {status: success}
\`\`\``));
  const free = ["--listen", "127.0.0.1:0", "--devices", "127.0.0.1:0", "--mqtt", "off"];
  const gateway = spawn(process.env.SINEW_BIN, ["serve", "--config", config, ...free, "--output", "json"], {
    env: { ...env, SINEW_LOG: "warn" }, stdio: ["ignore", "pipe", "inherit"],
  });
  const page = JSON.parse(await new Promise((started) => createInterface(gateway.stdout).once("line", started)));

  process.on("exit", () => gateway.kill());
  const token = (await readFile(join(folder, "state", "token"), "utf8")).trim();
  const headers = { Authorization: `Bearer ${token}` };
  const counted = async () => JSON.parse(await sinew("call", "house", "count", "--output", "json")).structuredContent.counted;
  for (const mode of ["legacy", { pin: "2026-07-28" }]) {
    const label = `routine that asks (${mode.pin ?? mode})`;
    let asked = 0;
    const sent = [];
    const client = new Client({ name: "asked", version: "1" }, {
      versionNegotiation: { mode }, capabilities: { elicitation: {} },
    });
    client.setRequestHandler("elicitation/create", async (request) => {
      asked += 1;
      assert.match(request.params.message, /`ask` of house asks: Which colour/);
      return { action: "accept", content: { colour: "blue" } };
    });
    const watched = async (url, init) => {
      const response = await fetch(url, init);
      if (init?.method === "POST" && String(init.body).includes("tools/call")) sent.push({ url, init });
      return response;
    };
    await client.connect(new StreamableHTTPClientTransport(new URL(page.mcp_url ?? `${page.url}/mcp`), {
      requestInit: { headers }, fetch: watched,
    }));
    await check(label, "is listed with the tools of its steps", async () => {
      for (let tries = 0; tries < 200; tries += 1) {
        const names = (await client.listTools()).tools.map((tool) => tool.name);
        if (["choose", "count", "ask"].every((name) => names.includes(name))) return;
        await new Promise((again) => setTimeout(again, 100));
      }
      assert.fail("the routine or its server is not listed");
    });
    let before;
    await check(label, "asks once, goes on where it asked, and repeats no step", async () => {
      before = await counted();
      const result = await client.callTool({ name: "choose", arguments: {} });
      assert.ok(!result.isError, JSON.stringify(result));
      assert.equal(asked, 1);
      // The look at the number counts too.
      assert.equal((await counted()) - before, 2);
    });
    if (mode !== "legacy") {
      await check(label, "the request with the answer once more does nothing", async () => {
        const last = sent.at(-1);
        assert.match(String(last.init.body), /requestState/);
        before = await counted();
        const again = await (await fetch(last.url, last.init)).text();
        assert.match(again, /"status":\s*"success"|\\"status\\":/);
        assert.equal((await counted()) - before, 1);
      });
    }
    await client.close();
  }
  const ended = new Promise((done) => gateway.once("exit", done));
  gateway.kill("SIGTERM");
  await ended;
  await rm(folder, { recursive: true });
  finish();
}
