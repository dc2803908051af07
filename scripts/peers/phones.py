"""The phone servers on one virtual phone over one real adb server: Sinew and mobile-mcp, both spoken to on stdio."""

import base64
import re
import subprocess
import time

import mcp
from mcp import WrongAnswer
from processes import DidNotStart, Process, free_port, until
from servers import TOKEN

# Screens of the virtual phone that both describe: the name in the tables, and the app that shows it.
SCREENS = [
    ("home", None),
    ("settings", "com.android.settings"),
    ("calculator", "com.android.calculator2"),
    ("notes", "dev.sinew.notes"),
    ("pictures", "com.android.gallery3d"),
]
# Two keys of the calculator.
CLEAR, SEVEN = (153, 870), (153, 1176)
# What mobile-mcp makes of a screenshot by default; Sinew is asked for the same.
LONGEST_SIDE, QUALITY = 1024, 75


class Phone:
    """A virtual phone behind an adb server of its own, so that nobody's is disturbed."""

    def __init__(self, setup):
        folder = setup.folder("phone")
        self.port = free_port()
        self.env = setup.env | {"HOME": str(folder), "ANDROID_ADB_SERVER_PORT": str(self.port)}
        self.env.pop("ADB_SERVER_SOCKET", None)
        self.env.pop("ANDROID_SERIAL", None)
        command = [setup.sinew, "sim", "phone", "--adb", "127.0.0.1:0", "--lock", "none", "--output", "json"]
        self.processes = []
        try:
            phone = Process(command, setup.log("phone"), self.env, stdout=subprocess.PIPE)
            self.processes.append(phone)
            self.serial = re.search(r"127\.0\.0\.1:\d+", phone.stdout.readline().decode())[0]
            server = Process(["adb", "nodaemon", "server"], setup.log("adb"), self.env)
            self.processes.append(server)
            until(self.connect, server, patience=20, pause=0.1, failures=(WrongAnswer,))
        except BaseException:
            self.stop()
            raise

    def connect(self):
        # A server that is there already: the client must not start one.
        said = self.adb("connect", self.serial)
        if "connected to" not in said or self.adb("-s", self.serial, "get-state").strip() != "device":
            raise WrongAnswer(f"adb connect: {said.strip()}")

    def adb(self, *arguments):
        ran = subprocess.run(["adb", *arguments], env=self.env, capture_output=True, text=True, timeout=30)
        return ran.stdout + ran.stderr

    def stop(self):
        for process in reversed(self.processes):
            process.stop()


class PhoneServer:
    """A server on stdio that uses the phone."""

    name = ""

    def __init__(self, setup, phone):
        self.setup, self.phone = setup, phone
        self.version = ""
        self.processes = []
        self.prepare()

    def prepare(self):
        """What is done once before it is started: finding it."""

    def start(self):
        """Starts it; gives the seconds until it has found the phone."""
        began = time.monotonic()
        self.run()
        process = Process(self.command(), self.setup.log(self.key), self.phone.env, **PIPES)
        self.processes.append(process)
        self.client = mcp.StdioClient(process).connect()
        until(self.find, process, failures=(WrongAnswer,))
        return time.monotonic() - began

    def run(self):
        """What must run beside it."""

    def resident(self):
        sizes = [process.resident() for process in self.processes]
        return sum(own for own, _ in sizes), sum(children for _, children in sizes)

    def stop(self):
        for process in reversed(self.processes):
            process.stop()
        self.processes = []

    def timed(self, what, *arguments):
        """Milliseconds that something takes, and what came of it."""
        began = time.perf_counter()
        result = getattr(self, what)(*arguments)
        return (time.perf_counter() - began) * 1e3, result


PIPES = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}


class SinewPhones(PhoneServer):
    """`sinew stdio` beside a gateway that runs, as clients use it. Without the agent, which needs a real Android."""

    name, key = "Sinew", "sinew-phones"

    def prepare(self):
        self.version = self.setup.sinew_version

    def run(self):
        folder = self.setup.folder(self.key)
        self.state = folder / "state"
        (folder / "sinew.toml").write_text("[phones]\nagent = false\n")
        self.port = free_port()
        command = [
            *(self.setup.sinew, "serve", "--config", folder / "sinew.toml", "--state", self.state, "--token", TOKEN),
            *("--listen", f"127.0.0.1:{self.port}", "--devices", "127.0.0.1:0", "--mqtt", "off", "--output", "json"),
        ]
        gateway = Process(command, self.setup.log(self.key), self.phone.env, stdout=subprocess.PIPE)
        self.processes.append(gateway)
        if not gateway.stdout.readline():
            raise DidNotStart(gateway.last_words())

    def command(self):
        return [self.setup.sinew, "stdio", "--state", self.state]

    def find(self):
        self.client.call("get_screen", {})

    def open(self, package):
        self.client.call("open_app", {"app": package}) if package else self.client.call("press_home", {})

    def tap(self, x, y):
        self.client.call("tap", {"x": x, "y": y})

    def screen(self):
        return mcp.text_of(self.client.call("get_screen", {}))

    def screenshot(self):
        return picture(self.client.call("capture_screenshot", {"max_side": LONGEST_SIDE, "quality": QUALITY}))


class MobileMcp(PhoneServer):
    """As its users start it: every tool call runs its program `mobilecli`."""

    name, key = "mobile-mcp", "mobile-mcp"
    switches = []

    def prepare(self):
        self.version, self.program = self.setup.npm_program("mobile-mcp", "@mobilenext/mobile-mcp")

    def command(self):
        return ["env", "MOBILEMCP_DISABLE_TELEMETRY=1", *self.switches, *self.program]

    def ask(self, tool, **arguments):
        result = self.client.call(tool, {"device": self.phone.serial, **arguments})
        # It also reports failures as successes.
        if mcp.text_of(result).startswith(("Error", "Please", "Failed")):
            raise WrongAnswer(f"{tool}: {mcp.text_of(result)[:300]}")
        return result

    def find(self):
        self.ask("mobile_list_elements_on_screen")

    def open(self, package):
        if package:
            self.ask("mobile_launch_app", packageName=package)
        else:
            self.ask("mobile_press_button", button="HOME")

    def tap(self, x, y):
        self.ask("mobile_click_on_screen_at_coordinates", x=x, y=y)

    def screen(self):
        return mcp.text_of(self.ask("mobile_list_elements_on_screen"))

    def screenshot(self):
        return picture(self.ask("mobile_take_screenshot"))


class MobileMcpPlain(MobileMcp):
    """Over adb alone. It sends screenshots as the phone made them."""

    name, key = "mobile-mcp, plain adb", "mobile-mcp-plain"
    switches = ["MOBILEMCP_LEGACY_ROBOT=1"]


PHONE_SERVERS = [SinewPhones, MobileMcp, MobileMcpPlain]


def picture(result):
    image = next((item for item in result["content"] if item["type"] == "image"), None)
    data = base64.b64decode(image["data"]) if image else b""
    if data[:3] != b"\xff\xd8\xff" and data[:4] != b"\x89PNG":
        raise WrongAnswer("the answer is not a picture")
    return data


def bytes_of_screens(servers):
    """The bytes with which each describes the same screens."""
    sizes = {}
    for screen, package in SCREENS:
        servers[0].open(package)
        sizes[screen] = {server.key: len(server.screen().encode()) for server in servers}
    return sizes


def timed_work(server, count):
    """Milliseconds of each of so many taps, screens and screenshots, all of them checked."""
    times = {}
    server.open("com.android.calculator2")
    server.tap(*CLEAR)
    times["tap"] = [server.timed("tap", *SEVEN)[0] for _ in range(count)]
    typed = max((len(run) for run in re.findall(r'"(7+)"', server.screen())), default=0)
    if typed != count:
        raise WrongAnswer(f"{count} taps on the calculator's 7 typed {typed} of them")
    server.open("com.android.settings")
    screens = [server.timed("screen") for _ in range(count)]
    if not all("Network & internet" in text for _, text in screens):
        raise WrongAnswer("the screen of the settings was described without its first entry")
    times["screen"] = [milliseconds for milliseconds, _ in screens]
    pictures = [server.timed("screenshot") for _ in range(max(count // 4, 2))]
    times["screenshot"] = [milliseconds for milliseconds, _ in pictures]
    return times, len(pictures[-1][1])
