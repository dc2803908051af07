"""Three official clients with different rights on one gateway: what one may not use, it neither sees nor learns of.
A call that must be approved is, by an administrator, while the client waits."""

import asyncio
import json
import os
import subprocess
import sys
import tempfile

import httpx2
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client

BIN = os.environ["SINEW_BIN"]
POLICY = """
[[policy.rules]]
id = "tablet"
who = ["token:tablet"]
tools = ["*camera*", "*volume*"]
do = "deny"

[[policy.rules]]
id = "kids"
who = ["token:kids"]
on = ["device:board-000001"]
do = "deny"

[[policy.rules]]
id = "loud"
who = ["token:desk"]
tools = ["*set_volume"]
if = [{ arg = "/volume", max = 50 }]
do = "allow"
else = "ask"
ask = { wait = 20 }
"""
failed = 0


async def check(label, what, run):
    global failed
    try:
        await run
        print(f"ok   {label}: {what}")
    except Exception as error:
        failed += 1
        print(f"FAIL {label}: {what}: {type(error).__name__}: {str(error)[:600]}")


class Gateway:
    def __init__(self, folder):
        self.folder = folder
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("SINEW_")}
        self.environment |= {"SINEW_STATE": folder, "ADB_SERVER_SOCKET": "localfilesystem:/nonexistent"}
        with open(f"{folder}/sinew.toml", "w") as file:
            file.write(POLICY)
        ports = [part for name in ("listen", "devices", "mqtt") for part in (f"--{name}", "127.0.0.1:0")]
        self.processes = [self.start("serve", "--config", f"{folder}/sinew.toml", *ports, "--output", "json")]
        self.page = json.loads(self.processes[0].stdout.readline())
        with open(f"{folder}/token") as file:
            own = file.read().strip()
        board = ["sim", "board", "--count", "2", "--connect", self.page["devices_url"], "--token", own]
        self.processes.append(self.start(*board))

    def start(self, *arguments):
        return subprocess.Popen([BIN, *arguments], env=self.environment, stdout=subprocess.PIPE, text=True)

    def sinew(self, *arguments):
        run = subprocess.run([BIN, *arguments, "--output", "json"], env=self.environment, capture_output=True, check=True)
        return json.loads(run.stdout)

    async def ready(self):
        for _ in range(200):
            if sum(device["state"] == "ready" for device in self.sinew("devices")["devices"]) == 2:
                return
            await asyncio.sleep(0.05)
        raise AssertionError("the boards did not connect")

    def stop(self):
        for process in self.processes:
            process.terminate()
            process.wait()


async def with_client(gateway, label, mode, run):
    token = gateway.sinew("token", "new", "--client", label)["token"]
    async with httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=60) as http:
        transport = streamable_http_client(f"{gateway.page['url']}/mcp", http_client=http)
        async with Client(transport, mode=mode) as client:
            tools = [tool.name for tool in (await client.list_tools()).tools]
            await run(client, tools)


def volume(tools):
    return next(name for name in tools if name.endswith("set_volume"))


async def refused(call, *absent):
    """The error, whether it is one of the protocol or of the tool."""
    try:
        result = await call
    except MCPError as error:
        text = str(error)
    else:
        assert result.is_error, result
        text = str(result.content)
    for word in absent:
        assert word not in text, text
    return text


async def tablet(client, tools):
    assert not any("volume" in name or "camera" in name for name in tools), tools
    await refused(client.call_tool("self_audio_speaker_set_volume", {"device": "board-000001", "volume": 5}), "not allowed")
    devices = (await client.call_tool("list_devices", {})).structured_content["devices"]
    assert len(devices) == 2 and "volume" not in json.dumps(devices), devices


async def kids(client, tools):
    devices = (await client.call_tool("list_devices", {})).structured_content["devices"]
    assert [device["id"] for device in devices] == ["board-000002"], devices
    await refused(client.call_tool(volume(tools), {"device": "board-000001", "volume": 5}), "known are board-000001")
    result = await client.call_tool(volume(tools), {"device": "board-000002", "volume": 5})
    assert not result.is_error, result


def desk(gateway):
    async def run(client, tools):
        quiet = await client.call_tool(volume(tools), {"device": "board-000001", "volume": 20})
        assert not quiet.is_error, quiet
        loud = asyncio.ensure_future(client.call_tool(volume(tools), {"device": "board-000001", "volume": 90}))
        for _ in range(200):
            waiting = await asyncio.to_thread(gateway.sinew, "approvals")
            if waiting["approvals"]:
                break
            await asyncio.sleep(0.05)
        await asyncio.to_thread(gateway.sinew, "approvals", "approve", waiting["approvals"][0]["id"])
        assert not (await loud).is_error, loud
        kinds = [record["kind"] for record in gateway.sinew("audit")["records"]]
        assert "decision" in kinds, kinds

    return run


async def main():
    with tempfile.TemporaryDirectory() as folder:
        gateway = Gateway(folder)
        try:
            await gateway.ready()
            for mode in ("legacy", "2026-07-28"):
                name = f"rights, {mode}"
                await check(name, "denied tools are not there", with_client(gateway, "tablet", mode, tablet))
                await check(name, "a denied device is not there", with_client(gateway, "kids", mode, kids))
                await check(name, "a loud call waits for approval", with_client(gateway, "desk", mode, desk(gateway)))
                for token in gateway.sinew("token", "list")["tokens"]:
                    if token["role"] == "client":
                        gateway.sinew("token", "revoke", token["id"])
            assert gateway.sinew("audit", "verify")["ok"], "the audit is not whole"
            print("ok   rights: the audit is whole")
        finally:
            gateway.stop()
    sys.exit(failed != 0)


asyncio.run(main())
