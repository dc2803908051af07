// The Inspector's command line, a process per request, over HTTP and stdio in both eras.
import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { checks, finish, gateway } from "./checks.mjs";

const launcher = `${gateway.clients}/inspector/node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js`;

async function inspect(target, era, method, extra) {
  const args = [launcher, "--cli", ...target, "--protocol-era", era, "--format", "json", "--quiet", "--method", method, ...extra];
  try {
    const { stdout } = await promisify(execFile)(process.execPath, args, { env: gateway.env, maxBuffer: 64 << 20 });
    return JSON.parse(stdout).result;
  } catch (failure) {
    // A tool error exits non-zero and still prints its result; anything else prints an envelope on standard error.
    const { result } = read(failure.stdout) ?? {};
    if (result?.content) return result;
    const error = new Error(failure.stderr || failure.stdout || failure.message);
    // The Inspector looks a tool up in the list before it calls, and says itself that there is none.
    error.code = error.message.includes("tool_not_found") ? -32602 : undefined;
    throw error;
  }
}

function read(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

const targets = [
  ["HTTP", [`${gateway.url}/mcp`, "--transport", "http", "--header", `Authorization: Bearer ${gateway.token}`]],
  ["stdio", [gateway.sinew, "stdio", "--transport", "stdio", "-e", `SINEW_STATE=${gateway.state}`]],
];
for (const [name, target] of targets) {
  for (const era of ["legacy", "modern"]) {
    await checks(`Inspector, ${name}, ${era}`, {
      version: () => undefined,
      list: async () => (await inspect(target, era, "tools/list", [])).tools,
      call: (tool, args) => inspect(target, era, "tools/call", ["--tool-name", tool, "--tool-args-json", JSON.stringify(args)]),
    });
  }
}
finish();
