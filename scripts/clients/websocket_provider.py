"""Tools over a WebSocket to the gateway, as voice assistants' tool providers offer them. Runs until it is stopped."""

import asyncio
import json
import os

import websockets

OWN_TOKEN, DEVICES = os.environ["SINEW_OWN_TOKEN"], os.environ["SINEW_DEVICES_URL"]


async def serve(name, tools, result, seconds=0):
    """Offers these tools; each takes so many seconds and has this result."""
    def answer(message):
        match message["method"]:
            case "initialize":
                return {"protocolVersion": message["params"]["protocolVersion"], "capabilities": {"tools": {}},
                        "serverInfo": {"name": name, "version": "1"}}
            case "tools/list":
                return {"tools": tools}
            case "tools/call":
                return result
        return {}

    url = DEVICES.replace("/xiaozhi/v1/", "/mcp/") + "?token=" + OWN_TOKEN
    async with websockets.connect(url) as socket:
        async for frame in socket:
            message = json.loads(frame)
            if message.get("method") == "tools/call":
                await asyncio.sleep(seconds)
            if "id" in message and "method" in message:
                await socket.send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": answer(message)}))
