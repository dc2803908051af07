// One official TypeScript client over `sinew stdio`, which calls until its standard input ends; see restarts.py.
import { createRequire } from "node:module";
import { setTimeout as sleep } from "node:timers/promises";

const require = createRequire(`${process.env.SINEW_CLIENTS}/client/package.json`);
const { Client } = require("@modelcontextprotocol/client");
const { StdioClientTransport } = require("@modelcontextprotocol/client/stdio");

const [name, mode] = process.argv.slice(2);
const client = new Client(
  { name, version: "1" },
  { versionNegotiation: { mode: mode === "legacy" ? mode : { pin: mode } } },
);
let stopped = false;
process.stdin.on("end", () => { stopped = true; }).resume();
let closed = false;
client.onclose = () => { closed = true; };
await client.connect(new StdioClientTransport({
  command: process.env.SINEW_BIN,
  args: ["stdio", "--client", name],
  env: { SINEW_STATE: process.env.SINEW_STATE, PATH: process.env.PATH },
}));
for (let number = 1; !stopped; number += 1) {
  if (closed) process.exit(1);
  const call = `${name}-${number}`;
  const error = await client.callTool({ name: "count", arguments: { number: call } }).then(
    (result) => (result.isError ? result.content[0].text : ""),
    (failure) => String(failure),
  );
  console.log(`${call} ${error.replaceAll("\n", " ")}`);
  await sleep(50);
}
await client.close();
