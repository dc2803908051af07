"""The official clients over `sinew stdio` while their gateway is restarted ten times.

Each call has a number of its own, and a thing counts how often each number arrives: no client may be lost, and no call
may be made twice.
"""

import asyncio
import collections
import http.server
import os
import pathlib
import signal
import sys
import tempfile
import threading
import urllib.parse

from mcp import Client, StdioServerParameters

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
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Caller:
    """One client: what it asked for, and how that ended."""

    def __init__(self, name):
        self.name, self.answered, self.failed, self.lost = name, [], [], None
        self.news = asyncio.Event()

    def note(self, number, error):
        (self.failed if error else self.answered).append((number, error))
        self.news.set()

    async def answered_more(self, count):
        wanted = len(self.answered) + count
        while len(self.answered) < wanted and self.lost is None:
            self.news.clear()
            await self.news.wait()


async def python_client(caller, mode, env, stop):
    try:
        server = StdioServerParameters(command=BIN, args=["stdio", "--client", caller.name], env=env)
        async with Client(server, mode=mode) as client:
            number = 0
            while not stop.is_set():
                number += 1
                name = f"{caller.name}-{number}"
                try:
                    result = await client.call_tool("count", {"number": name})
                    error = result.content[0].text if result.is_error else None
                except Exception as failure:  # A protocol error is an answer too.
                    error = str(failure)
                caller.note(name, error)
                await asyncio.sleep(0.05)
    except Exception as failure:
        caller.lost = repr(failure)
        caller.news.set()


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


async def start(config, state):
    process = await asyncio.create_subprocess_exec(
        BIN, "serve", "--config", config, "--listen", "127.0.0.1:0", "--devices", "127.0.0.1:0", "--mqtt", "off",
        "--output", "json", env=os.environ | {"SINEW_STATE": state, "SINEW_LOG": "error"},
        stdout=asyncio.subprocess.PIPE)
    assert await process.stdout.readline(), "the gateway did not start"
    return process


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
        env = {"SINEW_STATE": state, "PATH": os.environ["PATH"]}
        gateway = await start(config, state)
        stop = asyncio.Event()
        callers = {
            Caller("python-session"): (python_client, "legacy"),
            Caller("python-stateless"): (python_client, "2026-07-28"),
            Caller("typescript-session"): (typescript_client, "legacy"),
            Caller("typescript-stateless"): (typescript_client, "2026-07-28"),
        }
        tasks = [asyncio.create_task(run(caller, mode, env, stop)) for caller, (run, mode) in callers.items()]

        async def all_answered():
            await asyncio.wait_for(asyncio.gather(*(caller.answered_more(CALLS_BETWEEN) for caller in callers)), PATIENCE)

        await all_answered()
        for restart in range(RESTARTS):
            # In order, and as after a crash.
            gateway.send_signal(signal.SIGTERM if restart % 2 == 0 else signal.SIGKILL)
            await gateway.wait()
            gateway = await start(config, state)
            await all_answered()
        stop.set()
        await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)
        gateway.terminate()
        await gateway.wait()

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
        told = f"{len(caller.answered)} calls answered, {len(caller.failed)} failed, none made twice"
        print(f"FAIL {label}: {'; '.join(problems)}" if problems else f"ok   {label}: {told}")
    sys.exit(1 if failed else 0)


asyncio.run(main())
