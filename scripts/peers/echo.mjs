// The cheapest MCP server on stdio: one tool that answers its text, without an SDK. What the bridges bridge.
import { createInterface } from "node:readline";

const tool = {
  name: "echo",
  description: "Answers its text.",
  inputSchema: { type: "object", properties: { text: { type: "string" } }, required: ["text"] },
};
const answer = ({ method, params }) => {
  switch (method) {
    case "initialize":
      return {
        protocolVersion: params.protocolVersion,
        capabilities: { tools: {} },
        serverInfo: { name: "echo", version: "1.0.0" },
      };
    case "ping":
      return {};
    case "tools/list":
      return { tools: [tool] };
    case "tools/call":
      return { content: [{ type: "text", text: params.arguments.text }] };
  }
};

createInterface({ input: process.stdin }).on("line", (line) => {
  const request = JSON.parse(line);
  if (request.id === undefined || request.method === undefined) return;
  const result = answer(request);
  const body = result ? { result } : { error: { code: -32601, message: `unknown method ${request.method}` } };
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id: request.id, ...body })}\n`);
});
