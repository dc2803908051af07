"""The authorization scenarios of the official conformance suite against a gateway that issues its own tokens.

The suite prints an address for a person with a browser and waits for the answer; here a program is that person.
`authorization.py NODE SUITE LOG` prints a line a scenario."""

import asyncio
import os
import re
import subprocess
import sys

import httpx2

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "../clients"))
from consent import main as consent  # noqa: E402
from gateway_with_sign_in import PASSPHRASE, Gateway, free_port  # noqa: E402


async def main(node, suite, log):
    gateway, seen, failed = Gateway(), 0, 0
    try:
        gateway.add_person("ada")
        port = free_port()
        about = {"client_name": "The conformance suite", "redirect_uris": [f"http://127.0.0.1:{port}/callback"]}
        async with httpx2.AsyncClient() as http:
            client = (await http.post(f"{gateway.url}/oauth/register", json=about)).json()["client_id"]
        command = [node, suite, "authorization", "--url", gateway.url, "--client-id", client]
        command += ["--resource", f"{gateway.url}/mcp", "--port", str(port)]
        running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        with open(log, "w") as file:
            for line in running.stdout:
                file.write(line)
                if line.startswith(f"{gateway.url}/oauth/authorize?"):
                    await consent(line.strip(), "ada", PASSPHRASE)
                if found := re.match(r"(✓|✗) ([a-z0-9-]+):(.*)", line):
                    seen += 1
                    failed += found[1] == "✗"
                    word = "ok  " if found[1] == "✓" else "FAIL"
                    print(f"{word} conformance authorization: {found[2]}{'' if word == 'ok  ' else found[3]}")
        running.wait()
        if seen == 0:
            print(f"FAIL conformance authorization: the suite did not run, see {log}")
    finally:
        gateway.stop()
    return failed > 0 or seen == 0


raise SystemExit(asyncio.run(main(*sys.argv[1:])))
