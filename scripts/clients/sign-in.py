"""The official Python client signs in by OAuth: it finds out where, registers itself, sends its user to the page of the
gateway, and calls tools with what it gets. Its tokens are renewed, and it is signed out."""

import asyncio
import json
import logging
import urllib.parse

import httpx2
from consent import Browser
from gateway_with_sign_in import PASSPHRASE, Gateway
from mcp import Client
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.client.auth.oauth2 import AuthorizationCodeResult
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientMetadata

# Nobody listens there: what a browser would send to the program is read from the address.
REDIRECT = "http://127.0.0.1:33418/callback"
failed = 0
# The library logs the refusals that are wanted here.
logging.getLogger("mcp").setLevel(logging.CRITICAL)


async def check(what, run):
    global failed
    try:
        await run
        print(f"ok   sign-in: {what}")
    except BaseException as error:
        failed += 1
        print(f"FAIL sign-in: {what}: {type(error).__name__}: {str(error)[:600]}")


class Memory:
    def __init__(self):
        self.tokens, self.client = None, None

    async def get_tokens(self):
        return self.tokens

    async def set_tokens(self, tokens):
        self.tokens = tokens

    async def get_client_info(self):
        return self.client

    async def set_client_info(self, client):
        self.client = client


class User:
    """Who sits in front of the browser, and presses a button."""

    def __init__(self, gateway, name, decision="allow"):
        self.gateway, self.name, self.decision = gateway, name, decision
        self.memory, self.asked, self.answer = Memory(), 0, None

    async def open(self, address):
        self.asked += 1
        self.answer = await Browser(self.name, PASSPHRASE).consent(address, self.decision)

    async def read(self):
        values = urllib.parse.parse_qs(urllib.parse.urlparse(self.answer).query)
        first = {name: value[0] for name, value in values.items()}
        return AuthorizationCodeResult(code=first.get("code", ""), state=first.get("state"), iss=first.get("iss"))

    def provider(self):
        about = OAuthClientMetadata(client_name="The Python client", redirect_uris=[REDIRECT])
        url = f"{self.gateway.url}/mcp"
        return OAuthClientProvider(url, about, self.memory, redirect_handler=self.open, callback_handler=self.read)

    async def tools(self):
        async with httpx2.AsyncClient(auth=self.provider(), timeout=60, follow_redirects=True) as http:
            async with Client(streamable_http_client(f"{self.gateway.url}/mcp", http_client=http)) as client:
                listed = await client.list_tools()
                result = await client.call_tool("list_devices", {})
                assert not result.is_error, result
                return [tool.name for tool in listed.tools]


async def token_request(gateway, **form):
    async with httpx2.AsyncClient() as http:
        return await http.post(f"{gateway.url}/oauth/token", data=form)


async def first_time(user):
    names = await user.tools()
    assert "list_devices" in names, names
    assert user.asked == 1, f"asked {user.asked} times"
    entry = user.gateway.sinew("sign-ins")["sign_ins"][0]
    assert (entry["caller"], entry["client"]) == ("ada@localhost", "The Python client"), entry


async def audit(gateway):
    records = gateway.sinew("audit")["records"]
    assert any(one["principal"] == "ada@localhost" for one in records), records
    said = json.dumps(records)
    assert "snc_" not in said and "sna_" not in said and "snr_" not in said, said


async def again(user):
    # Another run of the client with what it kept: nobody is asked, and its token is renewed.
    await user.tools()
    assert user.asked == 1, f"asked {user.asked} times"
    before = user.memory.tokens
    answer = await token_request(
        user.gateway,
        grant_type="refresh_token",
        client_id=user.memory.client.client_id,
        refresh_token=before.refresh_token,
    )
    assert answer.status_code == 200 and answer.headers["cache-control"] == "no-store", answer.text
    renewed = answer.json()
    user.memory.tokens = before.model_copy(update={name: renewed[name] for name in ("access_token", "refresh_token")})
    await user.tools()
    assert user.asked == 1, f"asked {user.asked} times"


async def replayed(user):
    old = user.memory.tokens.refresh_token
    form = {"grant_type": "refresh_token", "client_id": user.memory.client.client_id, "refresh_token": old}
    first = await token_request(user.gateway, **form)
    second = await token_request(user.gateway, **form)
    assert (first.status_code, second.status_code) == (200, 400), (first.text, second.text)
    assert second.json()["error"] == "invalid_grant", second.text
    third = await token_request(user.gateway, **(form | {"refresh_token": first.json()["refresh_token"]}))
    assert third.status_code == 400, "whoever stole the token goes on"
    assert user.gateway.sinew("sign-ins")["sign_ins"] == []


async def anew(user):
    await user.tools()
    assert user.asked == 2, f"asked {user.asked} times"
    entry = user.gateway.sinew("sign-ins")["sign_ins"][0]
    user.gateway.sinew("sign-ins", "end", entry["id"])
    await user.tools()
    assert user.asked == 3, f"asked {user.asked} times"


async def denied(gateway):
    user = User(gateway, "ada", decision="deny")
    try:
        await user.tools()
    except BaseException as error:
        text = repr(error.exceptions if isinstance(error, BaseExceptionGroup) else error)
        assert OAuthFlowError.__name__ in text, text
        return
    raise AssertionError("it came in")


async def private_document(gateway):
    # A client that says its document is on this machine, behind the gateway's own back.
    user = User(gateway, "ada")
    provider = user.provider()
    provider.context.client_metadata_url = "https://127.0.0.1:7300/client.json"
    try:
        async with httpx2.AsyncClient(auth=provider, timeout=60) as http:
            await http.post(f"{gateway.url}/mcp", json={})
    except AssertionError as error:
        assert "No client was connected" in str(error), error
        return
    raise AssertionError("the page was shown")


async def main():
    gateway = Gateway()
    try:
        gateway.add_person("ada")
        user = User(gateway, "ada")
        await check("it registers itself, its user agrees, and it calls tools", first_time(user))
        await check("its calls are recorded under its user's name, without a secret", audit(gateway))
        await check("it comes in again without its user, and renews its token", again(user))
        await check("a refresh token that is used twice signs it out", replayed(user))
        await check("signed out, it asks its user again", anew(user))
        await check("its user may say no", denied(gateway))
        await check("a document about it on this machine is not read", private_document(gateway))
    finally:
        gateway.stop()


asyncio.run(main())
raise SystemExit(failed > 0)
