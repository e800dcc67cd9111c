"""Headless Chromium by its DevTools protocol (https://chromedevtools.github.io/devtools-protocol), over two pipes."""

from __future__ import annotations

import base64
import fcntl
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
OPTIONS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe")
PATIENCE = 120
"""Seconds until a silent browser is given up."""
ERRORS = ("Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")


class Browser:
    """A browser with one page; `messages` are whatever it wrote to its console, errors and all."""

    def __init__(self, write: int, read: int) -> None:
        self._write, self._read = write, read
        self._buffer, self._number, self._session = b"", 0, ""
        self.messages: list[dict[str, Any]] = []
        self._loaded = False
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """The result of a command."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return dict(answer["result"])

    def open(self, path: Path, width: int = 1200, height: int = 900, *, dark: bool = False) -> None:
        """Show a file, and wait until it is loaded."""
        self.messages, self._loaded = [], False
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        mobile = width < 600
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile}
        self.call("Emulation.setDeviceMetricsOverride", **size)
        self.call("Page.navigate", url=path.as_uri())
        while not self._loaded:
            self._next()

    def run(self, script: str) -> Any:
        """What the body of an async JavaScript function returns."""
        expression = f"(async () => {{ {script} }})()"
        answer = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def picture(self, path: Path) -> None:
        """Write the whole page as PNG: for people."""
        size = self.run("return [document.documentElement.clientWidth, document.documentElement.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": size[0], "height": size[1], "scale": 1}
        found = self.call("Page.captureScreenshot", clip=clip, captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))

    def _next(self) -> dict[str, Any]:
        """The next message; events are noted."""
        until = time.monotonic() + PATIENCE
        while b"\0" not in self._buffer:
            ready = select.select([self._read], [], [], max(0.0, until - time.monotonic()))[0]
            piece = os.read(self._read, 2**16) if ready else b""
            assert piece, "the browser has gone, or says nothing"
            self._buffer += piece
        text, _, self._buffer = self._buffer.partition(b"\0")
        message: dict[str, Any] = json.loads(text)
        if message.get("method") in ERRORS:
            self.messages.append(message["params"])
        self._loaded = self._loaded or message.get("method") == "Page.loadEventFired"
        return message


@contextmanager
def browser(profile: Path) -> Iterator[Browser]:
    """A browser that ends with the block."""
    theirs, write = _pipe()
    read, answers = _pipe()

    def as_expected() -> None:  # the browser reads from 3 and writes to 4
        os.dup2(theirs, 3)
        os.dup2(answers, 4)

    process = subprocess.Popen(
        [str(CHROMIUM), *OPTIONS, f"--user-data-dir={profile}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        preexec_fn=as_expected,
        close_fds=False,
    )
    os.close(theirs)
    os.close(answers)
    try:
        yield Browser(write, read)
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE)
        os.close(write)
        os.close(read)


def _pipe() -> tuple[int, int]:
    """Both ends of a pipe, none of them 3 or 4."""
    ends = os.pipe()
    moved = tuple(fcntl.fcntl(end, fcntl.F_DUPFD_CLOEXEC, 10) for end in ends)
    for end in ends:
        os.close(end)
    return moved[0], moved[1]
