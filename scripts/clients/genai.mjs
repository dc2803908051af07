// Google's SDK for Gemini: every tool becomes a function declaration, and its schema passes the SDK's own conversion.
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { gateway } from "./checks.mjs";

const require = createRequire(`${gateway.clients}/genai/package.json`);
const { GoogleGenAI, mcpToTool } = require("@google/genai");
const { Client } = require("@modelcontextprotocol/sdk/client/index.js");
const { StreamableHTTPClientTransport } = require("@modelcontextprotocol/sdk/client/streamableHttp.js");

// Stands in for the API: the SDK converts a schema before it sends it.
const api = createServer((request, response) => {
  request.resume();
  request.on("end", () => {
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ candidates: [{ content: { role: "model", parts: [{ text: "ok" }] } }] }));
  });
});
await new Promise((done) => api.listen(0, "127.0.0.1", done));
const ai = new GoogleGenAI({ apiKey: "none", httpOptions: { baseUrl: `http://127.0.0.1:${api.address().port}` } });

let failed = 0;
for (const [name, path] of [["folded", "/mcp"], ["unfolded", "/mcp?tools=unfolded"]]) {
  const client = new Client({ name: "sinew-test", version: "1" });
  await client.connect(new StreamableHTTPClientTransport(new URL(gateway.url + path), {
    requestInit: { headers: { Authorization: `Bearer ${gateway.token}` } },
  }));
  try {
    const { tools } = await client.listTools();
    const { functionDeclarations } = await mcpToTool(client).tool();
    const names = (list) => JSON.stringify(list.map((tool) => tool.name).sort());
    if (names(tools) !== names(functionDeclarations)) throw new Error("tools were lost");
    for (const declaration of functionDeclarations) {
      const config = { responseMimeType: "application/json", responseSchema: declaration.parametersJsonSchema };
      try {
        await ai.models.generateContent({ model: "gemini-2.5-flash", contents: "hello", config });
      } catch (error) {
        throw new Error(`${declaration.name}: ${error.message}`);
      }
    }
    console.log(`ok   @google/genai, ${name}: ${functionDeclarations.length} tools`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL @google/genai, ${name}: ${error.message.slice(0, 600)}`);
  }
  await client.close();
}
api.close();
process.exit(failed ? 1 : 0);
