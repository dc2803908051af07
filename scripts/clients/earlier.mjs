// An earlier release of the official TypeScript SDK, over stdio and, where it has it, over Streamable HTTP.
// Usage: earlier.mjs FOLDER, where FOLDER is below $SINEW_CLIENTS.
import { createRequire } from "node:module";
import { checks, finish, gateway } from "./checks.mjs";

const folder = process.argv[2];
const revision = { "sdk-1.0": "2024-11-05", "sdk-1.12": "2025-03-26", "sdk-1.20": "2025-06-18" }[folder];
const require = createRequire(`${gateway.clients}/${folder}/package.json`);
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StdioClientTransport } = require("@modelcontextprotocol/sdk/client/stdio.js");

async function run(label, transport) {
  // Releases before 1.10 want the capabilities named.
  const client = new Client({ name: "sinew-test", version: "1" }, { capabilities: {} });
  await client.connect(transport);
  await checks(label, {
    revision,
    version: () => undefined,
    list: async () => (await client.listTools()).tools,
    call: (name, args) => client.callTool({ name, arguments: args }),
  });
  await client.close();
}

await run(`TypeScript ${folder}, stdio`, new StdioClientTransport({
  command: gateway.sinew, args: ["stdio"], env: gateway.env,
}));
let http;
try {
  http = require("@modelcontextprotocol/sdk/client/streamableHttp.js").StreamableHTTPClientTransport;
} catch {
  console.error(`TypeScript ${folder} has no Streamable HTTP`);
}
if (http) {
  await run(`TypeScript ${folder}, HTTP`, new http(new URL(`${gateway.url}/mcp`), {
    requestInit: { headers: { Authorization: `Bearer ${gateway.token}` } },
  }));
}
finish();
