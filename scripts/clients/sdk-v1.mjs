// The official TypeScript SDK, version 1: the era of sessions, over HTTP and stdio.
import { createRequire } from "node:module";
import { checks, finish, gateway } from "./checks.mjs";

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

await run("TypeScript v1, HTTP", new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`), {
  requestInit: { headers: { Authorization: `Bearer ${gateway.token}` } },
}));
await run("TypeScript v1, stdio", new StdioClientTransport({
  command: gateway.sinew, args: ["stdio"], env: gateway.env,
}));
finish();
