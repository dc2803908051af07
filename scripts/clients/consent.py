"""What a person and their browser do when a client wants to sign in: follow the pages, sign in, and press the button.

As a program: `consent.py ADDRESS NAME PASSPHRASE` goes on to where the last page leads, as a browser would.
"""

import html
import re
import sys
import urllib.parse

import httpx2


class Browser:
    """Keeps cookies, and follows redirects of the gateway alone."""

    def __init__(self, name, passphrase):
        self.client = httpx2.AsyncClient(timeout=30)
        self.name, self.passphrase = name, passphrase

    async def open(self, address):
        """The page at an address, behind redirects, pages that lead on by themselves, and the login."""
        for _ in range(10):
            page = await self.client.get(address)
            refresh = re.search(r'http-equiv="refresh" content="0;url=([^"]*)"', page.text)
            if page.is_redirect:
                address = urllib.parse.urljoin(address, page.headers["location"])
            elif refresh:
                address = urllib.parse.urljoin(address, html.unescape(refresh[1]))
            elif 'name="passphrase"' in page.text:
                form = {"name": self.name, "passphrase": self.passphrase, "next": hidden(page.text)["next"]}
                signed = await self.submit(urllib.parse.urljoin(address, "login"), form)
                assert signed.is_redirect, f"the passphrase was refused: {signed.status_code}"
                address = urllib.parse.urljoin(address, signed.headers["location"])
            else:
                return address, page
        raise AssertionError("the pages lead in a circle")

    async def submit(self, address, form):
        parts = urllib.parse.urlparse(address)
        headers = {"origin": f"{parts.scheme}://{parts.netloc}", "sec-fetch-site": "same-origin"}
        return await self.client.post(address, data=form, headers=headers)

    async def consent(self, address, decision="allow"):
        """Presses a button of the page; the answer is the address to which that leads."""
        address, page = await self.open(address)
        assert page.status_code == 200, f"{page.status_code}: {page.text}"
        answer = await self.submit(urllib.parse.urljoin(address, "authorize"), hidden(page.text) | {"decision": decision})
        assert answer.is_redirect, f"{answer.status_code}: {answer.text}"
        return answer.headers["location"]


def hidden(page):
    """The values that a page sends again; of several forms, those of the last."""
    fields = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', page)
    return {name: html.unescape(value) for name, value in fields}


async def main(address, name, passphrase):
    browser = Browser(name, passphrase)
    await browser.client.get(await browser.consent(address))


if __name__ == "__main__":
    import asyncio

    asyncio.run(main(*sys.argv[1:]))
