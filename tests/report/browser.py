"""A real browser for tests: headless Chromium, controlled through a pipe."""

import base64
import json
import os
import select
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PATIENCE = 60  # seconds to wait for an answer
# Chromium reads commands from file 3 and writes answers to file 4. Both are first moved up, as they may be swapped.
BEGIN = "import os, sys\nends = [int(end) for end in sys.argv[1:3]]\n" + (
    "for old, new in (*zip(ends, (103, 104)), (103, 3), (104, 4)): os.dup2(old, new)\n"
    "os.execv(sys.argv[3], sys.argv[3:])"
)


class Browser:
    """One tab. It records the dialogs that a page opens, and its requests for anything but itself."""

    def __init__(self, profile: Path) -> None:
        assert CHROMIUM is not None
        commands, self._commands = os.pipe()
        self._answers, answers = os.pipe()
        flags = ["--headless=new", "--remote-debugging-pipe", f"--user-data-dir={profile}", "--no-first-run"]
        flags += ["--disable-background-networking", "--disable-component-update", "--disable-sync"]  # only our pages
        flags += ["--no-sandbox"] * (os.geteuid() == 0)  # required for root
        start = [sys.executable, "-c", BEGIN, str(commands), str(answers), CHROMIUM, *flags, "about:blank"]
        self._process = subprocess.Popen(
            start, pass_fds=(commands, answers), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        os.close(commands)
        os.close(answers)
        self._read, self._sent, self._session = b"", 0, ""
        self.dialogs: list[str] = []
        self.requests: list[str] = []
        self._loaded, self._page = False, ""
        target = self.ask("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Runtime"):
            self.ask(f"{domain}.enable")

    def open(self, page: Path, *, width: int = 1000, dark: bool = False) -> None:
        """Load a file. The page's content security policy is bypassed, so that the tests depend on escaping alone."""
        self.dialogs, self.requests, self._loaded, self._page = [], [], False, page.resolve().as_uri()
        self.ask("Page.setBypassCSP", enabled=True)
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])
        self.ask("Page.navigate", url=self._page)
        while not self._loaded:
            self._hear()

    def run(self, script: str) -> Any:
        """The value of an expression in the page."""
        answer = self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    def press(self, key: str) -> None:
        for event in ("keyDown", "keyUp"):
            self.ask("Input.dispatchKeyEvent", type=event, key=key, code=key, windowsVirtualKeyCode={"Tab": 9}[key])

    def photograph(self, path: Path) -> None:
        """The whole page as a PNG."""
        size = self.ask("Page.getLayoutMetrics")["cssContentSize"]
        clip = {**size, "scale": 1}
        taken = self.ask("Page.captureScreenshot", captureBeyondViewport=True, clip=clip)
        path.write_bytes(base64.b64decode(taken["data"]))

    def ask(self, method: str, **parameters: Any) -> dict[str, Any]:
        """Send a command and return the answer."""
        number = self._send(method, **parameters)
        while True:
            heard = self._hear()
            if heard.get("id") == number:
                assert "error" not in heard, heard
                return dict(heard["result"])

    def close(self) -> None:
        self._send("Browser.close")
        self._process.wait(PATIENCE)
        os.close(self._commands)
        os.close(self._answers)

    def _send(self, method: str, **parameters: Any) -> int:
        self._sent += 1
        message = {"id": self._sent, "method": method, "params": parameters}
        if self._session and not method.startswith("Browser."):
            message["sessionId"] = self._session
        os.write(self._commands, json.dumps(message).encode() + b"\0")
        return self._sent

    def _hear(self) -> dict[str, Any]:
        while b"\0" not in self._read:
            assert select.select([self._answers], [], [], PATIENCE)[0], "the browser does not answer"
            piece = os.read(self._answers, 1 << 16)
            assert piece, "the browser has gone"
            self._read += piece
        message, _, self._read = self._read.partition(b"\0")
        heard = dict(json.loads(message))
        self._note(heard)
        return heard

    def _note(self, heard: dict[str, Any]) -> None:
        match heard.get("method"):
            case "Page.javascriptDialogOpening":
                self.dialogs.append(heard["params"]["message"])
                self._send("Page.handleJavaScriptDialog", accept=True)
            case "Network.requestWillBeSent":
                url = heard["params"]["request"]["url"]
                if url != self._page and not url.startswith("data:"):
                    self.requests.append(url)
            case "Page.loadEventFired":
                self._loaded = True
