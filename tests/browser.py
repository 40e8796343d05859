"""JupyterLab in a real browser: what test_browser.py and bench_explorers.py drive it with."""

import base64
import io
import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from PIL import Image

from lecture_utils.decks import ROOT, chromium


@contextmanager
def jupyterlab(folder: Path):
    """Start JupyterLab on a copy of notebooks and images in `folder`; gives its address with the token."""
    for name in ("notebooks", "images"):
        shutil.copytree(ROOT / name, folder / "course" / name, ignore=shutil.ignore_patterns(".*"))
    (folder / "settings").mkdir()
    settings = {
        "@jupyterlab/apputils-extension:notification": {"fetchNews": "false", "checkForUpdates": False},
        "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},  # all cells are in the page
    }
    (folder / "settings" / "overrides.json").write_text(json.dumps(settings))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    own = {f"JUPYTER_{name}_DIR": str(folder / name.lower()) for name in ("CONFIG", "DATA", "RUNTIME")}
    own |= {"LLAMA_COURSE_PROGRESS": str(folder / "progress.json"), "IPYTHONDIR": str(folder / "ipython")}
    options = {
        "ServerApp.root_dir": folder / "course",
        "ServerApp.ip": "127.0.0.1",
        "ServerApp.port": port,
        "ServerApp.open_browser": False,
        "ServerApp.allow_root": True,
        "IdentityProvider.token": "course",
        "LabApp.expose_app_in_browser": True,
        "LabApp.news_url": "",
        "LabApp.extension_manager": "readonly",
        "LabServerApp.app_settings_dir": folder / "settings",
    }
    command = [sys.executable, "-m", "jupyter", "lab", *(f"--{k}={v}" for k, v in options.items())]
    with (folder / "lab.log").open("w") as log:
        server = subprocess.Popen(command, stdout=log, stderr=log, env=os.environ | own)
        try:
            address = f"http://127.0.0.1:{port}"
            for _ in range(300):
                try:
                    urllib.request.urlopen(f"{address}/api?token=course", timeout=1)
                    break
                except OSError:
                    assert server.poll() is None, (folder / "lab.log").read_text()[-2000:]
                    time.sleep(0.2)
            else:
                raise TimeoutError((folder / "lab.log").read_text()[-2000:])
            yield f"{address}/lab?token=course&reset"  # or each page would open the notebooks of those before
        finally:
            server.terminate()
            server.wait(30)


@contextmanager
def browser():
    """A Chromium without a window."""
    from playwright.sync_api import sync_playwright

    quiet = ["--no-sandbox", "--disable-gpu", "--disable-background-networking"]
    with sync_playwright() as play:
        chrome = play.chromium.launch(executable_path=chromium(), args=quiet)
        yield chrome
        chrome.close()


class Notebook:
    """One notebook in a page of its own, with what went wrong there.

    `errors` are the messages of the console, `strangers` the addresses outside this machine that the
    page asked for.
    """

    def __init__(self, chrome, address: str, name: str) -> None:
        self.page = chrome.new_page(viewport={"width": 1280, "height": 900})
        self.errors, self.strangers = [], []
        self.page.on("console", lambda m: m.type == "error" and self.errors.append(f"{m.text} {m.location}"))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", self._asked)
        self.page.on("websocket", self._asked)
        self.page.goto(address)
        self.page.wait_for_function("window.jupyterapp")
        self.page.evaluate(
            """async (path) => {
                await jupyterapp.restored;
                const open = {path, factory: 'Notebook'};
                window.book = await jupyterapp.commands.execute('docmanager:open', open);
                await book.context.ready; await book.sessionContext.ready;
                // Moves that the kernel has not dealt with yet, however slow the machine is.
                window.waiting = new Set();
                book.sessionContext.session.kernel.anyMessage.connect((_, {msg, direction}) => {
                    if (direction === 'send' && msg.header.msg_type === 'comm_msg')
                        waiting.add(msg.header.msg_id);
                    if (msg.header.msg_type === 'status' && msg.content.execution_state === 'idle')
                        waiting.delete(msg.parent_header.msg_id);
                });
                jupyterapp.shell.collapseLeft();
            }""",
            f"notebooks/{name}",
        )

    def _asked(self, request) -> None:
        if not request.url.startswith(
            ("http://127.0.0.1:", "ws://127.0.0.1:", "data:", "blob:http://127.0.0.1:")
        ):
            self.strangers.append(request.url)

    def run_all(self) -> list[str]:
        """Run every cell; the errors that are in the outputs then."""
        return self.page.evaluate(
            """async () => {
                await jupyterapp.commands.execute('notebook:run-all-cells');
                const found = [];
                for (const cell of book.content.model.cells)
                    for (const output of cell.toJSON().outputs ?? [])
                        if (output.output_type === 'error') found.push(`${cell.id}: ${output.evalue}`);
                return found;
            }"""
        )

    def explorers(self) -> list:
        """The explorers of the page: boxes with a picture in them."""
        return self.page.locator(".jp-OutputArea .widget-vbox:has(> .widget-image)").all()

    def picture(self, explorer) -> str:
        """What the picture of an explorer shows, pixel for pixel."""
        return explorer.locator(".widget-image").evaluate(
            """async (image) => {
                while (!image.complete) await new Promise(requestAnimationFrame);
                const canvas = document.createElement('canvas');
                canvas.width = image.naturalWidth; canvas.height = image.naturalHeight;
                canvas.getContext('2d').drawImage(image, 0, 0);
                return canvas.toDataURL();
            }"""
        )

    def caption(self, explorer) -> str:
        return explorer.locator(".widget-html").inner_text()

    def changes(self, explorer, before: str) -> bool:
        """Whether the picture becomes another one within five seconds; waits until it is still."""
        changed = self._within(lambda: self.picture(explorer) != before)
        self._still(explorer)
        return changed

    def becomes(self, explorer, wanted: str) -> bool:
        """Whether the picture becomes this one within five seconds."""
        return self._within(lambda: self.picture(explorer) == wanted)

    def _still(self, explorer) -> None:
        last = None
        while last != (last := self.picture(explorer)):
            self.page.wait_for_timeout(200)
            self.page.wait_for_function("waiting.size === 0")

    def _within(self, true) -> bool:
        return any(true() or self.page.wait_for_timeout(50) for _ in range(100))

    def reset(self, explorer) -> None:
        explorer.get_by_role("button", name="reset").click()
        self._still(explorer)

    def press_arrow(self, handle) -> None:
        """Move a slider by keyboard, three steps to where there is room."""
        handle.focus()
        for _ in range(3):
            self.page.keyboard.press(f"Arrow{self._room(handle)}")

    def drag(self, handle) -> None:
        """Move a slider with the mouse, by a third of its length to where there is room."""
        handle.scroll_into_view_if_needed()
        box, track = handle.bounding_box(), handle.locator("xpath=ancestor::div[2]").bounding_box()
        x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
        way = track["width"] / 3 * (1 if self._room(handle) == "Right" else -1)
        self.page.mouse.move(x, y)
        self.page.mouse.down()
        self.page.mouse.move(x + way, y, steps=8)
        self.page.mouse.up()

    def drag_for(self, explorer, seconds: float = 3) -> dict:
        """Drag the first slider to and fro.

        Gives `pictures`, how many came, and `lag`, the milliseconds from the release to the last of them.
        """
        explorer.locator(".widget-image").evaluate(
            """(image) => {
                const seen = window.dragged = {pictures: 0, last: 0, released: 0};
                image.addEventListener('load', () => { seen.pictures++; seen.last = performance.now(); });
                addEventListener('mouseup', () => { seen.released = performance.now(); }, true);
            }"""
        )
        self._to_and_fro(explorer, seconds)
        self.page.wait_for_timeout(1000)
        seen = self.page.evaluate("dragged")
        return {"pictures": seen["pictures"], "lag": max(0.0, seen["last"] - seen["released"])}

    def film(self, explorer, seconds: float = 2) -> dict:
        """Drag while the browser films what it paints: `frames`, and how many of them were `blank`."""
        explorer.evaluate("explorer => explorer.scrollIntoView({block: 'center'})")
        box, width = explorer.locator(".widget-image").bounding_box(), self.page.viewport_size["width"]
        camera, frames = self.page.context.new_cdp_session(self.page), []

        def keep(frame) -> None:
            frames.append(Image.open(io.BytesIO(base64.b64decode(frame["data"]))))
            camera.send("Page.screencastFrameAck", {"sessionId": frame["sessionId"]})

        camera.on("Page.screencastFrame", keep)
        camera.send("Page.startScreencast", {"format": "png"})
        self._to_and_fro(explorer, seconds)
        camera.send("Page.stopScreencast")
        corners = box["x"], box["y"], box["x"] + box["width"], box["y"] + box["height"]
        ink = []  # dark pixels where the picture is: axes and their numbers are there in every state
        for frame in frames:
            part = frame.convert("L").crop([round(at * frame.width / width) for at in corners])
            ink.append(sum(part.histogram()[:160]))
        return {"frames": len(ink), "blank": sum(each < 0.4 * statistics.median(ink) for each in ink)}

    def _to_and_fro(self, explorer, seconds: float) -> None:
        handle = explorer.locator(".noUi-handle").first
        explorer.evaluate("explorer => explorer.scrollIntoView({block: 'center'})")
        box, track = handle.bounding_box(), handle.locator("xpath=ancestor::div[2]").bounding_box()
        y = box["y"] + box["height"] / 2
        self.page.mouse.move(box["x"] + box["width"] / 2, y)
        self.page.mouse.down()
        end, step = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            step += 1
            self.page.mouse.move(track["x"] + track["width"] * abs((step / 40) % 2 - 1), y)
            time.sleep(0.01)
        self.page.mouse.up()

    def _room(self, handle) -> str:
        now, end = (float(handle.get_attribute(f"aria-{name}")) for name in ("valuenow", "valuemax"))
        low = float(handle.get_attribute("aria-valuemin"))
        return "Right" if now < (low + end) / 2 else "Left"

    def theme(self, name: str) -> None:
        """Light or Dark; JupyterLab keeps it for the pages that are opened later."""
        self.page.evaluate(
            "name => jupyterapp.commands.execute('apputils:change-theme', {theme: `JupyterLab ${name}`})",
            name,
        )
        self.page.wait_for_timeout(500)

    def close(self) -> None:
        """End the kernel, wait until the server has forgotten it, and leave without saving."""
        self.page.evaluate(
            """async () => {
                await book.sessionContext.shutdown();
                for (let turn = 0; turn < 100; turn++) {
                    const answer = await fetch('/api/kernels?token=course');
                    if (answer.ok && !(await answer.json()).length) break;
                    await new Promise((resolve) => setTimeout(resolve, 100));
                }
            }"""
        )
        self.page.close()
