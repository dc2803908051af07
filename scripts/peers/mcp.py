"""MCP clients of the benchmark, and the requests that wrk sends: HTTP in both eras, and stdio."""

import http.client
import itertools
import json
import urllib.parse

# The last revision with sessions that every peer speaks, and the one without.
SESSIONS, STATELESS = "2025-06-18", "2026-07-28"
CLIENT = {"name": "bench", "version": "1.0.0"}
# Stands for the id of a request until wrk sends it. As long as the ids, so that lengths stay right.
ID = "@@@@@@@@"


class WrongAnswer(Exception):
    """An answer that is not what was asked for."""


class HttpClient:
    """One client of an MCP endpoint; `era` is the revision that it speaks."""

    def __init__(self, url, era, headers=None):
        self.url = urllib.parse.urlsplit(url)
        self.era = era
        self.headers = dict(headers or {})
        self.session = None
        self.ids = itertools.count(1)
        self.connection = http.client.HTTPConnection(self.url.hostname, self.url.port, timeout=30)

    def connect(self):
        """The handshake of the older era; the newer one has none."""
        if self.era == SESSIONS:
            params = {"protocolVersion": SESSIONS, "capabilities": {}, "clientInfo": CLIENT}
            self.request("initialize", params)
            self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def request(self, method, params=None):
        number = next(self.ids)
        answer = self._post(self._message(number, method, params or {}))
        if answer is None or answer.get("id") != number or "result" not in answer:
            raise WrongAnswer(f"{method} was answered with {json.dumps(answer)[:300]}")
        return answer["result"]

    def call(self, tool, arguments):
        return checked(self.request("tools/call", {"name": tool, "arguments": arguments}))

    def list_tools(self):
        tools, cursor = [], None
        while True:
            page = self.request("tools/list", {"cursor": cursor} if cursor else {})
            tools += page["tools"]
            cursor = page.get("nextCursor")
            if not cursor:
                return tools

    def call_bytes(self, tool, arguments):
        """A whole `tools/call` as HTTP, with `ID` where its id belongs."""
        message = self._message(0, "tools/call", {"name": tool, "arguments": arguments})
        body = json.dumps(message, separators=(",", ":")).replace('"id":0', f'"id":{ID}', 1)
        headers = {"Host": self.url.netloc, **self._headers(message), "Content-Length": str(len(body))}
        head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        return f"POST {self._path()} HTTP/1.1\r\n{head}\r\n{body}"

    def close(self):
        self.connection.close()

    def _message(self, number, method, params):
        if self.era == STATELESS:
            prefix = "io.modelcontextprotocol/"
            meta = {"protocolVersion": STATELESS, "clientCapabilities": {}, "clientInfo": CLIENT}
            params = {**params, "_meta": {prefix + key: value for key, value in meta.items()}}
        return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}

    def _headers(self, message):
        headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        headers |= self.headers
        if self.era == STATELESS:
            headers |= {"MCP-Protocol-Version": STATELESS, "Mcp-Method": message["method"]}
            if "name" in message.get("params", {}):
                headers["Mcp-Name"] = message["params"]["name"]
        elif message["method"] != "initialize":
            headers["MCP-Protocol-Version"] = SESSIONS
        if self.session:
            headers["Mcp-Session-Id"] = self.session
        return headers

    def _path(self):
        return self.url.path + (f"?{self.url.query}" if self.url.query else "")

    def _post(self, message):
        body = json.dumps(message).encode()
        try:
            self.connection.request("POST", self._path(), body, self._headers(message))
            response = self.connection.getresponse()
            text = response.read().decode()
        except (OSError, http.client.HTTPException):
            self.connection.close()
            raise
        if response.status >= 300:
            raise WrongAnswer(f"{message['method']} was answered with HTTP {response.status}: {text[:300]}")
        self.session = response.getheader("Mcp-Session-Id") or self.session
        return find_answer(text, message.get("id"))


class StdioClient:
    """A client of a server on stdio, in the older era, which all such servers speak."""

    def __init__(self, process):
        self.process = process
        self.ids = itertools.count(1)

    def connect(self):
        self.request("initialize", {"protocolVersion": SESSIONS, "capabilities": {}, "clientInfo": CLIENT})
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def request(self, method, params=None):
        number = next(self.ids)
        self._send({"jsonrpc": "2.0", "id": number, "method": method, "params": params or {}})
        while line := self.process.stdout.readline():
            answer = json.loads(line)
            if answer.get("id") != number:
                continue
            if "result" not in answer:
                raise WrongAnswer(f"{method} was answered with {line[:300]}")
            return answer["result"]
        raise WrongAnswer(f"{method} was not answered: the server ended")

    call = HttpClient.call
    list_tools = HttpClient.list_tools

    def _send(self, message):
        self.process.stdin.write(json.dumps(message, separators=(",", ":")).encode() + b"\n")
        self.process.stdin.flush()


def checked(result):
    """The result of a call, which must be a success."""
    if result.get("isError") or not result.get("content"):
        raise WrongAnswer(f"the call failed: {json.dumps(result)[:300]}")
    return result


def text_of(result):
    return "\n".join(item["text"] for item in result["content"] if item["type"] == "text")


def find_answer(text, number):
    """The answer among the events of a stream, or the one JSON document; nothing for a notification."""
    if not text.strip():
        return None
    if text.lstrip().startswith("{"):
        return json.loads(text)
    answers = []
    for event in text.replace("\r\n", "\n").split("\n\n"):
        data = "\n".join(line[5:].lstrip() for line in event.split("\n") if line.startswith("data:"))
        if data.strip():
            answers.append(json.loads(data))
    return next((answer for answer in answers if answer.get("id") == number), None)
