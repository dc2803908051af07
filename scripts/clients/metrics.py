"""Prometheus reads the metrics of the gateway, and answers each query of the dashboard."""

import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request

URL = os.environ["SINEW_URL"].removesuffix("/mcp")
TOKEN = os.environ["SINEW_TOKEN"]
DASHBOARD = pathlib.Path(__file__).parents[2] / "packaging/grafana/sinew.json"
DOCS = pathlib.Path(__file__).parents[2] / "docs/metrics.md"
failed = False


def check(name, is_true, details=""):
    global failed
    failed |= not is_true
    print(f"ok   metrics: {name}" if is_true else f"FAIL metrics: {name} {details}", flush=True)


def get(url, headers=None):
    try:
        with urllib.request.urlopen(urllib.request.Request(url, headers=headers or {}), timeout=10) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers, error.read().decode()


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def names_in(query):
    return set(re.findall(r"\b(?:sinew|process)_[a-z_]+", query))


status, _, _ = get(f"{URL}/metrics")
check("nobody reads them without a token", status == 401, status)
status, headers, text = get(f"{URL}/metrics", {"Authorization": f"Bearer {TOKEN}"})
check("a client reads them", status == 200, status)
kind = headers["Content-Type"]
check("they say that they are OpenMetrics", kind.startswith("application/openmetrics-text; version=1.0.0"), kind)
check("they end with the end", text.endswith("# EOF\n"))

with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    (folder / "token").write_text(TOKEN)
    (folder / "prometheus.yml").write_text(
        json.dumps(
            {
                "scrape_configs": [
                    {
                        "job_name": "sinew",
                        "scrape_interval": "1s",
                        "authorization": {"credentials_file": str(folder / "token")},
                        "static_configs": [{"targets": [urllib.parse.urlsplit(URL).netloc]}],
                    }
                ]
            }
        )
    )
    port = free_port()
    command = ["prometheus", f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    command += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=error"]
    prometheus = subprocess.Popen(command)

    def query(text):
        _, _, body = get(f"http://127.0.0.1:{port}/api/v1/query?" + urllib.parse.urlencode({"query": text}))
        return json.loads(body)

    try:
        samples = []
        for _ in range(60):
            try:
                samples = query("up")["data"]["result"]
                # Rates need two values.
                if samples and samples[0]["value"][1] == "1" and query("count_over_time(up[1m]) > 2")["data"]["result"]:
                    break
            except (OSError, ValueError, KeyError):
                pass
            time.sleep(0.5)
        check("Prometheus reads them", bool(samples) and samples[0]["value"][1] == "1", samples)
        _, _, body = get(f"http://127.0.0.1:{port}/api/v1/label/__name__/values")
        known = set(json.loads(body)["data"])
        queries = [target["expr"] for panel in json.loads(DASHBOARD.read_text())["panels"] for target in panel["targets"]]
        refused = [text for text in queries if query(text).get("status") != "success"]
        check(f"it evaluates the {len(queries)} queries of the dashboard", not refused and len(queries) > 10, refused)
        missing = set().union(*map(names_in, queries)) - known
        check("the dashboard names metrics that exist", not missing, missing)
        documented = set(re.findall(r"`((?:sinew|process)_[a-z_]+)", DOCS.read_text()))
        bases = {re.sub(r"_(bucket|sum|count)$", "", name) for name in known if name.startswith(("sinew_", "process_"))}
        check("the documentation names all of them, and no other", documented == bases, documented ^ bases)
    finally:
        prometheus.terminate()
        prometheus.wait()
sys.exit(failed)
