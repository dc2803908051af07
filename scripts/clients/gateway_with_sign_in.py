"""A gateway of its own at which clients sign in, with a person and a virtual board."""

import json
import os
import socket
import subprocess
import tempfile

BIN = os.environ["SINEW_BIN"]
PASSPHRASE = "a passphrase for tests"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


class Gateway:
    def __init__(self, more=""):
        self.folder = tempfile.TemporaryDirectory(prefix="sinew-sign-in-")
        state = self.folder.name
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith("SINEW_")}
        self.environment |= {"SINEW_STATE": state, "ADB_SERVER_SOCKET": "localfilesystem:/nonexistent"}
        # The address is in the configuration, so the port must be known before.
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        with open(f"{state}/sinew.toml", "w") as file:
            file.write(f'[clients]\npublic-url = "{self.url}"\n[oauth]\n{more}')
        ports = ["--listen", f"127.0.0.1:{port}", "--devices", "127.0.0.1:0", "--mqtt", "127.0.0.1:0"]
        self.processes = [self.start("serve", "--config", f"{state}/sinew.toml", *ports, "--output", "json")]
        page = json.loads(self.processes[0].stdout.readline())
        with open(f"{state}/token") as file:
            own = file.read().strip()
        self.processes.append(self.start("sim", "board", "--connect", page["devices_url"], "--token", own))

    def start(self, *arguments):
        return subprocess.Popen([BIN, *arguments], env=self.environment, stdout=subprocess.PIPE, text=True)

    def sinew(self, *arguments, given=None):
        command = [BIN, *arguments, "--output", "json"]
        run = subprocess.run(command, env=self.environment, input=given, capture_output=True, text=True)
        assert run.returncode == 0, run.stderr
        return json.loads(run.stdout)

    def add_person(self, name, role="admin"):
        self.sinew("people", "add", name, "--role", role, "--passphrase-stdin", given=PASSPHRASE)

    def stop(self):
        for process in reversed(self.processes):
            process.terminate()
            process.wait()
        self.folder.cleanup()
