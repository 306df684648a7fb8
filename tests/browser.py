"""Pages in headless Chromium: what they ask for, and what they complain about.

Usage: python tests/browser.py FOLDER

Visits every page below a folder, and fails if one of them writes an error to the console or asks
for anything but files. Without Chromium it says so and passes.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_OPTIONS = [
    "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update", "--remote-debugging-port=0",
]  # fmt: skip
# Of a browser that does not answer, in seconds.
_PATIENCE = 120


class Tab:
    """One tab, by the protocol of the developer tools."""

    def __init__(self, socket: Any) -> None:
        self._socket = socket
        self._number = 0
        self.events: list[dict[str, Any]] = []

    async def send(self, method: str, **parameters: Any) -> Any:
        """Send a command and return its result; events that come meanwhile are kept."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        await self._socket.write_message(json.dumps(message))
        while (message := json.loads(await self._socket.read_message())).get("id") != self._number:
            self.events.append(message)
        return message["result"]

    async def run(self, code: str) -> Any:
        """Return the value of JavaScript."""
        answer = await self.send("Runtime.evaluate", expression=code, returnByValue=True)
        return answer["result"].get("value")

    async def until(self, code: str, wanted: Any) -> Any:
        """Ask until JavaScript has a value."""
        while (value := await self.run(code)) != wanted:
            await asyncio.sleep(0.05)
        return value

    async def visit(self, url: str) -> None:
        """Go to a page and wait until all of it is there."""
        self.events.clear()
        await self.send("Page.navigate", url=url)
        await self.until("document.readyState + (location.href != 'about:blank')", "completetrue")

    @property
    def requests(self) -> list[str]:
        """Addresses that the page asked for."""
        asked = [e["params"] for e in self.events if e["method"] == "Network.requestWillBeSent"]
        opened = [e["params"] for e in self.events if e["method"] == "Network.webSocketCreated"]
        return [*(x["request"]["url"] for x in asked), *(x["url"] for x in opened)]

    @property
    def complaints(self) -> list[Any]:
        """Errors and warnings of the console, and exceptions."""
        bad = ("Log.entryAdded", "Runtime.exceptionThrown")
        return [e["params"] for e in self.events if e["method"] in bad]


@contextlib.asynccontextmanager
async def browser(folder: Path) -> AsyncIterator[Tab]:
    """Start Chromium with its files in a folder."""
    from tornado.websocket import websocket_connect

    assert CHROMIUM is not None
    command = [CHROMIUM, *_OPTIONS, f"--user-data-dir={folder}", "about:blank"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            port = await asyncio.wait_for(asyncio.to_thread(_port, process), _PATIENCE)
            pages = await asyncio.to_thread(_asked, f"http://127.0.0.1:{port}/json")
            page = next(one for one in pages if one["type"] == "page")
            socket = await websocket_connect(page["webSocketDebuggerUrl"], max_message_size=10**8)
            tab = Tab(socket)
            for domain in ("Page", "Runtime", "Network", "Log"):
                await tab.send(f"{domain}.enable")
            try:
                yield tab
            finally:
                socket.close()
                # What still comes, until the end of the connection.
                while await socket.read_message() is not None:
                    pass
        finally:
            process.terminate()


def _port(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("DevTools listening on"):
            return line.rsplit(":", 1)[1].split("/")[0]
    raise RuntimeError("Chromium ended before it listened")


def _asked(url: str) -> Any:
    with urllib.request.urlopen(url) as answer:
        return json.load(answer)


async def complaints_of(pages: list[Path]) -> list[str]:
    """Visit files; return what their consoles say and what they ask for beside files."""
    result = []
    with tempfile.TemporaryDirectory() as folder:
        async with browser(Path(folder)) as tab:
            for page in pages:
                await asyncio.wait_for(tab.visit(page.resolve().as_uri()), _PATIENCE)
                foreign = [url for url in tab.requests if not re.match(r"(file|data|blob):", url)]
                result += [f"{page.name} asks for {url}" for url in foreign]
                result += [f"{page.name}: {json.dumps(one)[:300]}" for one in tab.complaints]
    return result


def main(arguments: list[str]) -> int:
    """Visit all pages below a folder; return 1 if one is not as it should be."""
    if len(arguments) != 1:
        print(__doc__, file=sys.stderr)
        return 2
    if CHROMIUM is None:
        print("There is no Chromium: the pages were not opened.")
        return 0
    # A theme keeps templates among what its pages load.
    pages = sorted(x for x in Path(arguments[0]).rglob("*.html") if "_static" not in x.parts)
    found = asyncio.run(complaints_of(pages))
    print("\n".join([*found[:20], f"{len(pages)} pages, {len(found)} complaints"]))
    return 1 if found or not pages else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
