# SPDX-License-Identifier: Apache-2.0
"""Chromium without a window, driven by DevTools over a pipe: no port, no driver program, no package."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from tests.patience import HANG_S


class PageError(AssertionError):
    """Say that a script of the page has failed, or the page does not come up."""


class Browser:
    """A browser with one page; a context manager."""

    def __init__(self) -> None:
        """Prepare a browser; skips the test where Debian's chromium is not installed."""
        if shutil.which("chromium") is None:
            pytest.skip("needs Debian's chromium (hw/host/setup.sh --dev)")
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._number = 0
        self._pending = b""

    def __enter__(self) -> Browser:
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        there_read, self._write = os.pipe()
        self._read, there_write = os.pipe()
        # Chromium reads its commands from descriptor 3 and answers on 4.
        script = f'exec 3<&{there_read} 4>&{there_write}; exec "$@"'
        command = ["bash", "-c", script, "browser", "nice", "-n", "15", "chromium", "--headless=new"]
        command += ["--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-color-profile=srgb"]
        command += ["--disable-background-networking", "--no-first-run", "--disable-dev-shm-usage"]
        command += [f"--user-data-dir={self._folder.name}", "--remote-debugging-pipe", "about:blank"]
        self._process = subprocess.Popen(
            command,
            pass_fds=(there_read, there_write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        os.close(there_read)
        os.close(there_write)
        self._session: str | None = None
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        attached = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(self, *_: object) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._read)
        os.close(self._write)
        self._folder.cleanup()

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Call a method of the protocol and return its result; what happens meanwhile is noted."""
        self._number += 1
        request: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            request["sessionId"] = self._session
        data = json.dumps(request).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data) :]
        deadline = time.monotonic() + HANG_S
        while True:
            message = self._message(deadline)
            if message.get("id") == self._number:
                if "error" in message:
                    raise PageError(f"{method}: {message['error']}")
                return message["result"]

    def open(self, page: Path, fragment: str = "", *, scripted: bool = True) -> None:
        """Open a page and wait until its script, if any, is at its end; raises PageError where it fails."""
        self.call("Page.navigate", url="about:blank")
        self.value("1")  # what the page before has still said is behind us
        self.errors.clear()
        self.requests.clear()
        self.call("Page.navigate", url=page.resolve().as_uri() + fragment)
        at_end = " && !!document.documentElement.dataset.ready" if scripted else ""
        self.until(f"document.readyState === 'complete' && location.protocol === 'file:'{at_end}")
        self.settle()

    def settle(self) -> None:
        """Wait until two frames have been drawn; raises PageError where a script has failed."""
        self.value("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))")
        self.check()

    def check(self) -> None:
        """Raise PageError where a script has failed or something was refused since the page was opened."""
        if self.errors:
            raise PageError("; ".join(self.errors))

    def until(self, expression: str) -> None:
        """Wait until an expression is true."""
        deadline = time.monotonic() + HANG_S
        while not self.value(expression):
            self.check()
            if time.monotonic() > deadline:
                raise PageError(f"never true: {expression}")
            time.sleep(0.02)

    def value(self, expression: str) -> Any:
        """Return the value of an expression in the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in found:
            raise PageError(f"{expression}: {_words(found['exceptionDetails'])}")
        return found["result"].get("value")

    def texts(self, selector: str) -> list[str]:
        """Return the texts of the elements that a selector finds."""
        return list(
            self.value(f"[...document.querySelectorAll({json.dumps(selector)})].map(n => n.innerText)")
        )

    def mouse(self, kind: str, x: float, y: float, **more: Any) -> None:
        """Send an event of the mouse: `mouseMoved`, `mousePressed`, `mouseReleased`, `mouseWheel`."""
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)

    def click(self, x: float, y: float) -> None:
        """Click with the left button."""
        self.mouse("mouseMoved", x, y)
        self.mouse("mousePressed", x, y, button="left", clickCount=1, buttons=1)
        self.mouse("mouseReleased", x, y, button="left", clickCount=1)
        self.settle()

    def key(self, name: str) -> None:
        """Press a key, such as `ArrowLeft`, in the element that has the focus."""
        text = {"text": name} if len(name) == 1 else {}
        if name == "Enter":
            text = {"text": "\r"}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=name, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=name)
        self.settle()

    def box(self, selector: str) -> dict[str, float]:
        """Bring an element into sight and return its box in the window."""
        found = f"document.querySelector({json.dumps(selector)})"
        self.value(f"{found}.scrollIntoView({{block: 'center', behavior: 'instant'}})")
        self.settle()
        self.settle()
        box = self.value(f"(({found}).getBoundingClientRect()).toJSON()")
        return {name: float(value) for name, value in box.items()}

    def window(
        self, width: int, height: int, *, dark: bool = False, scale: float = 1, paper: bool = False
    ) -> None:
        """Set the size of the window, the colours that the system asks for, and the styles of print."""
        self.call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=scale,
            mobile=False,
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        calm = {"name": "prefers-reduced-motion", "value": "reduce"}
        media = "print" if paper else "screen"
        self.call("Emulation.setEmulatedMedia", media=media, features=[scheme, calm])

    def picture(self, file: Path, *, clip: dict[str, float] | None = None) -> None:
        """Write what the window shows, or a part of the page, as PNG."""
        more = {"clip": {**clip, "scale": 1}, "captureBeyondViewport": True} if clip else {}
        file.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png", **more)["data"]))

    def print(self, file: Path) -> None:
        """Print the page as PDF."""
        answer = self.call("Page.printToPDF", printBackground=True, preferCSSPageSize=True)
        file.write_bytes(base64.b64decode(answer["data"]))

    def _message(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._pending:
            left_s = deadline - time.monotonic()
            if left_s <= 0 or not select.select([self._read], [], [], left_s)[0]:
                raise PageError("the browser does not answer")
            chunk = os.read(self._read, 1 << 20)
            if not chunk:
                raise PageError("the browser has ended")
            self._pending += chunk
        text, _, self._pending = self._pending.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        self._note(message)
        return message

    def _note(self, message: dict[str, Any]) -> None:
        method, given = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(_words(given["exceptionDetails"]))
        elif method == "Log.entryAdded" and given["entry"]["level"] == "error":
            self.errors.append(given["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(given["request"]["url"])


def _words(details: dict[str, Any]) -> str:
    return str(details.get("exception", {}).get("description") or details.get("text"))
