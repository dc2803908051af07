"""Libraries that turn MCP tools into function calls of model APIs, over whole lists: none may refuse or lose a tool."""

import asyncio
import os
import sys

from agents.mcp import MCPServerStreamableHttp
from agents.mcp.util import MCPUtil
from langchain_core.utils.function_calling import convert_to_openai_tool
from langchain_mcp_adapters.tools import load_mcp_tools

URL, TOKEN = os.environ["SINEW_URL"], os.environ["SINEW_TOKEN"]
HEADERS = {"Authorization": f"Bearer {TOKEN}"}
LISTS = {"folded": f"{URL}/mcp", "unfolded": f"{URL}/mcp?tools=unfolded"}
failed = 0


async def check(what, run):
    global failed
    try:
        print(f"ok   {what}: {await run()}")
    except Exception as error:
        failed += 1
        print(f"FAIL {what}: {type(error).__name__}: {str(error)[:600]}")


async def main():
    for name, url in LISTS.items():
        server = MCPServerStreamableHttp(params={"url": url, "headers": HEADERS})
        await server.connect()
        tools = await server.list_tools()
        listed = {tool.name for tool in tools}

        async def plain():
            assert len(listed) == len(tools), "names are unique"
            assert any("root_any_of" in tool for tool in listed), "the hostile provider is listed"
            described = {tool.name.split("__")[-1]: tool.description for tool in tools}
            for tool in tools:
                assert len(tool.name) <= 48 and not tool.name[0].isdigit(), tool.name
                assert 1 <= len(tool.description.encode("utf-16-le")) // 2 <= 1024, tool.name
            assert described["long_text"].endswith("Exactly one of these forms: `door`; `window`."), described["long_text"]
            assert "larger than 64 KiB" in described["large"], described["large"]
            return f"{len(tools)} tools"

        async def agents():
            for strict in (False, True):
                made = [MCPUtil.to_function_tool(tool, server, strict) for tool in tools]
                assert {tool.name for tool in made} == listed
                for tool in made:
                    assert tool.params_json_schema["type"] == "object" and "properties" in tool.params_json_schema, tool.name
            return f"{len(made)} tools, {sum(tool.strict_json_schema for tool in made)} of them strict"

        async def langchain():
            connection = {"transport": "streamable_http", "url": url, "headers": HEADERS}
            made = [convert_to_openai_tool(tool)["function"] for tool in await load_mcp_tools(None, connection=connection)]
            assert {tool["name"] for tool in made} == listed, listed ^ {tool["name"] for tool in made}
            for tool in made:
                assert len(tool["description"]) <= 1024, tool["name"]
            return f"{len(made)} tools"

        await check(f"list, {name}", plain)
        await check(f"openai-agents, {name}", agents)
        await check(f"langchain-mcp-adapters, {name}", langchain)
        await server.cleanup()
    sys.exit(1 if failed else 0)


asyncio.run(main())
