"""An earlier release of the official Python client, over stdio and, where it has it, over Streamable HTTP."""

import asyncio
import base64
import importlib.metadata
import json
import logging
import os
import random
import sys

from mcp import ClientSession, McpError, StdioServerParameters
from mcp.client.stdio import stdio_client

URL, TOKEN, BIN, STATE = (os.environ[name] for name in ("SINEW_URL", "SINEW_TOKEN", "SINEW_BIN", "SINEW_STATE"))
VERSION = importlib.metadata.version("mcp")
REVISION = {"1.2": "2024-11-05", "1.9": "2025-03-26", "1.13": "2025-06-18"}[VERSION.rsplit(".", 1)[0]]
# What media.py answers with.
SOUND, MANUAL = base64.b64encode(b"RIFF\x24\x00\x00\x00WAVE").decode(), "https://example.org/manual"
failed = 0


class Errors(logging.Handler):
    """The errors that the client logs: people see them, and nothing here should cause one."""

    messages = []

    def emit(self, record):
        self.messages.append(record.getMessage())


logging.getLogger().addHandler(Errors(logging.ERROR))


async def check(label, what, run):
    global failed
    try:
        await run()
        print(f"ok   {label}: {what}")
    except Exception as error:
        failed += 1
        print(f"FAIL {label}: {what}: {type(error).__name__}: {str(error)[:600]}")


async def checks(label, session):
    tools, found = {}, {}

    def named(end):
        return next(name for name in tools if name.endswith(end))

    def text(result):
        return json.loads(next(item.text for item in result.content if item.type == "text"))

    async def speaks():
        result = await session.initialize()
        assert result.protocolVersion == REVISION, result.protocolVersion

    async def lists():
        cursor = None
        while True:
            page = await (session.list_tools(cursor) if cursor else session.list_tools())
            tools.update({tool.name: tool for tool in page.tools})
            cursor = page.nextCursor
            if not cursor:
                break
        for tool in tools.values():
            fields = tool.model_dump(exclude_none=True)
            known = {"name", "description", "inputSchema"}
            known |= {"annotations"} if REVISION >= "2025-03-26" else set()
            known |= {"outputSchema", "title", "meta"} if REVISION >= "2025-06-18" else set()
            assert set(fields) <= known, (tool.name, set(fields) - known)

    async def finds():
        devices = text(await session.call_tool("list_devices", {}))["devices"]
        found["board"] = next(device["id"] for device in devices if "ompanion" in json.dumps(device))

    async def volume():
        wanted = random.randint(10, 90)
        result = await session.call_tool(named("set_volume"), {"device": found["board"], "volume": wanted})
        assert not result.isError, result
        status = text(await session.call_tool(named("get_device_status"), {"device": found["board"]}))
        assert status["audio_speaker"]["volume"] == wanted, status

    async def photo():
        result = await session.call_tool(named("take_photo"), {"device": found["board"], "question": "What is it?"})
        image = next(item for item in result.content if item.type == "image")
        assert base64.b64decode(image.data)[:3] in (b"\x89PN", b"\xff\xd8\xff"), image.mimeType

    async def unknown():
        try:
            result = await session.call_tool("no_such_tool", {})
        except McpError as error:
            assert error.error.code == -32602, error
        else:
            raise AssertionError(f"answered {result}")

    async def wrong():
        result = await session.call_tool(named("set_volume"), {"device": found["board"], "volume": "loud"})
        assert result.isError and "volume" in result.content[0].text, result

    async def content():
        result = await session.call_tool(named("every_type"), {})
        types = [item.type for item in result.content]
        if REVISION >= "2025-03-26":
            sound = next(item for item in result.content if item.type == "audio")
            assert (sound.data, sound.mimeType) == (SOUND, "audio/wav"), sound
        else:
            blobs = [item.resource for item in result.content if item.type == "resource" and hasattr(item.resource, "blob")]
            assert [(blob.blob, blob.mimeType) for blob in blobs] == [(SOUND, "audio/wav")], result
        if REVISION >= "2025-06-18":
            link = next(item for item in result.content if item.type == "resource_link")
            assert (str(link.uri), link.name, link.description, link.size) == (MANUAL, "Manual", "How to use it", 512), link
            assert result.structuredContent == {"length": 12}, result
        else:
            assert "resource_link" not in types, types
            texts = [item.text for item in result.content if item.type == "text"]
            told = [MANUAL, "Manual", "The manual", "How to use it", "512"]
            assert any(all(word in text for word in told) for text in texts), texts
            assert '{"length":12}' in texts, texts
        notes = [item.resource.text for item in result.content if item.type == "resource" and hasattr(item.resource, "text")]
        assert notes == ["A note"], result

    await check(label, f"speaks {REVISION}", speaks)
    await check(label, "lists tools with the fields of its revision", lists)
    await check(label, "finds the boards", finds)
    await check(label, "a set volume shows in the status", volume)
    await check(label, "a photo is a picture", photo)
    await check(label, "sound and links come in the types of its revision", content)
    await check(label, "an unknown tool is a protocol error -32602", unknown)
    await check(label, "a wrong argument is a result with isError that names it", wrong)


async def main():
    environment = {"SINEW_STATE": STATE, "PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/")}
    server = StdioServerParameters(command=BIN, args=["stdio"], env=environment)
    async with stdio_client(server) as (reader, writer):
        async with ClientSession(reader, writer) as session:
            await checks(f"Python {VERSION}, stdio", session)
    try:
        from mcp.client.streamable_http import streamablehttp_client
    except ImportError:
        print(f"Python {VERSION} has no Streamable HTTP", file=sys.stderr)
    else:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with streamablehttp_client(f"{URL}/mcp", headers=headers) as (reader, writer, _):
            async with ClientSession(reader, writer) as session:
                await checks(f"Python {VERSION}, HTTP", session)

    async def quiet():
        assert not Errors.messages, Errors.messages

    await check(f"Python {VERSION}", "logs no errors", quiet)
    sys.exit(1 if failed else 0)


asyncio.run(main())
