"""The page of `drift annotate` in a real browser: visited by its address, with real keys and clicks."""

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.report.browser import Browser

SHIFT = 8  # of the modifiers of DevTools
CODES = {"Backspace": 8, "Tab": 9, "Enter": 13, "Escape": 27}
CODES |= {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
PATIENCE = 60  # seconds
# The lowest contrast ratio of any visible text with its background, by the formula of WCAG 2.
LEAST_CONTRAST = r"""(() => {
  const linear = (v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const luminance = (colour) => {
    const whole = colour.startsWith("color(") ? 255 : 1; // of color-mix: parts from 0 to 1
    const [r, g, b] = colour.match(/[\d.]+/g).slice(0, 3).map((v) => linear(v * whole));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const background = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (!/rgba\(0, 0, 0, 0\)|transparent/.test(colour)) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const isShown = (e) => e.offsetParent && !e.closest(":disabled")
    && [...e.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
  const ratio = (e) => {
    const [light, dark] = [luminance(getComputedStyle(e).color), luminance(background(e))].sort((x, y) => y - x);
    return (light + 0.05) / (dark + 0.05);
  };
  const texts = document.querySelectorAll("#main p, #main b, #main span, #main h2, #main button, #text, header button");
  return Math.min(...[...texts].filter(isShown).map(ratio));
})()"""


class Page(Browser):
    """One tab with a page of a server; its content security policy stays in force."""

    def __init__(self, profile: Path) -> None:
        super().__init__(profile)
        self.ask("Log.enable")
        self.errors: list[str] = []

    def visit(self, url: str, *, width: int = 1200, height: int = 900, dark: bool = False) -> None:
        """Load an address."""
        self.errors, self.requests, self.dialogs, self._loaded, self._page = [], [], [], False, url
        self.resize(width, height, dark=dark)
        self.ask("Page.navigate", url=url)
        while not self._loaded:
            self._hear()

    def resize(self, width: int, height: int = 900, *, dark: bool = False) -> None:
        self.ask("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.ask("Emulation.setEmulatedMedia", features=[scheme])

    def key(self, key: str, *, shift: bool = False) -> None:
        """Press and release a key, as a keyboard does."""
        named: dict[str, Any] = {"key": key, "code": key, "windowsVirtualKeyCode": CODES.get(key, ord(key[0].upper()))}
        named |= {"modifiers": SHIFT} if shift else {}
        text = "\r" if key == "Enter" else key if len(key) == 1 else None
        self.ask("Input.dispatchKeyEvent", type="keyDown", **named, **({} if text is None else {"text": text}))
        self.ask("Input.dispatchKeyEvent", type="keyUp", **named)

    def write(self, text: str) -> None:
        """Type into the field that has the focus."""
        self.ask("Input.insertText", text=text)

    def click(self, selector: str) -> None:
        """Click in the middle of the first element that matches."""
        self.until(lambda: self.there(selector))
        for event in ("mousePressed", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=event, **self._middle(selector))

    def drag(self, start: str, end: str) -> None:
        """Press the mouse on one element, and release it on another one."""
        self.until(lambda: self.there(start))
        self.ask("Input.dispatchMouseEvent", type="mousePressed", **self._middle(start))
        for event in ("mouseMoved", "mouseReleased"):
            self.ask("Input.dispatchMouseEvent", type=event, buttons=1, **self._middle(end))

    def _middle(self, selector: str) -> dict[str, Any]:
        """Where the middle of the first element that matches is."""
        box = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            " e.scrollIntoView({block: 'center'});"
            " const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })()"
        )
        return {"x": box[0], "y": box[1], "button": "left", "clickCount": 1}

    def choose(self, selector: str, value: str) -> None:
        """Choose an option of a menu. Headless Chromium draws no menus, so the choice itself is an event."""
        self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.value = {json.dumps(value)};"
            " e.dispatchEvent(new Event('change', {bubbles: true})); })()"
        )

    def there(self, selector: str) -> bool:
        return bool(self.run(f"document.querySelector({json.dumps(selector)}) !== null"))

    def text(self, selector: str) -> str:
        """The text of the first element that matches; empty if there is none."""
        return str(self.run(f"document.querySelector({json.dumps(selector)})?.textContent ?? ''"))

    def until(self, condition: Callable[[], Any], seconds: float = PATIENCE) -> Any:
        """Wait until a condition holds, and return its value."""
        end = time.monotonic() + seconds
        while not (value := condition()):
            assert time.monotonic() < end, f"still waiting: {self.text('body')[:300]} {self.errors}"
            time.sleep(0.02)
        return value

    def shot(self, path: Path) -> None:
        """The window as a PNG."""
        import base64

        path.write_bytes(base64.b64decode(self.ask("Page.captureScreenshot")["data"]))

    def _note(self, heard: dict[str, Any]) -> None:
        super()._note(heard)
        match heard.get("method"):
            case "Runtime.exceptionThrown":
                self.errors.append(json.dumps(heard["params"]["exceptionDetails"])[:500])
            case "Log.entryAdded" if heard["params"]["entry"]["level"] == "error":
                self.errors.append(str(heard["params"]["entry"].get("text")))
