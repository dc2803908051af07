"""What is measured at the same work: Sinew, its limits, and its peers. Each server knows how it is started, how its
clients reach it, and what the right answer to every call is."""

import dataclasses
import http.client
import json
import pathlib
import subprocess
import urllib.request

import mcp
from mcp import ID, SESSIONS, STATELESS
from processes import Process, free_port, until

HERE = pathlib.Path(__file__).resolve().parent
ECHO = HERE / "echo.mjs"
TOKEN = "snw-bench-token-0123456789abcdef"
BOARDS = 8
# What a server that is not ready yet may do.
NOT_READY = (OSError, http.client.HTTPException, mcp.WrongAnswer, json.JSONDecodeError)


class NotInstalled(Exception):
    """A peer that is not there, with the reason."""


@dataclasses.dataclass
class Setup:
    """Where everything is."""

    sinew: pathlib.Path
    peers: pathlib.Path
    scratch: pathlib.Path
    env: dict

    def log(self, name):
        return self.scratch / "logs" / f"{name}.log"

    def folder(self, name):
        folder = self.scratch / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def installed(self, name):
        """The folder of an installed peer."""
        folder = self.peers / name
        failed = folder / ".failed"
        if failed.exists():
            raise NotInstalled(failed.read_text().strip())
        if not (folder / ".installed").exists():
            raise NotInstalled("it is not installed")
        return folder

    def npm_program(self, name, package):
        """The version of an npm package, and the command that runs its program."""
        folder = self.installed(name) / "node_modules" / package
        manifest = json.loads((folder / "package.json").read_text())
        programs = manifest["bin"]
        program = programs if isinstance(programs, str) else next(iter(programs.values()))
        return manifest["version"], ["node", folder / program]

    def python_version(self, name, package):
        """The version of a Python package in an environment of its own."""
        found = list((self.installed(name) / "lib").glob(f"python*/site-packages/{package}-*.dist-info"))
        return found[0].name.removeprefix(f"{package}-").removesuffix(".dist-info")


class Server:
    """Something that answers `tools/call` over HTTP."""

    # What the row in the tables is called, and what it does besides passing calls on.
    name = ""
    work = "bridges the echo"
    # The revisions of MCP that it speaks; both are measured where there are both.
    eras = (SESSIONS,)
    path = "/mcp"
    headers = {}
    tool = "echo"
    # Whether the first answered call says something about its start.
    starts_alone = True

    def __init__(self, setup):
        self.setup = setup
        self.version = ""
        self.port = None
        self.process = None
        self.helpers = []
        self.prepare()

    @property
    def key(self):
        return "".join(letter if letter.isalnum() else "-" for letter in self.name.lower())

    def prepare(self):
        """What is done once before it is started: finding it."""

    def command(self):
        raise NotImplementedError

    def env(self):
        return self.setup.env

    def start(self):
        """Starts it; gives the seconds until the first right answer to a call."""
        self.port = free_port()
        self.process = Process(self.command(), self.setup.log(self.key), self.env(), self.setup.folder(self.key))
        _, seconds = until(self.first_call, self.process, failures=NOT_READY)
        return seconds

    def first_call(self):
        client = self.client(self.eras[0])
        try:
            self.check(client.connect())
        finally:
            client.close()

    def client(self, era):
        return mcp.HttpClient(f"http://127.0.0.1:{self.port}{self.path}", era, self.headers)

    def calls(self):
        """The calls that are measured in turn, each with the text that a right answer contains."""
        text = f"hello-{ID}"
        return [(self.tool, {"text": text}, text)]

    def check(self, client):
        """Every kind of call once, before anything is measured."""
        for tool, arguments, expected in self.calls():
            answer = mcp.text_of(client.call(tool, arguments))
            if expected not in answer:
                raise mcp.WrongAnswer(f"{tool} was answered with {answer[:200]}")

    def end(self):
        """What is done when it is needed no more."""
        self.stop()

    def stop(self):
        for process in [*self.helpers, self.process]:
            if process:
                process.stop()
        self.helpers, self.process = [], None


class BareAxum(Server):
    name = "bare axum handler"
    work = "answers the echo itself, without MCP or checks: the limit"
    eras = (STATELESS,)
    kind = "axum"

    def prepare(self):
        self.version = self.setup.sinew_version

    def command(self):
        return [self.setup.sinew, "bench-peer", self.kind]

    def start(self):
        # It takes any free port, and prints which.
        self.process = Process(self.command(), self.setup.log(self.key), self.env(), stdout=subprocess.PIPE)
        self.page = json.loads(self.process.stdout.readline() or "{}")
        self.port = int(self.page["url"].rpartition(":")[2])
        _, seconds = until(self.first_call, self.process, failures=NOT_READY)
        return seconds

    def calls(self):
        # It answers its arguments as they came.
        text = f"hello-{ID}"
        return [("echo", {"text": text}, f'{{"text":"{text}"}}')]


class RmcpEcho(BareAxum):
    name = "rmcp echo"
    work = "answers the echo itself, with the official SDK"
    eras = (STATELESS, SESSIONS)
    kind = "rmcp"


class Sinew(Server):
    """A gateway as `sinew serve` starts it: token, validation and audit are on."""

    name = "Sinew, the same echo"
    work = "bridges the echo; token, validation, audit"
    eras = (STATELESS, SESSIONS)
    headers = {"Authorization": f"Bearer {TOKEN}"}
    config = ""

    def prepare(self):
        self.version = self.setup.sinew_version
        self.config = f'[[servers]]\nname = "echo"\ncommand = ["node", {json.dumps(str(ECHO))}]\n'

    def command(self):
        folder = self.setup.folder(self.key)
        (folder / "sinew.toml").write_text(self.config)
        self.devices_port = free_port()
        return [
            *(self.setup.sinew, "serve", "--config", folder / "sinew.toml", "--state", folder / "state"),
            *("--listen", f"127.0.0.1:{self.port}", "--devices", f"127.0.0.1:{self.devices_port}", "--mqtt", "off"),
            *("--token", TOKEN, "--output", "json"),
        ]

    def api(self, path):
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}/api/v1/{path}", headers=self.headers)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)


class SinewBoards(Sinew):
    name = f"Sinew, {BOARDS} boards"
    work = f"calls {BOARDS} virtual boards over WebSocket; token, validation, audit"
    starts_alone = False

    def prepare(self):
        self.version = self.setup.sinew_version

    def start(self):
        self.boards = []
        super().start()
        self.connect_boards(1, BOARDS)
        self.boards, _ = until(self.ready_boards, self.process, failures=NOT_READY)
        client = self.client(STATELESS)
        # Every board has other relays on, so that the answer of one is not that of another.
        for index, board in enumerate(self.boards):
            for channel in range(1, 5):
                arguments = {"device": board, "channel": channel, "on": bool((index + 1) >> (channel - 1) & 1)}
                client.call("self_set_relay", arguments)
        self.check(client)
        client.close()

    def first_call(self):
        self.client(STATELESS).list_tools()

    def connect_boards(self, first, count):
        command = [
            *(self.setup.sinew, "sim", "board", "--kind", "relay", "--first", first, "--count", count),
            *("--connect", f"ws://127.0.0.1:{self.devices_port}/xiaozhi/v1/", "--token", TOKEN, "--output", "json"),
        ]
        self.helpers.append(Process(command, self.setup.log(f"{self.key}-devices"), self.setup.env))

    def ready_boards(self, count=BOARDS):
        devices = [device for device in self.api("devices?limit=1000")["devices"] if device["family"] == "board"]
        ready = sorted(device["id"] for device in devices if device["state"] == "ready")
        if len(ready) < count:
            raise mcp.WrongAnswer(f"only {len(ready)} of {count} boards are ready")
        return ready

    def calls(self):
        def relays(index):
            states = ((channel, bool((index + 1) >> (channel - 1) & 1)) for channel in range(1, 5))
            return json.dumps({"relays": [{"channel": channel, "on": on} for channel, on in states]}, separators=(",", ":"))

        return [("self_get_relays", {"device": board}, relays(index)) for index, board in enumerate(self.boards)]


class NpmMcpProxy(Server):
    name = "mcp-proxy (npm)"
    work = "bridges the echo; key checked"
    eras = (STATELESS, SESSIONS)
    headers = {"X-API-Key": TOKEN}

    def prepare(self):
        self.version, self.program = self.setup.npm_program("npm-mcp-proxy", "mcp-proxy")

    def command(self):
        options = ["--host", "127.0.0.1", "--port", self.port, "--server", "stream", "--apiKey", TOKEN]
        return [*self.program, *options, "--", "node", ECHO]


class Supergateway(Server):
    name = "supergateway --stateful"
    options = ["--stateful"]

    def prepare(self):
        self.version, self.program = self.setup.npm_program("supergateway", "supergateway")

    def command(self):
        options = ["--outputTransport", "streamableHttp", "--port", self.port, "--logLevel", "none", *self.options]
        return [*self.program, "--stdio", f"node '{ECHO}'", *options]


class SupergatewayStateless(Supergateway):
    name = "supergateway"
    work = "bridges the echo; its default: a new process for each call"
    options = []


class PythonMcpProxy(Server):
    name = "mcp-proxy (PyPI)"

    def prepare(self):
        self.version = self.setup.python_version("python-mcp-proxy", "mcp_proxy")

    def command(self):
        program = self.setup.installed("python-mcp-proxy") / "bin" / "mcp-proxy"
        return [program, "--host", "127.0.0.1", "--port", self.port, "--log-level", "ERROR", "--", "node", ECHO]


class ContextForgeTranslate(Server):
    name = "ContextForge translate"

    def prepare(self):
        self.version = self.setup.python_version("contextforge", "mcp_contextforge_gateway")
        self.programs = self.setup.installed("contextforge") / "bin"

    def env(self):
        folder = self.setup.folder(self.key)
        return self.setup.env | {
            "DATABASE_URL": f"sqlite:///{folder}/mcp.db",
            "JWT_SECRET_KEY": "bench-0123456789abcdef0123456789abcdef",
            "AUTH_ENCRYPTION_SECRET": "bench-abcdef0123456789abcdef0123456789",
            "PLATFORM_ADMIN_EMAIL": "admin@example.com",
            # The echo is on this machine.
            "SSRF_ALLOW_LOCALHOST": "true",
            # It allows a hundred calls a minute by default.
            "RATE_LIMITING_ENABLED": "false",
            "LOG_LEVEL": "ERROR",
        }

    def command(self):
        options = ["--stdio", f"node '{ECHO}'", "--expose-streamable-http", "--port", self.port, "--logLevel", "error"]
        return [self.programs / "python", "-m", "mcpgateway.translate", *options]


class ContextForge(ContextForgeTranslate):
    name = "ContextForge"
    # Behind its own translate it gives calls that are made at once the answers of each other.
    work = "calls the rmcp echo over HTTP; token, database (SQLite)"
    path = "/mcp/"
    tool = "echo-echo"
    upstream = None

    def start(self):
        # The address of the echo is kept in the database, so one echo serves all starts.
        if not self.upstream:
            self.upstream = RmcpEcho(self.setup)
            self.upstream.start()
            self.register()
        return super().start()

    def register(self):
        """A first start, in which the echo is added; what is measured starts with this database."""
        make_token = ["-m", "mcpgateway.utils.create_jwt_token", "-u", "admin@example.com", "--admin", "-e", "600"]
        made = subprocess.run(
            [self.programs / "python", *make_token, "-s", self.env()["JWT_SECRET_KEY"]],
            **{"env": self.env(), "cwd": self.setup.folder(self.key), "capture_output": True, "text": True},
        )
        self.headers = {"Authorization": f"Bearer {made.stdout.split()[-1]}"}
        self.port = free_port()
        process = Process(self.command(), self.setup.log(self.key), self.env(), self.setup.folder(self.key))
        try:
            until(lambda: self.ask("GET", "/health"), process, failures=NOT_READY)
            echo = {"name": "echo", "url": f"http://127.0.0.1:{self.upstream.port}/mcp", "transport": "STREAMABLEHTTP"}
            self.ask("POST", "/gateways", echo)
        finally:
            process.stop()

    def command(self):
        options = ["--host", "127.0.0.1", "--port", self.port, "--log-level", "error"]
        return [self.programs / "mcpgateway", "mcpgateway.main:app", *options]

    def ask(self, method, path, body=None):
        headers = {**self.headers, "Content-Type": "application/json"}
        data = json.dumps(body).encode() if body else None
        request = urllib.request.Request(f"http://127.0.0.1:{self.port}{path}", data, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)

    def calls(self):
        return [(self.tool, arguments, expected) for _, arguments, expected in self.upstream.calls()]

    def end(self):
        super().end()
        if self.upstream:
            self.upstream.end()


class RustMcpProxy(Server):
    name = "mcp-proxy (cargo)"
    path = "/"
    tool = "echo/echo"

    def prepare(self):
        folder = self.setup.peers / "rust-mcp-proxy"
        if not folder.exists():
            raise NotInstalled("it must be compiled, which `scripts/bench --with-rust-proxy` does")
        self.program = self.setup.installed("rust-mcp-proxy") / "bin" / "mcp-proxy"
        printed = subprocess.run([self.program, "--version"], capture_output=True, text=True)
        self.version = printed.stdout.split()[-1]

    def command(self):
        config = self.setup.folder(self.key) / "proxy.toml"
        config.write_text(
            f'[proxy]\nname = "bench"\nseparator = "/"\n\n[proxy.listen]\nhost = "127.0.0.1"\nport = {self.port}\n\n'
            f'[[backends]]\nname = "echo"\ntransport = "stdio"\ncommand = "node"\nargs = [{json.dumps(str(ECHO))}]\n'
        )
        return [self.program, "--config", config]


# In the order of the tables.
SERVERS = [
    *(BareAxum, RmcpEcho, SinewBoards, Sinew, RustMcpProxy, NpmMcpProxy, Supergateway, SupergatewayStateless),
    *(PythonMcpProxy, ContextForgeTranslate, ContextForge),
]
