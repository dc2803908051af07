// The official TypeScript SDK, version 1: the era of sessions, over HTTP and stdio.
import { createRequire } from "node:module";
import assert from "node:assert/strict";
import { check, checks, finish, gateway } from "./checks.mjs";

const require = createRequire(`${gateway.clients}/sdk/package.json`);
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");

async function run(label, transport) {
  const client = new Client({ name: "sinew-test", version: "1" });
  await client.connect(transport);
  await checks(label, {
    version: () => transport.protocolVersion ?? transport._protocolVersion,
    list: async () => (await client.listTools()).tools,
    call: (name, args) => client.callTool({ name, arguments: args }),
  }, label.includes("HTTP") ? "2025-11-25" : undefined);
  await client.close();
}

const http = () => new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`), {
  requestInit: { headers: { Authorization: `Bearer ${gateway.token}` } },
});

// A tool that reports nothing and takes longer than the client's timer, and than calls without progress may take.
const slow = check("TypeScript v1, HTTP", "reports of progress keep a long call alive", async () => {
  const client = new Client({ name: "sinew-test", version: "1" });
  await client.connect(http());
  const name = (await client.listTools()).tools.find((tool) => tool.name.endsWith("bake"))?.name;
  let reports = 0;
  const patience = { timeout: 10_000, resetTimeoutOnProgress: true, onprogress: () => { reports += 1; } };
  const result = await client.callTool({ name, arguments: {} }, undefined, patience);
  assert.equal(result.content[0].text, "done", JSON.stringify(result));
  assert.ok(reports >= 6, `${reports} reports in 33 s`);
  await client.close();
});
await run("TypeScript v1, HTTP", http());
await run("TypeScript v1, stdio", new StdioClientTransport({
  command: gateway.sinew, args: ["stdio"], env: gateway.env,
}));
await slow;
finish();
