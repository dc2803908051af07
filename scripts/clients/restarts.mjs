// One official TypeScript client, which calls until its standard input ends; see restarts.py. With SINEW_URL it speaks
// HTTP, and begins a new session where its own is gone; else it starts `sinew stdio`.
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

const require = createRequire(`${process.env.SINEW_CLIENTS}/client/package.json`);
const { Client, StreamableHTTPClientTransport } = require("@modelcontextprotocol/client");
const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");

const [name, mode] = process.argv.slice(2);
const url = process.env.SINEW_URL;
// 90 s, like restarts.py.
const PATIENCE = 90_000;
let stopped = false;
process.stdin.on("end", () => { stopped = true; }).resume();
let closed = false;

const transport = () => url
  ? new StreamableHTTPClientTransport(new URL(`${url}/mcp`), {
    requestInit: { headers: { Authorization: `Bearer ${process.env.SINEW_TOKEN}` } },
  })
  : new StdioClientTransport({
    command: process.env.SINEW_BIN,
    args: ["stdio", "--client", name],
    env: { SINEW_STATE: process.env.SINEW_STATE, PATH: process.env.PATH },
  });

async function connect() {
  const deadline = Date.now() + PATIENCE;
  for (;;) {
    const client = new Client(
      { name, version: "1" },
      { versionNegotiation: { mode: mode === "legacy" ? mode : { pin: mode } } },
    );
    try {
      await client.connect(transport());
      closed = false;
      client.onclose = () => { closed = true; };
      return client;
    } catch (failure) {
      if (!url || stopped || Date.now() > deadline) throw failure;
      await sleep(50);
    }
  }
}

let client = await connect();
for (let number = 1; !stopped; number += 1) {
  if (closed && !url) process.exit(1);
  const call = `${name}-${number}`;
  const error = await client.callTool({ name: "count", arguments: { number: call } }).then(
    (result) => (result.isError ? result.content[0].text : ""),
    (failure) => String(failure),
  );
  console.log(`${call} ${error.replaceAll("\n", " ")}`);
  if (error && url && !stopped) {
    client.onclose = undefined;
    await client.close().catch(() => {});
    client = await connect().catch((failure) => stopped ? client : Promise.reject(failure));
  }
  await sleep(50);
}
await client.close();
