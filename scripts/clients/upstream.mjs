// Servers of the official TypeScript SDK that the gateway calls: one on stdio, one over Streamable HTTP with sessions.
// With the argument `serve` this file is the server on stdio.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { check, finish } from "./checks.mjs";

const require = createRequire(`${process.env.SINEW_CLIENTS}/sdk/package.json`);
const { McpServer } = require("@modelcontextprotocol/sdk/server/mcp.js");
const { StdioServerTransport } = require("@modelcontextprotocol/sdk/server/stdio.js");
const { StreamableHTTPServerTransport } = require("@modelcontextprotocol/sdk/server/streamableHttp.js");
const { z } = require("zod");

function calculator() {
  const server = new McpServer({ name: "node-calculator", version: "3.2.1" });
  server.registerTool("add", {
    description: "Add two numbers",
    inputSchema: { a: z.number(), b: z.number().max(100) },
    outputSchema: { sum: z.number() },
    annotations: { readOnlyHint: true },
  }, async ({ a, b }) => ({ content: [{ type: "text", text: String(a + b) }], structuredContent: { sum: a + b } }));
  server.registerTool("fail", { description: "Fail always", inputSchema: {} }, async () => {
    throw new Error("the abacus is broken");
  });
  const learn = () => server.registerTool("negate", {
    description: "Negate a number", inputSchema: { a: z.number() }, annotations: { readOnlyHint: true },
  }, async ({ a }) => ({ content: [{ type: "text", text: String(-a) }] }));
  // A list that changes while somebody is connected.
  server.registerTool("learn", { description: "Learn to negate", inputSchema: {} }, async () => {
    learn();
    return { content: [{ type: "text", text: "learned" }] };
  });
  return server;
}

if (process.argv[2] === "serve") {
  await calculator().connect(new StdioServerTransport());
} else {
  await main();
}

async function main() {
  const sessions = new Map();
  const web = createServer(async (request, response) => {
    const session = request.headers["mcp-session-id"];
    let transport = sessions.get(session);
    if (session && !transport) {
      response.writeHead(404).end();
      return;
    }
    if (!transport) {
      transport = new StreamableHTTPServerTransport({
        sessionIdGenerator: randomUUID,
        onsessioninitialized: (id) => sessions.set(id, transport),
      });
      await calculator().connect(transport);
    }
    await transport.handleRequest(request, response);
  });
  await new Promise((done) => web.listen(0, "127.0.0.1", done));
  const folder = await mkdtemp(join(tmpdir(), "sinew-upstream-"));
  const config = join(folder, "sinew.toml");
  const command = JSON.stringify([process.execPath, fileURLToPath(import.meta.url), "serve"]);
  await writeFile(config, `[[servers]]
name = "on-stdio"
command = ${command}

[[servers]]
name = "over-http"
url = "http://127.0.0.1:${web.address().port}/mcp"
`);
  const { SINEW_URL, SINEW_TOKEN, ...others } = process.env;
  const env = { ...others, SINEW_STATE: join(folder, "state") };
  const free = ["--listen", "127.0.0.1:0", "--devices", "127.0.0.1:0", "--mqtt", "off"];
  const gateway = spawn(process.env.SINEW_BIN, ["serve", "--config", config, ...free, "--output", "json"], {
    env: { ...env, SINEW_LOG: "warn" }, stdio: ["ignore", "pipe", "inherit"],
  });
  await new Promise((started) => createInterface(gateway.stdout).once("line", started));

  async function sinew(...words) {
    const run = promisify(execFile)(process.env.SINEW_BIN, [...words, "--output", "json"], { env });
    const { stdout, stderr } = await run.catch((failure) => failure);
    return { out: stdout ? JSON.parse(stdout) : undefined, err: stderr };
  }
  async function until(what, look) {
    for (let tries = 0; tries < 200; tries += 1) {
      if (await look()) return;
      await new Promise((again) => setTimeout(again, 100));
    }
    assert.fail(`${what} did not happen`);
  }

  for (const name of ["on-stdio", "over-http"]) {
    const label = `TypeScript server, ${name}`;
    const find = async () => (await sinew("devices")).out.devices.find((device) => device.id === name);
    await check(label, "becomes a device with the server's version", async () => {
      await until("ready", async () => (await find())?.state === "ready");
      const device = await find();
      assert.equal(device.family, "server");
      assert.match(JSON.stringify(device), /3\.2\.1/);
    });
    await check(label, "a call answers with text and structured content", async () => {
      const { out, err } = await sinew("call", name, "add", "a=40", "b=2");
      assert.equal(out?.content[0].text, "42", err);
      assert.deepEqual(out.structuredContent, { sum: 42 });
    });
    await check(label, "a wrong argument is refused by name before it is sent", async () => {
      const { out, err } = await sinew("call", name, "add", "a=40", "b=2000");
      assert.match(JSON.stringify(out) + err, /`b`/);
    });
    await check(label, "a failing tool is a failed call with its message", async () => {
      const { out, err } = await sinew("call", name, "fail");
      assert.match(JSON.stringify(out) + err, /the abacus is broken/);
    });
    await check(label, "a new tool is offered at once", async () => {
      await sinew("call", name, "learn");
      await until("the new tool", async () => (await sinew("call", name, "negate", "a=7")).out?.content?.[0].text === "-7");
    });
  }
  await check("TypeScript server, over-http", "a lost session is opened again", async () => {
    sessions.clear();
    await until("the next session", async () => (await sinew("call", "over-http", "add", "a=1", "b=2")).out?.content?.[0].text === "3");
  });
  const ended = new Promise((done) => gateway.once("exit", done));
  gateway.kill("SIGTERM");
  await ended;
  web.closeAllConnections();
  web.close();
  await rm(folder, { recursive: true });
  finish();
}
