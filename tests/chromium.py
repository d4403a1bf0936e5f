"""A real Chromium for tests: started without a window, spoken to by its DevTools protocol over two pipes.

`Browser.tab` opens a page; `Tab.evaluate` runs JavaScript there, and `Tab.until` waits for it to say yes. What the page
writes to its console as an error or a warning is in `Tab.complaints`.
"""

from __future__ import annotations

import base64
import fcntl
import json
import os
import shutil
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from time import monotonic, sleep
from typing import Any

PATIENCE = 120.0
FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--disable-extensions",
    "--disable-default-apps", "--hide-scrollbars", "--mute-audio", "--remote-debugging-pipe",
)  # fmt: skip


def executable() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    assert found is not None, "there is no Chromium: scripts/chromium.sh installs it"
    return found


class Browser:
    """A process of Chromium, and the answers and events that come from it."""

    def __init__(self, home: str) -> None:
        take, self._out = os.pipe()
        self._in, give = os.pipe()
        # Chromium reads commands from 3 and writes answers to 4; higher ones first, so that neither lies in the way.
        ends = [fcntl.fcntl(end, fcntl.F_DUPFD, 10) for end in (take, give)]
        shell = ["bash", "-c", f'exec "$@" 3<&{ends[0]} 4>&{ends[1]}', "chromium"]
        log = (Path(home) / "log").open("wb")
        with log:
            self._process = subprocess.Popen(
                [*shell, executable(), *FLAGS, f"--user-data-dir={home}/profile", "about:blank"],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, pass_fds=ends,
            )  # fmt: skip
        for end in (take, give, *ends):
            os.close(end)
        self._number = 0
        self._answers: dict[int, SimpleQueue[Any]] = {}
        self._tabs: dict[str, Tab] = {}
        self._guard = threading.Lock()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def send(self, method: str, session: str | None = None, **given: Any) -> Any:
        """Call a method of the protocol, and wait for its result."""
        with self._guard:
            self._number += 1
            number = self._number
            answer = self._answers[number] = SimpleQueue()
            said: dict[str, Any] = {"id": number, "method": method, "params": given}
            if session is not None:
                said["sessionId"] = session
            os.write(self._out, json.dumps(said).encode() + b"\0")
        try:
            told = answer.get(timeout=PATIENCE)
        except Empty:
            raise AssertionError(f"Chromium gave no answer to {method}") from None
        assert "error" not in told, told
        return told["result"]

    def tab(self, url: str, width: int = 1280, height: int = 800, *, dark: bool = False) -> Tab:
        """Open a page in a tab of its own."""
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        session = self.send("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        tab = self._tabs[session] = Tab(self, session)
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.send(f"{domain}.enable")
        tab.resize(width, height)
        tab.send("Emulation.setEmulatedMedia", features=[
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"},
            {"name": "prefers-reduced-motion", "value": "reduce"},
        ])  # fmt: skip
        tab.send("Page.navigate", url=url)
        tab.until("document.readyState === 'complete'")
        return tab

    def close(self) -> None:
        with suppress(Exception):
            self.send("Browser.close")
        try:
            self._process.wait(20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._out)
        self._reader.join(10)
        os.close(self._in)

    def _read(self) -> None:
        waiting = b""
        while part := os.read(self._in, 1 << 16):
            *messages, waiting = (waiting + part).split(b"\0")
            for message in messages:
                said = json.loads(message)
                if "id" in said:
                    self._answers.pop(said["id"]).put(said)
                elif (tab := self._tabs.get(said.get("sessionId", ""))) is not None:
                    tab.told(said["method"], said["params"])


class Tab:
    """A page."""

    def __init__(self, browser: Browser, session: str) -> None:
        self._browser, self._session = browser, session
        self.complaints: list[str] = []
        self.requests: dict[str, str] = {}  # by their numbers, where they went
        self.received: dict[str, int] = {}  # bytes of their answers

    def told(self, event: str, said: Any) -> None:
        if event == "Runtime.exceptionThrown":
            self.complaints.append(str(said["exceptionDetails"]))
        elif event == "Runtime.consoleAPICalled" and said["type"] in ("error", "warning", "assert"):
            self.complaints.append(str(said["args"]))
        elif event == "Log.entryAdded" and said["entry"]["level"] in ("error", "warning"):
            self.complaints.append(str(said["entry"]))
        elif event == "Network.requestWillBeSent":
            self.requests[said["requestId"]] = said["request"]["url"]
        elif event == "Network.dataReceived":
            self.received[said["requestId"]] = self.received.get(said["requestId"], 0) + said["dataLength"]

    def send(self, method: str, **given: Any) -> Any:
        return self._browser.send(method, self._session, **given)

    def evaluate(self, script: str) -> Any:
        """The value of an expression, waited for if it is a promise."""
        told = self.send("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in told, told["exceptionDetails"]
        return told["result"].get("value")

    def until(self, script: str) -> None:
        """Wait until an expression is true."""
        over = monotonic() + PATIENCE
        while not self.evaluate(f"Boolean({script})"):
            assert monotonic() < over, f"never: {script}; complaints: {self.complaints}"
            sleep(0.03)

    def click(self, selector: str) -> None:
        """Click into the middle of the first element of a selector, once it is there."""
        quoted = json.dumps(selector)
        self.until(f"document.querySelector({quoted}) !== null")
        x, y = self.evaluate(
            f"(() => {{ const e = document.querySelector({quoted}); "
            "e.scrollIntoView({block: 'nearest', inline: 'nearest'}); "
            "const b = e.getBoundingClientRect(); return [b.x + b.width / 2, b.y + b.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            self.send("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def write(self, text: str) -> None:
        """Type a text where the focus is."""
        self.send("Input.insertText", text=text)

    def press(self, key: str, *, control: bool = False) -> None:
        """Press a key."""
        text = {"Enter": "\r", "Tab": "", "Escape": ""}.get(key, key if len(key) == 1 else "")
        given: dict[str, Any] = {"key": key, "modifiers": 2 if control else 0}
        codes = {"Enter": 13, "Tab": 9, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38, "ArrowRight": 39, "ArrowLeft": 37}
        if key in codes:
            given |= {"windowsVirtualKeyCode": codes[key], "code": key}
        self.send("Input.dispatchKeyEvent", type="keyDown", **given, **({"text": text} if text and not control else {}))
        self.send("Input.dispatchKeyEvent", type="keyUp", **given)

    def resize(self, width: int, height: int) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 500
        )

    def screenshot(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(base64.b64decode(self.send("Page.captureScreenshot", format="png")["data"]))


@contextmanager
def chromium() -> Iterator[Browser]:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        browser = Browser(home)
        try:
            yield browser
        finally:
            browser.close()
