"""A tool provider that answers with every type of content, and one that takes its time. Run until they are stopped."""

import asyncio
import base64

from websocket_provider import serve

SOUND = base64.b64encode(b"RIFF\x24\x00\x00\x00WAVE").decode()
CONTENT = [
    {"type": "text", "text": "All types"},
    {"type": "audio", "data": SOUND, "mimeType": "audio/wav"},
    {"type": "resource_link", "uri": "https://example.org/manual", "name": "Manual", "mimeType": "text/html",
     "title": "The manual", "description": "How to use it", "size": 512},
    {"type": "resource", "resource": {"uri": "note://1", "mimeType": "text/plain", "text": "A note"}},
]
SCHEMA = {"type": "object", "properties": {"length": {"type": "integer"}}, "required": ["length"]}
TOOL = {
    "name": "every_type", "title": "Every type", "description": "Answers with every type of content",
    "inputSchema": {"type": "object"}, "outputSchema": SCHEMA, "annotations": {"readOnlyHint": True},
}
SLOW = {"name": "bake", "description": "Takes 33 s and reports nothing", "inputSchema": {"type": "object"}}


async def run():
    await asyncio.gather(
        serve("media", [TOOL], {"content": CONTENT, "structuredContent": {"length": 12}}),
        serve("oven", [SLOW], {"content": [{"type": "text", "text": "done"}]}, seconds=33),
    )


asyncio.run(run())
