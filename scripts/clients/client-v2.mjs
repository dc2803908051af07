// The official TypeScript client, version 2: both eras, over HTTP and stdio.
import { createRequire } from "node:module";
import { checks, finish, gateway } from "./checks.mjs";

const require = createRequire(`${gateway.clients}/client/package.json`);
const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");

const http = () => new StreamableHTTPClientTransport(new URL(`${gateway.url}/mcp`), {
  requestInit: { headers: { Authorization: `Bearer ${gateway.token}` } },
});
const stdio = () => new StdioClientTransport({
  command: gateway.sinew, args: ["stdio"], env: gateway.env,
});

for (const [name, open] of [["HTTP", http], ["stdio", stdio]]) {
  for (const [mode, version] of [["legacy", "2025-11-25"], ["auto", "2026-07-28"], [{ pin: "2026-07-28" }, "2026-07-28"]]) {
    const client = new Client({ name: "sinew-test", version: "1" }, { versionNegotiation: { mode } });
    await client.connect(open());
    await checks(`TypeScript v2, ${name}, ${mode.pin ? "pinned" : mode}`, {
      version: () => client.getNegotiatedProtocolVersion(),
      list: async () => (await client.listTools()).tools,
      call: (name, args) => client.callTool({ name, arguments: args }),
    }, version);
    await client.close();
  }
}
finish();
