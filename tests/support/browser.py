"""Headless Chromium over its DevTools protocol: a page's messages, requests and looks."""

from __future__ import annotations

import asyncio
import base64
import re
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import aiohttp

_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--hide-scrollbars",
    "--no-first-run",
    "--disable-background-networking",
    "--remote-debugging-port=0",
)
_LISTENING = re.compile(rb"DevTools listening on (ws://\S+)")
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


@dataclass(frozen=True)
class Look:
    """A way to look at a page. Widths in CSS pixels."""

    name: str
    width: int
    dark: bool = False
    media: str = "screen"


@dataclass
class Seen:
    """A page's observed behaviour.

    Attributes:
        errors: Console errors, warnings and exceptions.
        requests: Requested foreign addresses.
        too_wide: Pixels by which the content exceeds the window's width.
        overlaps: Pairs of overlapping labels.
        cut: Labels outside their chart's figure.
        squeezed: Table words broken over several lines, folded parts included.
        picture: PNG of the whole page.
    """

    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    too_wide: int = 0
    overlaps: list[str] = field(default_factory=list)
    cut: list[str] = field(default_factory=list)
    squeezed: list[str] = field(default_factory=list)
    picture: bytes = b""


# Pairs of a chart's texts whose boxes overlap by more than a pixel, texts outside the chart, and
# table words broken over two lines, folded parts included.
_LABELS = """(() => {
  const overlaps = [], cut = [], squeezed = [];
  const folded = [...document.querySelectorAll("details:not([open])")];
  folded.forEach((each) => { each.open = true; });
  const wide = document.documentElement.clientWidth;
  for (const plot of document.querySelectorAll("svg.chart")) {
    const boxes = [...plot.querySelectorAll("text")]
      .filter((e) => e.textContent.trim())
      .map((e) => ({ text: e.textContent.trim(), box: e.getBoundingClientRect() }));
    const where = plot.getAttribute("aria-label"), edge = plot.getBoundingClientRect();
    if (edge.right > wide + 1) cut.push(`${where}: wider than the window`);
    boxes.forEach((a, i) => {
      if (a.box.left < edge.left - 1 || a.box.right > edge.right + 1)
        cut.push(`${where}: ${a.text}`);
      boxes.slice(i + 1).forEach((b) => {
        const across = Math.min(a.box.right, b.box.right) - Math.max(a.box.left, b.box.left);
        const down = Math.min(a.box.bottom, b.box.bottom) - Math.max(a.box.top, b.box.top);
        if (across > 1 && down > 2)
          overlaps.push(`${where}: ${a.text} | ${b.text}`);
      });
    });
  }
  for (const cell of document.querySelectorAll("th, td")) {
    const texts = document.createTreeWalker(cell, NodeFilter.SHOW_TEXT);
    while (texts.nextNode())
      for (const word of texts.currentNode.data.matchAll(/[\\p{L}\\p{N}_]+/gu)) {
        const range = document.createRange();
        range.setStart(texts.currentNode, word.index);
        range.setEnd(texts.currentNode, word.index + word[0].length);
        if (new Set([...range.getClientRects()].map((box) => box.top)).size > 1)
          squeezed.push(`${word[0]} in: ${cell.textContent}`.slice(0, 80));
      }
  }
  const too_wide = document.documentElement.scrollWidth - wide;
  folded.forEach((each) => { each.open = false; });
  return { overlaps, cut, squeezed, too_wide };
})()"""


def program() -> str | None:
    return next((found for name in PROGRAMS if (found := shutil.which(name))), None)


class Browser:
    """A running Chromium. Mutable state: command numbers and their waiters."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._numbers = count(1)
        self._waiting: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._events: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        self._reading = asyncio.create_task(self._read())

    async def look(self, address: str, look: Look) -> Seen:
        """Open a page by its address and return the observations."""
        async with self.opened(address, look) as page:
            return await page.looked_at()

    @asynccontextmanager
    async def opened(self, address: str, look: Look) -> AsyncIterator[Page]:
        """Open a page by its address for a block; only one page at a time."""
        created = await self.send("Target.createTarget", url="about:blank")
        target = created["targetId"]
        attached = await self.send("Target.attachToTarget", targetId=target, flatten=True)
        session, seen = attached["sessionId"], Seen()
        while not self._events.empty():
            self._events.get_nowait()
        for domain in ("Page", "Runtime", "Log", "Network"):
            await self.send(f"{domain}.enable", session)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if look.dark else "light"}
        await self.send("Emulation.setEmulatedMedia", session, media=look.media, features=[scheme])
        size = {"width": look.width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
        await self.send("Emulation.setDeviceMetricsOverride", session, **size)
        await self.send("Page.navigate", session, url=address)
        await self._until_loaded(seen, address)
        yield Page(self, session, address, seen)
        await self.send("Target.closeTarget", targetId=target)

    async def close(self) -> None:
        await self.send("Browser.close")
        self._reading.cancel()

    def noted(self, seen: Seen, address: str) -> None:
        """Record the observations so far."""
        while not self._events.empty():
            _note(seen, self._events.get_nowait(), address)

    async def _until_loaded(self, seen: Seen, address: str) -> None:
        while True:
            event = await self._events.get()
            _note(seen, event, address)
            if event["method"] == "Page.loadEventFired":
                return

    async def send(self, method: str, session: str = "", **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        command: dict[str, Any] = {"id": number, "method": method, "params": parameters}
        await self._socket.send_json(command | ({"sessionId": session} if session else {}))
        return await answer

    async def _read(self) -> None:
        async for message in self._socket:
            content = message.json()
            if "id" not in content:
                self._events.put_nowait(content)
            elif "error" in content:
                error = RuntimeError(content["error"]["message"])
                self._waiting.pop(content["id"]).set_exception(error)
            else:
                self._waiting.pop(content["id"]).set_result(content["result"])


class Page:
    def __init__(self, browser: Browser, session: str, address: str, seen: Seen) -> None:
        self._browser = browser
        self._session = session
        self._address = address
        self.seen = seen

    async def value(self, expression: str) -> Any:
        """Return the value of an expression of JavaScript; a promise is awaited."""
        found = await self._browser.send(
            "Runtime.evaluate",
            self._session,
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
        )
        return found["result"].get("value")

    async def until(self, condition: str) -> None:
        """Wait until an expression of JavaScript is true in the page."""
        await self.value(
            f"new Promise((done) => {{ const look = () => ({condition}) ? done(true) : "
            "setTimeout(look, 50); look(); })"
        )

    async def cut_off(self, offline: bool) -> None:
        """Disable or restore the network."""
        await self._browser.send(
            "Network.emulateNetworkConditions",
            self._session,
            offline=offline,
            latency=0,
            downloadThroughput=-1,
            uploadThroughput=-1,
        )

    async def looked_at(self) -> Seen:
        """Return the observations so far, with the layout."""
        told, seen = await self.value(_LABELS), self.seen
        seen.too_wide = int(told["too_wide"])
        seen.overlaps, seen.cut = list(told["overlaps"]), list(told["cut"])
        seen.squeezed = list(told["squeezed"])
        shot = await self._browser.send(
            "Page.captureScreenshot", self._session, captureBeyondViewport=True
        )
        seen.picture = base64.b64decode(shot["data"])
        self._browser.noted(seen, self._address)
        return seen


def _note(seen: Seen, event: dict[str, Any], address: str) -> None:
    method, told = event["method"], event["params"]
    if method == "Network.requestWillBeSent" and told["request"]["url"] != address:
        seen.requests.append(told["request"]["url"])
    elif method == "Runtime.exceptionThrown":
        seen.errors.append(str(told["exceptionDetails"]))
    elif method == "Runtime.consoleAPICalled" and told["type"] in ("error", "warning"):
        seen.errors.append(str(told["args"]))
    elif method == "Log.entryAdded" and told["entry"]["level"] in ("error", "warning"):
        seen.errors.append(told["entry"]["text"])


@asynccontextmanager
async def running_browser(path: str) -> AsyncIterator[Browser]:
    """Run a Chromium with its own profile for a block."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        process = await asyncio.create_subprocess_exec(
            path,
            *_FLAGS,
            f"--user-data-dir={profile}",
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.PIPE,
        )
        try:
            assert process.stderr is not None
            address = None
            while address is None:
                line = await process.stderr.readline()
                if not line:
                    raise RuntimeError("Chromium ended before it was ready")
                address = _LISTENING.search(line)
            drained = asyncio.create_task(_drain(process.stderr))
            async with (
                aiohttp.ClientSession() as http,
                http.ws_connect(address[1].decode(), max_msg_size=0) as socket,
            ):
                browser = Browser(socket)
                yield browser
                await browser.close()
            await process.wait()
            await drained
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()


async def _drain(stream: asyncio.StreamReader) -> None:
    while await stream.readline():
        pass
