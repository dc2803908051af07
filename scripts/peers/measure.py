"""Measures everything that `scripts/bench` reports, in rounds that alternate between the servers, and writes the page.

The results are in target/peers/results.json; `page.py` makes the page of them."""

import argparse
import contextlib
import datetime
import json
import os
import pathlib
import platform
import shutil
import signal
import subprocess
import sys
import time

import page
import phones
from mcp import STATELESS, WrongAnswer
from processes import DidNotStart, settle, until
from servers import NOT_READY, SERVERS, BareAxum, NotInstalled, Setup, SinewBoards
from wrk import Job

CONNECTIONS = [1, 8, 32]
# What may go wrong with a peer without ending the run.
FAILURES = (*NOT_READY, DidNotStart, NotInstalled, KeyError, IndexError, TypeError, subprocess.SubprocessError)


class Plan:
    """How much of everything."""

    def __init__(self, quick):
        self.starts = 1 if quick else 5
        self.rounds = 1 if quick else 5
        self.seconds = 1 if quick else 3
        # A slow server gets more time, so that its figures rest on some answers.
        self.most_seconds = 4 if quick else 10
        self.boards = 200 if quick else 2000
        self.phone_rounds = 1 if quick else 5
        self.phone_count = 8 if quick else 20


class Run:
    """One run of everything, and what came of it."""

    def __init__(self, setup, plan, results):
        self.setup, self.plan, self.results = setup, plan, results
        self.failed = False

    def say(self, text):
        print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)

    def fail(self, name, failure):
        """Names what could not be measured. Only what is not installed is no failure of the run."""
        reason = " ".join(f"{type(failure).__name__}: {failure}".split())[:300]
        if isinstance(failure, (NotInstalled, DidNotStart, WrongAnswer)):
            reason = " ".join(str(failure).split())[:300]
        self.results["missing"].append({"name": name, "reason": reason})
        if not isinstance(failure, NotInstalled):
            self.failed = True
        self.say(f"FAIL {name}: {reason}")

    def calls(self):
        """Start, memory and speed of all servers."""
        servers = []
        for kind in SERVERS:
            try:
                servers.append(kind(self.setup))
            except FAILURES as failure:
                self.fail(kind.name, failure)
        entries = {}
        for server in servers:
            entry = {"key": server.key, "name": server.name, "version": server.version, "work": server.work}
            entries[server] = entry | {"start_ms": [], "idle": [], "idle_percent": [], "after": [], "lanes": []}
        try:
            for number in range(self.plan.starts):
                self.say(f"starts, round {number + 1} of {self.plan.starts}")
                for server in list(entries):
                    self.guarded(server, entries, self.start_once)
            self.say("starting all of them")
            for server in list(entries):
                self.guarded(server, entries, self.prepare_lanes)
            for number in range(self.plan.rounds):
                self.say(f"calls, round {number + 1} of {self.plan.rounds}")
                for server in list(entries):
                    self.guarded(server, entries, self.round_of_calls)
            for server, entry in entries.items():
                entry["after"] = server.process.resident()
        finally:
            for server in servers:
                server.end()
        for entry in entries.values():
            for lane in entry["lanes"]:
                del lane["job"]
        self.results["servers"] = list(entries.values())

    def guarded(self, server, entries, work):
        """A server that fails is named with the reason, and left out from then on."""
        try:
            work(server, entries[server])
        except FAILURES as failure:
            self.fail(server.name, failure)
            del entries[server]
            server.end()

    def start_once(self, server, entry):
        seconds = server.start()
        if server.starts_alone:
            entry["start_ms"].append(seconds * 1e3)
        before, rest = server.process.processor_seconds(), 2.0
        time.sleep(rest)
        entry["idle_percent"].append((server.process.processor_seconds() - before) / rest * 100)
        entry["idle"].append(server.process.resident())
        server.stop()

    def prepare_lanes(self, server, entry):
        server.start()
        for era in server.eras:
            client = server.client(era).connect()
            server.check(client)
            client.close()
            file = self.setup.folder(server.key) / f"{era}.lua"
            lane = {"era": era, "runs": {str(count): [] for count in CONNECTIONS}, "failures": []}
            lane["job"] = Job(client, server.calls(), file)
            # Warms up, and shows how long a run must be.
            rate = lane["job"].run(8, self.plan.seconds).get("right", 0) / self.plan.seconds
            lane["seconds"] = round(min(max(100 / max(rate, 1), self.plan.seconds), self.plan.most_seconds))
            settle(server.process)
            entry["lanes"].append(lane)

    def round_of_calls(self, server, entry):
        for lane in entry["lanes"]:
            for count in CONNECTIONS:
                before = server.process.processor_seconds()
                figures = lane["job"].run(count, lane["seconds"])
                used = server.process.processor_seconds() - before
                if "failure" in figures:
                    failure = f"{count} connections: {figures['failure']}"
                    lane["failures"].append(failure)
                    self.failed = True
                    self.say(f"FAIL {server.name}, {lane['era']}, {failure}")
                else:
                    figures["processor_us"] = used / figures["right"] * 1e6
                    lane["runs"][str(count)].append(figures)
                settle(server.process)
            if not server.process.is_running():
                raise DidNotStart(f"it ended during the calls: {server.process.last_words()}")

    def devices(self):
        """The memory of each further idle board."""
        self.say(f"{self.plan.boards} idle boards")
        server = SinewBoards(self.setup)
        try:
            server.start()
            settle(server.process)
            time.sleep(2)
            before, _ = server.process.resident()
            server.connect_boards(1000, self.plan.boards)
            wanted = self.plan.boards + len(server.boards)
            until(lambda: self.count_boards(server, wanted), server.process, patience=120, pause=0.5, failures=NOT_READY)
            settle(server.process)
            time.sleep(2)
            after, _ = server.process.resident()
            self.results["device_bytes"] = {"boards": self.plan.boards, "each": (after - before) / self.plan.boards}
            tools = server.client(STATELESS).list_tools()
            self.results["board_list_bytes"] = {"boards": wanted, "tools": len(tools), "bytes": size_of(tools)}
        except FAILURES as failure:
            self.fail("memory of idle boards", failure)
        finally:
            server.end()

    def count_boards(self, server, wanted):
        ready = server.api("overview")["fleet"].get("board", {}).get("ready", 0)
        if ready < wanted:
            raise OSError(f"{ready} of {wanted} boards are ready")

    def phones(self):
        """Tool lists, screens and times of the phone servers."""
        results = {"servers": [], "screens": {}, "rounds": self.plan.phone_rounds, "count": self.plan.phone_count}
        self.results["phones"] = results
        phone, servers = None, {}
        try:
            phone = phones.Phone(self.setup)
            for kind in phones.PHONE_SERVERS:
                with self.named(kind.name):
                    server = kind(self.setup, phone)
                    entry = {"key": server.key, "name": server.name, "version": server.version}
                    try:
                        entry["start_ms"] = [server.start() * 1e3]
                        time.sleep(2)
                        entry["idle"] = server.resident()
                        tools = server.client.list_tools()
                        entry |= {"tools": len(tools), "list_bytes": size_of(tools)}
                    except BaseException:
                        server.stop()
                        raise
                    servers[server] = entry | {"times": {"tap": [], "screen": [], "screenshot": []}}
            with self.named("screens of the virtual phone"):
                results["screens"] = phones.bytes_of_screens(list(servers))
            for number in range(self.plan.phone_rounds):
                self.say(f"phones, round {number + 1} of {self.plan.phone_rounds}")
                for server, entry in list(servers.items()):
                    with self.named(server.name):
                        times, entry["picture_bytes"] = phones.timed_work(server, self.plan.phone_count)
                        for what, milliseconds in times.items():
                            entry["times"][what].append(milliseconds)
            results["servers"] = list(servers.values())
        except FAILURES as failure:
            self.fail("the virtual phone", failure)
        finally:
            for server in servers:
                server.stop()
            if phone:
                phone.stop()

    @contextlib.contextmanager
    def named(self, name):
        try:
            yield
        except FAILURES as failure:
            self.fail(name, failure)


def size_of(tools):
    """The bytes of a tool list without spaces."""
    return len(json.dumps(tools, separators=(",", ":"), ensure_ascii=False).encode())


def first_line(*command):
    ran = subprocess.run(command, capture_output=True, text=True, timeout=30)
    return ((ran.stdout + ran.stderr).strip().splitlines() or ["unknown"])[0].strip()


def machine():
    cpus = [line.partition(":")[2].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
    memory = next(int(line.split()[1]) for line in open("/proc/meminfo") if line.startswith("MemTotal"))
    release = pathlib.Path("/etc/os-release").read_text()
    names = [line.partition("=")[2].strip('"') for line in release.splitlines() if line.startswith("PRETTY_NAME")]
    return {
        "processor": cpus[0] if cpus else platform.machine(),
        "cores": os.cpu_count(),
        "memory_gib": round(memory / (1 << 20)),
        "system": (names or ["unknown"])[0],
        "kernel": platform.release(),
        "load_before": os.getloadavg()[0],
        "programs": {
            "wrk": first_line("wrk", "-v").split()[1].removeprefix("debian/"),
            "Node": first_line("node", "--version").removeprefix("v"),
            "Python": platform.python_version(),
            "adb": first_line("adb", "version").split()[-1],
        },
    }


def sinew_of(path, setup):
    """Version and profile of the program that is measured."""
    setup.sinew_version = first_line(path, "--version").split()[-1]
    echo = BareAxum(setup)
    try:
        echo.start()
        return {"version": echo.version, "profile": echo.page.get("profile", "unknown"), "bytes": path.stat().st_size}
    finally:
        echo.end()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--peers", type=pathlib.Path, required=True)
    parser.add_argument("sinew", type=pathlib.Path)
    options = parser.parse_args()
    # What was started is also ended when this is.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))

    # Whatever the user has set stays out of a measurement, and nobody's phones are part of it.
    env = {key: value for key, value in os.environ.items() if not key.startswith(("SINEW_", "NODE_OPTIONS"))}
    env |= {"SINEW_LOG": "info", "ADB_SERVER_SOCKET": "localfilesystem:/nonexistent"}
    scratch = options.peers / "scratch"
    shutil.rmtree(scratch, ignore_errors=True)
    setup = Setup(options.sinew.resolve(), options.peers.resolve(), scratch.resolve(), env)
    setup.scratch.mkdir(parents=True)

    results = {
        "when": datetime.date.today().isoformat(),
        "quick": options.quick,
        "machine": machine(),
        "sinew": sinew_of(setup.sinew, setup),
        "missing": [],
    }
    plan = Plan(options.quick)
    results |= {"rounds": plan.rounds, "seconds": plan.seconds, "starts": plan.starts, "connections": CONNECTIONS}
    run = Run(setup, plan, results)
    run.calls()
    run.devices()
    run.phones()
    (options.peers / "results.json").write_text(json.dumps(results, indent=1))
    page.write(results, options.peers / "preview")
    sys.exit(1 if run.failed else 0)


if __name__ == "__main__":
    main()
