"""Makes the section "Beside others" of docs/benchmarks.md, and its pictures, of the results of a run.

    python3 scripts/peers/page.py target/peers/results.json    the same results once more, after a change of this file
"""

import json
import pathlib
import statistics
import sys

import charts
from mcp import SESSIONS, STATELESS

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
BEGIN, END = "<!-- written by scripts/bench: begin -->", "<!-- written by scripts/bench: end -->"
ERAS = {STATELESS: f"{STATELESS}, without sessions", SESSIONS: f"{SESSIONS}, with sessions"}
PHONE_WORK = {"tap": "a tap", "screen": "a screen (the settings)", "screenshot": "a screenshot (the settings)"}


def write(results, preview):
    """Into the documentation if the run was a whole one of the packaged build, else into a folder to look at."""
    section, pictures = make(results)
    if results["quick"] or results["sinew"]["profile"] != "dist":
        folder, text = preview, f"{BEGIN}\n{END}\n"
        (folder / "images").mkdir(parents=True, exist_ok=True)
        why = "short" if results["quick"] else f"of a {results['sinew']['profile']} build"
        print(f"docs/benchmarks.md is unchanged, because the run was {why}; see {folder}/benchmarks.md")
    else:
        folder, text = DOCS, (DOCS / "benchmarks.md").read_text()
        print("docs/benchmarks.md and its pictures are written")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    (folder / "benchmarks.md").write_text(f"{before}{BEGIN}\n\n{section}\n{END}{after}")
    for name, picture in pictures.items():
        (folder / "images" / name).write_text(picture)


def make(results):
    """The text of the section, and the pictures by their names."""
    pictures = {}
    parts = [conditions(results)]
    lanes = [(server, lane) for server in results["servers"] for lane in server["lanes"]]
    if lanes:
        pictures["bench-calls.svg"] = chart_of_calls(results, lanes)
        parts += ["### Calls\n", picture("bench-calls.svg", "Calls per second of each server at 1, 8 and 32 connections")]
        parts += [table_of_calls(results, lanes), table_of_latency(results, lanes)]
        pictures["bench-memory.svg"] = chart_of_memory(results)
        parts += ["### Start and memory\n", picture("bench-memory.svg", "Idle memory of each server and its children")]
        parts += [table_of_starts(results), devices(results)]
    if results["phones"]["servers"]:
        pictures["bench-phones.svg"] = chart_of_phones(results["phones"])
        parts += ["### Phones\n", about_phones(results["phones"])]
        parts += [picture("bench-phones.svg", "Time of a tap, a screen and a screenshot"), table_of_phones(results)]
    parts.append(left_out(results, lanes))
    return "\n".join(part for part in parts if part), pictures


def conditions(results):
    machine, sinew = results["machine"], results["sinew"]
    programs = ", ".join(f"{name} {version}" for name, version in machine["programs"].items())
    return (
        f"Measured on {results['when']} with Sinew {sinew['version']} (profile `{sinew['profile']}`): "
        f"{machine['processor']}, {machine['cores']} cores, {machine['memory_gib']} GiB, {machine['system']}, Linux {machine['kernel']}; "
        f"load {machine['load_before']:.2f} before the run. {programs}.\n\n"
        f"Everything ran on this machine over loopback, the load generator included: "
        f"{counted(results['rounds'], 'round')} in which the servers took turns, {results['seconds']} s for each point (more for slow servers), "
        f"{counted(results['starts'], 'start')} of each. A figure is the median of the rounds, with the lowest and the highest in brackets.\n"
    )


def table_of_calls(results, lanes):
    head = ["server", "MCP", *(counted(count, "connection") for count in results["connections"]), "processor time a call, 32"]
    rows = []
    for server, lane in lanes:
        cells = [cell_of(lane, count, "rate", whole) for count in results["connections"]]
        used = cell_of(lane, results["connections"][-1], "processor_us", lambda value: f"{digits(value)} µs")
        rows.append([server["name"], ERAS[lane["era"]], *cells, used])
    return (
        "Calls per second. Each answer was compared with what was asked. The processor time is that of the server and its "
        "children, not of the boards and of the load generator.\n\n" + table(head, rows)
    )


def table_of_latency(results, lanes):
    head = ["server", "MCP", *(counted(count, "connection") for count in results["connections"])]
    rows = []
    for server, lane in lanes:
        cells = []
        for count in results["connections"]:
            half = cell_of(lane, count, "p50_us", lambda value: digits(value / 1e3), spread=False)
            tail = cell_of(lane, count, "p99_us", lambda value: digits(value / 1e3))
            cells.append("failed" if half == "failed" else f"{half} / {tail}")
        rows.append([server["name"], ERAS[lane["era"]], *cells])
    return "Milliseconds, the median call and the 99th percentile.\n\n" + table(head, rows)


def table_of_starts(results):
    rows = []
    for server in results["servers"]:
        start = spread(server["start_ms"], whole) + " ms" if server["start_ms"] else ""
        idle = spread([own / 1e6 for own, _ in server["idle"]], digits)
        children = [child / 1e6 for _, child in server["idle"]]
        idle += f" + {spread(children, digits)}" if max(children) else ""
        own, child = (size / 1e6 for size in server["after"])
        after = digits(own) + (f" + {digits(child)}" if child else "")
        busy = digits(statistics.median(server["idle_percent"])) + " %"
        rows.append([server["name"], server["version"], server["work"], start, idle, after, busy])
    head = ["server", "version", "what it does", "start until the first answered call", "idle, MB", "after all calls, MB"]
    return table([*head, "processor while idle"], rows) + (
        "\nMemory is resident memory (RSS); what follows `+` is that of child processes: the Node program with the echo, "
        "which a bridge needs once more for each further device.\n"
    )


def devices(results):
    lines = []
    if "device_bytes" in results:
        boards, each = results["device_bytes"]["boards"], results["device_bytes"]["each"]
        lines.append(f"Each of {boards:,} further idle boards takes {digits(each / 1024)} KiB of Sinew's memory.")
        listed = results["board_list_bytes"]
        lines.append(f"`tools/list` of {listed['boards']:,} equal boards has {listed['tools']} tools and {listed['bytes']:,} bytes.")
    return " ".join(lines) + "\n" if lines else ""


def about_phones(results):
    return (
        "One virtual phone behind one real adb server, clients on stdio; "
        f"{counted(results['rounds'], 'round')} of {results['count']} taps and screens each. Every tap of a round was counted on the phone. "
        "Both use what works over adb alone: the programs that they run on a real phone to be faster do not run on a virtual one, "
        "so the times are what the servers cost, not what a real phone takes.\n"
    )


def table_of_phones(results):
    servers = results["phones"]["servers"]
    rows = [["version", *(server["version"] for server in servers)]]
    for what, label in PHONE_WORK.items():
        rows.append([label, *(spread(medians(server["times"][what]), digits) + " ms" for server in servers)])
    rows.append(["bytes of that screenshot", *(f"{server.get('picture_bytes', 0):,}" for server in servers)])
    for screen, sizes in results["phones"]["screens"].items():
        rows.append([f"bytes of the screen {screen}", *(f"{sizes[server['key']]:,}" for server in servers)])
    rows.append(["tools", *(str(server["tools"]) for server in servers)])
    rows.append(["bytes of the tool list", *(f"{server['list_bytes']:,}" for server in servers)])
    rows.append(["start until the phone is found", *(f"{server['start_ms'][0]:,.0f} ms" for server in servers)])
    rows.append(["idle, MB", *(digits(sum(server["idle"]) / 1e6) for server in servers)])
    return table(["", *(server["name"] for server in servers)], rows)


def left_out(results, lanes):
    lines = [f"- {entry['name']}: {entry['reason']}" for entry in results["missing"]]
    for server, lane in lanes:
        lines += [f"- {server['name']}, {ERAS[lane['era']]}: {failure}" for failure in lane["failures"]]
    return "### Not measured\n\n" + "\n".join(lines) + "\n" if lines else ""


def chart_of_calls(results, lanes):
    rows = []
    for server, lane in lanes:
        label = f"{server['name']}, {lane['era'][:4]}"
        points = [point_of(values_of(lane, count, "rate")) for count in results["connections"]]
        rows.append((label, is_ours(server), points))
    series = [counted(count, "connection") for count in results["connections"]]
    return charts.dots("Calls per second, more is better", "median and spread of the rounds; 2026 and 2025 are revisions of MCP", "calls/s", series, rows)


def chart_of_memory(results):
    rows = []
    for server in results["servers"]:
        own, children = (statistics.median(sizes) / 1e6 for sizes in zip(*server["idle"]))
        rows.append((server["name"], is_ours(server), [own, children]))
    return charts.bars("Idle memory, less is better", "resident, with one device or echo behind it", "MB", ["server", "its children"], rows)


def chart_of_phones(results):
    rows = []
    for what in PHONE_WORK:
        for server in results["servers"]:
            point = point_of(medians(server["times"][what]))
            rows.append((f"{what}, {server['name']}", is_ours(server), [point]))
    return charts.dots("Phone tools, less is better", "milliseconds over adb to the same virtual phone", "ms", [], rows)


def is_ours(server):
    return server["name"].startswith("Sinew")


def values_of(lane, count, key):
    runs = lane["runs"][str(count)]
    return [run["right"] / run["seconds"] if key == "rate" else run[key] for run in runs]


def cell_of(lane, count, key, show, spread=True):
    values = values_of(lane, count, key)
    if not values:
        return "failed"
    return shown(values, show) if spread else show(statistics.median(values))


def point_of(values):
    return (statistics.median(values), min(values), max(values)) if values else None


def medians(rounds):
    return [statistics.median(times) for times in rounds]


def spread(values, show):
    return shown(values, show) if values else "failed"


def shown(values, show):
    middle, low, high = (show(value) for value in (statistics.median(values), min(values), max(values)))
    return middle if low == high else f"{middle} ({low}–{high})"


def counted(count, thing):
    return f"{count} {thing}" if count == 1 else f"{count} {thing}s"


def whole(value):
    return f"{value:,.0f}"


def digits(value):
    """Three digits that mean something."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def picture(name, words):
    return f"![{words}](images/{name})\n"


def table(head, rows):
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


if __name__ == "__main__":
    file = pathlib.Path(sys.argv[1])
    write(json.loads(file.read_text()), file.parent / "preview")
