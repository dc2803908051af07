"""wrk, the load generator: one job for each server and revision, and what came of a run."""

import json
import pathlib
import subprocess

from mcp import ID

SCRIPT = pathlib.Path(__file__).resolve().parent / "check.lua"


class Job:
    """The calls of one client to one server, as wrk sends them."""

    def __init__(self, client, calls, file):
        self.url = client.url.geturl()
        self.file = file
        requests = [pieces(client.call_bytes(tool, arguments)) for tool, arguments, _ in calls]
        # As the text stands in the JSON of the answer.
        expected = [pieces(json.dumps(text)[1:-1]) for _, _, text in calls]
        file.write_text(f"return {{\n  requests = {table(requests)},\n  expected = {table(expected)},\n}}\n")

    def run(self, connections, seconds):
        """Calls for so long; gives the figures, with `failure` where something was wrong."""
        options = ["-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "60s", "-s", str(SCRIPT)]
        command = ["wrk", *options, self.url, "--", str(self.file)]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=seconds + 90)
        lines = dict(line.split(" ", 1) for line in ran.stdout.splitlines() if line.startswith(("figures ", "sample ")))
        if "figures" not in lines:
            return {"failure": f"wrk: {(ran.stderr or ran.stdout).strip()[-300:]}"}
        figures = json.loads(lines["figures"])
        unchecked = figures["answers"] - figures["right"] - figures["wrong"]
        if figures["wrong"] or unchecked:
            count = figures["wrong"] + unchecked
            figures["failure"] = f"{count} of {figures['answers']} answers were wrong: {lines.get('sample', '')[:300]}"
        elif figures["broken"] or figures["late"]:
            figures["failure"] = f"{figures['broken']} connections broke, {figures['late']} answers took over a minute"
        elif not figures["right"]:
            figures["failure"] = f"no answer within {seconds} s"
        return figures


def pieces(text):
    """What stands between the ids."""
    return text.split(ID)


def table(rows):
    rows = ("{" + ", ".join(quote(piece) for piece in row) + "}" for row in rows)
    return "{" + ", ".join(rows) + "}"


def quote(text):
    """A Lua string that is these bytes."""
    return '"' + "".join(f"\\{byte:03d}" if byte < 32 or byte in b'"\\' else chr(byte) for byte in text.encode()) + '"'
