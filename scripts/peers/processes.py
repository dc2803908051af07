"""The processes of the benchmark: started in sessions of their own, measured, and ended by their ids."""

import contextlib
import itertools
import os
import pathlib
import signal
import socket
import subprocess
import time

TICKS = os.sysconf("SC_CLK_TCK")
# In the environment of everything that is started, so that what leaves its family is found.
MARK = "SINEW_BENCH_PROCESS"
NUMBERS = itertools.count(1)


class DidNotStart(Exception):
    """A program that ended, or did not answer in time."""


class Process:
    """A program with everything that it starts."""

    def __init__(self, command, log, env=None, cwd=None, stdin=None, stdout=None):
        self.log = pathlib.Path(log)
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.mark = f"{MARK}={os.getpid()}-{next(NUMBERS)}"
        with self.log.open("ab") as output:
            self.popen = subprocess.Popen(
                [str(part) for part in command],
                stdin=stdin or subprocess.DEVNULL,
                stdout=stdout or output,
                stderr=output,
                env=dict(os.environ if env is None else env) | dict([self.mark.split("=")]),
                cwd=cwd,
                start_new_session=True,
            )

    @property
    def stdin(self):
        return self.popen.stdin

    @property
    def stdout(self):
        return self.popen.stdout

    def is_running(self):
        return self.popen.poll() is None

    def resident(self):
        """Resident memory in bytes: of the program, and of its children together."""
        own, *children = [resident(pid) for pid in self.everything()] or [0]
        return own, sum(children)

    def processor_seconds(self):
        return sum(processor_seconds(pid) for pid in family(self.popen.pid))

    def everything(self):
        """The program, its descendants, and daemons that it started: they carry its mark."""
        pids = family(self.popen.pid)
        return pids + [pid for pid in marked(self.mark) if pid not in pids]

    def stop(self):
        """Ends the program and everything that it started."""
        pids = self.everything()
        for number, patience in ((signal.SIGTERM, 2.0), (signal.SIGKILL, 5.0)):
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, number)
            end = time.monotonic() + patience
            while time.monotonic() < end and any(is_alive(pid) for pid in pids):
                self.popen.poll()
                time.sleep(0.01)
        self.popen.wait()

    def last_words(self):
        """The end of what it printed, for an explanation."""
        lines = self.log.read_text(errors="replace").strip().splitlines()
        return " | ".join(line.strip() for line in lines[-3:])[:400] or "it printed nothing"


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def until(attempt, process, patience=60.0, pause=0.002, failures=(OSError,)):
    """Tries until it succeeds; gives what came of it and the seconds that it took."""
    began = time.monotonic()
    while True:
        try:
            return attempt(), time.monotonic() - began
        except failures as failure:
            if not process.is_running():
                raise DidNotStart(f"it ended at once: {process.last_words()}") from failure
            if time.monotonic() - began > patience:
                raise DidNotStart(f"no answer within {patience:.0f} s: {failure}; {process.last_words()}") from failure
            time.sleep(pause)


def settle(process, patience=15.0):
    """Waits until a program has finished what it still does for those who are gone."""
    end = time.monotonic() + patience
    while time.monotonic() < end:
        before = process.processor_seconds()
        time.sleep(0.1)
        if process.processor_seconds() - before <= 0.01:
            return


def family(pid):
    """A process and its descendants, the process itself first."""
    children = {}
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        fields = fields_of(stat)
        if fields:
            children.setdefault(int(fields[1]), []).append(int(stat.parent.name))
    found = [pid] if is_alive(pid) else []
    for known in found:
        found += children.get(known, [])
    return found


def marked(mark):
    """The processes that have this in their environment."""
    found = []
    for environ in pathlib.Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if mark.encode() in environ.read_bytes().split(b"\0"):
                found.append(int(environ.parent.name))
    return [pid for pid in found if is_alive(pid)]


def is_alive(pid):
    fields = fields_of(pathlib.Path(f"/proc/{pid}/stat"))
    return bool(fields) and fields[0] != "Z"


def processor_seconds(pid):
    fields = fields_of(pathlib.Path(f"/proc/{pid}/stat"))
    # Its own in user and kernel mode, and that of its children that have ended.
    return sum(int(field) for field in fields[11:15]) / TICKS


def resident(pid):
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    sizes = [int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS:")]
    return sum(sizes)


def fields_of(stat):
    """What follows the name, which may hold anything; nothing for a process that is gone."""
    try:
        return stat.read_text().rpartition(")")[2].split()
    except OSError:
        return []
