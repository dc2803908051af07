"""The official Python client in its three modes, over HTTP and stdio."""

import asyncio
import base64
import json
import os
import random
import sys

import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

URL, TOKEN, BIN, STATE = (os.environ[name] for name in ("SINEW_URL", "SINEW_TOKEN", "SINEW_BIN", "SINEW_STATE"))
MODES = {"legacy": "2025-11-25", "auto": "2026-07-28", "2026-07-28": "2026-07-28"}
failed = 0


async def check(label, what, run):
    global failed
    try:
        await run()
        print(f"ok   {label}: {what}")
    except Exception as error:
        failed += 1
        print(f"FAIL {label}: {what}: {type(error).__name__}: {str(error)[:600]}")


async def checks(label, client, version):
    tools, found = {}, {}

    def named(end):
        names = [name for name in tools if name.endswith(end)]
        assert names, f"no tool ends with {end}: {list(tools)}"
        return names[0]

    async def speaks():
        assert client.protocol_version == version, client.protocol_version

    async def lists():
        cursor = None
        while True:
            page = await client.list_tools(cursor=cursor)
            tools.update({tool.name: tool for tool in page.tools})
            cursor = page.next_cursor
            if not cursor:
                break
        for end in ("list_devices", "get_device_events", "set_volume", "get_device_status", "take_photo"):
            named(end)

    async def finds():
        devices = (await client.call_tool("list_devices", {})).structured_content["devices"]
        assert len(devices) >= 3, devices
        found["board"] = next(device["id"] for device in devices if "ompanion" in json.dumps(device))

    async def volume():
        wanted = random.randint(10, 90)
        result = await client.call_tool(named("set_volume"), {"device": found["board"], "volume": wanted})
        assert not result.is_error, result
        status = await client.call_tool(named("get_device_status"), {"device": found["board"]})
        assert json.loads(status.content[0].text)["audio_speaker"]["volume"] == wanted, status

    async def photo():
        result = await client.call_tool(named("take_photo"), {"device": found["board"], "question": "What do you see?"})
        image = next(item for item in result.content if item.type == "image")
        magic = b"\x89PNG" if image.mime_type == "image/png" else b"\xff\xd8\xff"
        assert base64.b64decode(image.data).startswith(magic), image.mime_type

    async def content():
        result = await client.call_tool(named("every_type"), {})
        items = {item.type: item for item in result.content}
        assert items["audio"].mime_type == "audio/wav", items
        assert str(items["resource_link"].uri) == "https://example.org/manual", items
        assert items["resource"].resource.text == "A note", items
        assert result.structured_content == {"length": 12}, result

    async def unknown():
        try:
            result = await client.call_tool("no_such_tool", {})
        except MCPError as error:
            assert error.error.code == -32602, error
        else:
            raise AssertionError(f"answered {result}")

    async def wrong():
        result = await client.call_tool(named("set_volume"), {"device": found["board"], "volume": "loud"})
        assert result.is_error and "volume" in result.content[0].text, result
        assert result.meta["sinew/error"]["error_type"] == "ValidationError", result

    await check(label, f"speaks {version}", speaks)
    await check(label, "lists the folded tools", lists)
    await check(label, "finds the boards", finds)
    await check(label, "a set volume shows in the status", volume)
    await check(label, "a photo is a picture", photo)
    await check(label, "sound and links come in the types of its revision", content)
    await check(label, "an unknown tool is a protocol error -32602", unknown)
    await check(label, "a wrong argument is a result with isError that names it", wrong)


async def main():
    for mode, version in MODES.items():
        async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {TOKEN}"}, timeout=30) as http:
            async with Client(streamable_http_client(f"{URL}/mcp", http_client=http), mode=mode) as client:
                await checks(f"Python, HTTP, {mode}", client, version)
        server = StdioServerParameters(command=BIN, args=["stdio"], env={"SINEW_STATE": STATE})
        async with Client(server, mode=mode) as client:
            await checks(f"Python, stdio, {mode}", client, version)
    sys.exit(1 if failed else 0)


asyncio.run(main())
