"""Headless Chromium, driven through two pipes with its DevTools protocol: a JSON object and a zero byte in each
direction.

It is a process of the tests with a profile of its own, and has no network: every request of a page for another resource
is recorded.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome")
PATIENCE_S = 60.0
OPTIONS = (
    "--headless=new",
    "--remote-debugging-pipe",
    # As root Chromium has no sandbox; the pages are our own.
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--hide-scrollbars",
    "--host-resolver-rules=MAP * ~NOTFOUND",
)


def find_browser() -> str | None:
    return next(filter(None, map(shutil.which, NAMES)), None)


class Page:
    """One tab. Its console output and its requests are kept."""

    def __init__(self, browser: Chromium, session: str) -> None:
        self._browser = browser
        self._session = session
        self.complaints: list[str] = []
        """Errors and warnings on its console, and unhandled exceptions."""
        self.requests: list[str] = []
        for domain in ("Page", "Runtime", "Log", "Network"):
            self._ask(f"{domain}.enable")

    def look_like(self, width: int, *, dark: bool, height: int = 900) -> None:
        """Sets the width of the screen, and the user's preference for a dark theme."""
        self._ask(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=width < 600,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._ask("Emulation.setEmulatedMedia", features=[scheme])

    def open(self, path: Path) -> None:
        self.complaints.clear()
        self.requests.clear()
        self._ask("Page.navigate", url=path.resolve().as_uri())
        self._browser.wait_for("Page.loadEventFired", self._session)

    def evaluate(self, expression: str) -> Any:
        answer = self._ask("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def screenshot(self, path: Path) -> None:
        """Takes a picture of the whole page."""
        answer = self._ask("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(answer["data"]))

    def heed(self, method: str, event: dict[str, Any]) -> None:
        match method:
            case "Runtime.consoleAPICalled" if event["type"] in ("error", "warning", "assert"):
                self.complaints.append(f"{event['type']}: {event['args']}")
            case "Runtime.exceptionThrown":
                self.complaints.append(f"exception: {event['exceptionDetails']['text']}")
            case "Log.entryAdded" if event["entry"]["level"] in ("error", "warning"):
                self.complaints.append(f"{event['entry']['level']}: {event['entry']['text']}")
            case "Network.requestWillBeSent":
                self.requests.append(event["request"]["url"])
            case _:
                pass

    def _ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._browser.ask(method, parameters, self._session)


class Chromium:
    def __init__(self, process: subprocess.Popen[bytes], reading: int, writing: int) -> None:
        self._process = process
        self._reading, self._writing = reading, writing
        self._unread = bytearray()
        self._count = 0
        self._events: list[tuple[str, str]] = []
        """Session and name of events that no caller has waited for."""
        self._pages: dict[str, Page] = {}

    @property
    def version(self) -> str:
        return str(self.ask("Browser.getVersion", {})["product"])

    def new_page(self) -> Page:
        target = self.ask("Target.createTarget", {"url": "about:blank"})["targetId"]
        session = str(self.ask("Target.attachToTarget", {"targetId": target, "flatten": True})["sessionId"])
        self._pages[session] = page = Page(self, session)
        return page

    def ask(self, method: str, parameters: dict[str, Any], session: str | None = None) -> dict[str, Any]:
        self._count += 1
        request: dict[str, Any] = {"id": self._count, "method": method, "params": parameters}
        if session is not None:
            request["sessionId"] = session
        data = json.dumps(request).encode() + b"\0"
        while data:
            data = data[os.write(self._writing, data) :]
        while True:
            message = self._next()
            if message.get("id") == self._count:
                assert "error" not in message, f"{method}: {message['error']}"
                found: dict[str, Any] = message["result"]
                return found

    def wait_for(self, method: str, session: str) -> None:
        while (session, method) not in self._events:
            self._next()
        self._events.clear()

    def _next(self) -> dict[str, Any]:
        """Returns the next message; events are passed to their page."""
        deadline = time.monotonic() + PATIENCE_S
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._reading], [], [], max(0.0, deadline - time.monotonic()))
            assert ready, f"Chromium says nothing for {PATIENCE_S} s"
            data = os.read(self._reading, 1 << 20)
            assert data, f"Chromium ended, with {self._process.poll()}"
            self._unread += data
        text, _, rest = self._unread.partition(b"\0")
        self._unread = bytearray(rest)
        message: dict[str, Any] = json.loads(text)
        if "method" in message:
            session = message.get("sessionId", "")
            self._events.append((session, message["method"]))
            if session in self._pages:
                self._pages[session].heed(message["method"], message["params"])
        return message


@contextmanager
def chromium(program: str, profile: Path) -> Iterator[Chromium]:
    """The browser ends with the block."""
    their_reading, our_writing = os.pipe()
    our_reading, their_writing = os.pipe()
    # It expects its ends at 3 and 4; neither may overwrite the other.
    their_reading, their_writing = _far_off(their_reading), _far_off(their_writing)
    shell = f'exec "$@" 3<&{their_reading} 4>&{their_writing}'
    with (profile.parent / "chromium.log").open("wb") as log:
        process = subprocess.Popen(
            ["bash", "-c", shell, "chromium", program, *OPTIONS, f"--user-data-dir={profile}", "about:blank"],
            pass_fds=(their_reading, their_writing),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    os.close(their_reading)
    os.close(their_writing)
    try:
        yield Chromium(process, our_reading, our_writing)
    finally:
        os.close(our_writing)
        os.close(our_reading)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _far_off(handle: int) -> int:
    moved = fcntl.fcntl(handle, fcntl.F_DUPFD, 10)
    os.close(handle)
    return moved
