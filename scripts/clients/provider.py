"""A server of the official Python SDK, piped to the gateway over a WebSocket as voice assistants' tool providers are:
frames to its standard input, lines of its standard output to frames. `serve` makes this file the server."""

import asyncio
import json
import os
import subprocess
import sys

if sys.argv[1:] == ["serve"]:
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError

    server = MCPServer("Python Calculator", version="1.2.3")

    @server.tool()
    def calculate(expression: str) -> dict:
        """Add the numbers of an expression such as 1+2."""
        parts = expression.split("+")
        if not all(part.isdigit() for part in parts):
            raise ToolError(f"no numbers: {expression}")
        return {"result": sum(int(part) for part in parts)}

    server.run("stdio")
    sys.exit()

import websockets

URL, TOKEN, OWN_TOKEN, BIN, STATE, DEVICES = (
    os.environ[name] for name in ("SINEW_URL", "SINEW_TOKEN", "SINEW_OWN_TOKEN", "SINEW_BIN", "SINEW_STATE", "SINEW_DEVICES_URL")
)
failed = 0


def sinew(*arguments):
    environment = {**os.environ, "SINEW_URL": URL, "SINEW_TOKEN": TOKEN}
    command = [BIN, *arguments, "--output", "json"]
    return json.loads(subprocess.run(command, env=environment, capture_output=True, check=True).stdout)


async def pipe(url):
    async with websockets.connect(url) as socket:
        here = asyncio.subprocess.PIPE
        server = await asyncio.create_subprocess_exec(sys.executable, __file__, "serve", stdin=here, stdout=here)

        async def inwards():
            async for frame in socket:
                server.stdin.write(frame.encode() + b"\n")
                await server.stdin.drain()

        async def outwards():
            while line := await server.stdout.readline():
                await socket.send(line.decode())

        try:
            await asyncio.gather(inwards(), outwards())
        finally:
            server.terminate()
            await server.wait()


async def check(what, run):
    global failed
    try:
        await asyncio.to_thread(run)
        print(f"ok   piped provider: {what}")
    except Exception as error:
        failed += 1
        print(f"FAIL piped provider: {what}: {type(error).__name__}: {str(error)[:600]}")


async def main():
    url = DEVICES.replace("/xiaozhi/v1/", "/mcp/") + "?token=" + OWN_TOKEN
    piping = asyncio.create_task(pipe(url))

    async def state():
        devices = (await asyncio.to_thread(sinew, "devices"))["devices"]
        return next((device["state"] for device in devices if device["id"] == "python-calculator"), None)

    async def until(wanted):
        for _ in range(200):
            if piping.done() and not piping.cancelled():
                piping.result()
            if await state() == wanted:
                return
            await asyncio.sleep(0.1)

    await until("ready")

    def joins():
        device = next(device for device in sinew("devices")["devices"] if device["id"] == "python-calculator")
        assert (device["state"], device["family"]) == ("ready", "provider"), device
        assert "1.2.3" in json.dumps(device), device

    def calls():
        outcome = sinew("call", "python-calculator", "calculate", "expression=20+22")
        assert outcome["structuredContent"]["result"] == 42, outcome

    def fails():
        try:
            sinew("call", "python-calculator", "calculate", "expression=one")
        except subprocess.CalledProcessError as error:
            assert b"no numbers: one" in error.stdout + error.stderr, error
        else:
            raise AssertionError("a failing tool must fail the command")

    await check("joins as a device under the server's name", joins)
    await check("its tool is called", calls)
    await check("its failure reaches the caller", fails)
    piping.cancel()
    await asyncio.gather(piping, return_exceptions=True)
    await until("away")

    def leaves():
        device = next(device for device in sinew("devices")["devices"] if device["id"] == "python-calculator")
        assert device["state"] == "away", device

    await check("is away when its pipe ends", leaves)


asyncio.run(main())
sys.exit(1 if failed else 0)
