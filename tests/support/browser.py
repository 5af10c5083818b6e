"""A real browser, headless, driven through a pipe in the language of its own developer tools."""

import base64
import json
import os
import select
import shutil
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--disable-quic", "--no-first-run"]
FLAGS += ["--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-breakpad"]
FLAGS += ["--hide-scrollbars", "--remote-debugging-pipe"]
PATIENCE = 600.0
"""Seconds after which a silent browser is given up."""
KEYS = {"Tab": ("Tab", 9, ""), "Enter": ("Enter", 13, "\r"), " ": ("Space", 32, " ")}


def find_browser() -> str | None:
    """Where the browser is: the one named by SGFN_BROWSER, or the first that is installed."""
    named = os.environ.get("SGFN_BROWSER")
    return next(filter(None, map(shutil.which, [named] if named else NAMES)), None)


def need_browser() -> str:
    """The browser; without one a test is skipped, but not where everything has to be tested."""
    found = find_browser()
    if found is None:
        missing = "no browser: install chromium (`make browser`), or name one by SGFN_BROWSER"
        pytest.fail(missing) if os.environ.get("CI") else pytest.skip(missing)
    return found


class Browser:
    """One browser with one page; `requests` and `problems` are what was seen since the page was opened."""

    def __init__(self, folder: Path) -> None:
        here, self.outgoing = os.pipe()
        self.incoming, there = os.pipe()
        command = [need_browser(), *FLAGS, f"--user-data-dir={folder}"]
        joined = f'exec "$0" "$@" 3<&{here} 4>&{there}'  # the browser reads from 3 and writes to 4
        with (folder / "log.txt").open("w") as log:
            self.process = subprocess.Popen(
                ["bash", "-c", joined, *command], pass_fds=[here, there], stdout=log, stderr=log
            )
        os.close(here)
        os.close(there)
        self.number, self.rest = 0, b""
        self.requests: list[str] = []
        self.problems: list[str] = []
        self.session: str | None = None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def close(self) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait()
        os.close(self.outgoing)
        os.close(self.incoming)

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """A command and its answer."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        if self.session is not None:
            message["sessionId"] = self.session
        os.write(self.outgoing, json.dumps(message).encode() + b"\0")
        number = self.number
        answer = self._until(lambda seen: seen.get("id") == number)
        assert "error" not in answer, f"{method}: {answer['error']}"
        return answer["result"]

    def open(self, page: Path, *, width: int = 1280, height: int = 900, dark: bool = False) -> None:
        """Show a file in a window of some size, to a reader who prefers light or dark pages."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.requests, self.problems = [], []
        os.write(self.outgoing, self._message("Page.navigate", url=page.resolve().as_uri()))
        self._until(lambda seen: seen.get("method") == "Page.loadEventFired")

    def see(self, expression: str) -> Any:
        """The value of an expression on the page."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key, as a person does."""
        code, number, text = KEYS[key]
        about = {"key": key, "code": code, "windowsVirtualKeyCode": number}
        self.call("Input.dispatchKeyEvent", type="keyDown", text=text, **about)
        self.call("Input.dispatchKeyEvent", type="keyUp", **about)

    def click(self, selector: str) -> None:
        """Click into the middle of an element, as a person does."""
        place = f"document.querySelector({json.dumps(selector)})"
        self.see(f"{place}.scrollIntoView({{block: 'center', inline: 'center'}})")
        x, y = self.see(f"(r => [r.x + r.width / 2, r.y + r.height / 2])({place}.getBoundingClientRect())")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def picture(self, path: Path) -> None:
        """What is seen now, as a PNG file."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", captureBeyondViewport=True)["data"]))

    def _message(self, method: str, **params: Any) -> bytes:
        self.number += 1
        message = {"id": self.number, "method": method, "params": params, "sessionId": self.session}
        return json.dumps(message).encode() + b"\0"

    def _until(self, wanted: Any) -> dict[str, Any]:
        """Read on until a message is the wanted one; note requests and complaints on the way."""
        deadline = time.monotonic() + PATIENCE
        while True:
            while b"\0" not in self.rest:
                ready, _, _ = select.select([self.incoming], [], [], max(deadline - time.monotonic(), 0.0))
                data = os.read(self.incoming, 1 << 16) if ready else b""
                assert data, "the browser has gone, or is silent: see log.txt in its folder"
                self.rest += data
            text, _, self.rest = self.rest.partition(b"\0")
            seen = json.loads(text)
            self._note(seen.get("method", ""), seen.get("params", {}))
            if wanted(seen):
                return seen

    def _note(self, method: str, params: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            self.problems.append(str(params["exceptionDetails"]))
        elif method == "Runtime.consoleAPICalled":
            self.problems.append(str(params["args"]))
        elif method == "Log.entryAdded":
            self.problems.append(params["entry"]["text"])
