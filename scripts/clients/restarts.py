"""The official clients over `sinew stdio` and HTTP while their gateway is restarted ten times.

Each call has a number of its own, and a thing counts how often each number arrives: no client may be lost, and no call
may be made twice. Over HTTP a client that is told that its session is gone begins a new one, as MCP says; the library of
Python leaves that to its user.
"""

import asyncio
import collections
import contextlib
import http.server
import json
import os
import pathlib
import signal
import sys
import tempfile
import threading
import urllib.parse

import httpx2
from mcp import Client, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client

# This test restarts a gateway of its own; nothing may lead to that of the other tests.
for name in ("SINEW_URL", "SINEW_TOKEN", "SINEW_CONFIG", "SINEW_STATE", "SINEW_FINGERPRINT", "SINEW_CA"):
    os.environ.pop(name, None)
BIN, CLIENTS = os.environ["SINEW_BIN"], os.environ["SINEW_CLIENTS"]
RESTARTS = 10
# Calls that each client must have answered between two restarts.
CALLS_BETWEEN = 3
# 90 s: a client waits up to 60 s for its gateway, and machines that test are busy.
PATIENCE = 90

executed = collections.Counter()


class Counter(http.server.BaseHTTPRequestHandler):
    """The gadget: it counts the numbers of the calls that reach it."""

    def do_GET(self):
        number = urllib.parse.parse_qs(urllib.parse.urlparse(self.path).query)["number"][0]
        executed[number] += 1
        body = number.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        # A gateway that was killed does not wait for its answer.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.wfile.write(body)

    def log_message(self, *_):
        pass


class Caller:
    """One client: what it asked for, and how that ended."""

    def __init__(self, name):
        self.name, self.answered, self.failed, self.lost, self.number = name, [], [], None, 0
        self.news = asyncio.Event()

    def note(self, number, error):
        (self.failed if error else self.answered).append((number, error))
        self.news.set()

    async def answered_more(self, count):
        wanted = len(self.answered) + count
        while len(self.answered) < wanted and self.lost is None:
            self.news.clear()
            await self.news.wait()


async def call_until(caller, client, stop, is_over=lambda error: False):
    """Calls until it is told to stop, or the connection is of no use any more."""
    while not stop.is_set():
        caller.number += 1
        name = f"{caller.name}-{caller.number}"
        try:
            result = await client.call_tool("count", {"number": name})
            error = result.content[0].text if result.is_error else None
        except Exception as failure:  # A protocol error is an answer too.
            error = str(failure) or repr(failure)
        caller.note(name, error)
        if error and is_over(error):
            return
        await asyncio.sleep(0.05)


async def python_stdio(caller, mode, gateway, stop):
    try:
        server = StdioServerParameters(command=BIN, args=["stdio", "--client", caller.name], env=gateway.env)
        async with Client(server, mode=mode) as client:
            await call_until(caller, client, stop)
    except Exception as failure:
        caller.lost = repr(failure)
        caller.news.set()


async def python_http(caller, mode, gateway, stop):
    """As an application does it: what cannot connect or lost its session connects again."""
    headers = {"Authorization": f"Bearer {gateway.token}"}
    failure, deadline = None, asyncio.get_running_loop().time() + PATIENCE
    while not stop.is_set():
        before = len(caller.answered)
        with contextlib.suppress(asyncio.CancelledError):
            try:
                async with httpx2.AsyncClient(headers=headers, timeout=30) as http_client:
                    transport = streamable_http_client(f"{gateway.url}/mcp", http_client=http_client)
                    async with Client(transport, mode=mode) as client:
                        await call_until(caller, client, stop, lambda error: True)
            except Exception as error:
                failure = repr(error)
        now = asyncio.get_running_loop().time()
        if len(caller.answered) > before:
            deadline = now + PATIENCE
        if now > deadline:
            caller.lost = failure
            caller.news.set()
            return
        await asyncio.sleep(0.05)


async def typescript_stdio(caller, mode, gateway, stop):
    await typescript_client(caller, mode, gateway.env, stop)


async def typescript_http(caller, mode, gateway, stop):
    await typescript_client(caller, mode, {"SINEW_URL": gateway.url, "SINEW_TOKEN": gateway.token}, stop)


async def typescript_client(caller, mode, env, stop):
    process = await asyncio.create_subprocess_exec(
        f"{CLIENTS}/node-bin", "restarts.mjs", caller.name, mode, env=os.environ | env,
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)
    async def end():
        await stop.wait()
        process.stdin.close()
    ending = asyncio.create_task(end())
    while line := await process.stdout.readline():
        number, _, error = line.decode().strip().partition(" ")
        caller.note(number, error)
    if await process.wait() != 0 or not stop.is_set():
        caller.lost = f"the client ended with {process.returncode}"
        caller.news.set()
    ending.cancel()


class TestGateway:
    """A gateway of our own, which stays at its address."""

    def __init__(self, config, state):
        self.config, self.listen, self.process, self.url, self.token = config, "127.0.0.1:0", None, None, None
        self.env = {"SINEW_STATE": state, "PATH": os.environ["PATH"]}

    async def start(self):
        self.process = await asyncio.create_subprocess_exec(
            BIN, "serve", "--config", self.config, "--listen", self.listen, "--devices", "127.0.0.1:0", "--mqtt", "off",
            "--output", "json", env=self.env | {"SINEW_LOG": "error"}, stdout=asyncio.subprocess.PIPE)
        page = await self.process.stdout.readline()
        assert page, "the gateway did not start"
        self.url = json.loads(page)["url"]
        self.listen = self.url.removeprefix("http://")

    async def new_token(self):
        made = await asyncio.create_subprocess_exec(
            BIN, "token", "new", "--client", "http", env=self.env, stdout=asyncio.subprocess.PIPE)
        text, _ = await made.communicate()
        self.token = next(word for word in text.decode().split() if word.startswith("snw_"))

    async def end(self, how):
        self.process.send_signal(how)
        await self.process.wait()


async def main():
    gadget = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Counter)
    threading.Thread(target=gadget.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        config = pathlib.Path(folder, "sinew.toml")
        config.write_text(f"""
[[things]]
name = "counter"
[[things.tools]]
name = "count"
effect = "change"
http = {{ url = "http://127.0.0.1:{gadget.server_port}/?number=${{number}}" }}
""")
        state = str(pathlib.Path(folder, "state"))
        gateway = TestGateway(config, state)
        await gateway.start()
        await gateway.new_token()
        stop = asyncio.Event()
        callers = {
            Caller(f"{language}-{way}-{era}"): (run, mode)
            for language, way, run in (
                ("python", "stdio", python_stdio),
                ("python", "http", python_http),
                ("typescript", "stdio", typescript_stdio),
                ("typescript", "http", typescript_http),
            )
            for era, mode in (("session", "legacy"), ("stateless", "2026-07-28"))
        }
        tasks = [asyncio.create_task(run(caller, mode, gateway, stop)) for caller, (run, mode) in callers.items()]

        async def all_answered():
            await asyncio.wait_for(asyncio.gather(*(caller.answered_more(CALLS_BETWEEN) for caller in callers)), PATIENCE)

        await all_answered()
        for restart in range(RESTARTS):
            # In order, and as after a crash.
            await gateway.end(signal.SIGTERM if restart % 2 == 0 else signal.SIGKILL)
            await gateway.start()
            await all_answered()
        stop.set()
        await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)
        await gateway.end(signal.SIGTERM)

    failed = 0
    for caller in callers:
        label = f"{caller.name} through {RESTARTS} restarts"
        twice = [number for number, count in executed.items() if count > 1 and number.startswith(caller.name)]
        missing = [number for number, _ in caller.answered if executed[number] != 1]
        problems = [
            caller.lost and f"the client was lost: {caller.lost}",
            twice and f"made twice: {twice}",
            missing and f"answered without being made once: {missing}",
        ]
        problems = [problem for problem in problems if problem]
        failed += bool(problems)
        told = f"{len(caller.answered)} calls answered, {len(caller.failed)} with an error, none made twice"
        print(f"FAIL {label}: {'; '.join(problems)}" if problems else f"ok   {label}: {told}")
    sys.exit(1 if failed else 0)


asyncio.run(main())
