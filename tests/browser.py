"""JupyterLab in a real browser: what test_browser.py and bench_explorers.py drive it with."""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")


def chromium() -> str | None:
    """The path of a Chromium, or None; the variable CHROMIUM names one in an unusual place."""
    return next(filter(None, map(shutil.which, (os.environ.get("CHROMIUM", ""), *NAMES))), None)


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
            yield f"{address}/lab?token=course"
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

    def __init__(self, chrome, address: str, name: str, width: int = 1280, dark: bool = False) -> None:
        self.page = chrome.new_page(viewport={"width": width, "height": 900})
        self.errors, self.strangers = [], []
        self.page.on("console", lambda m: m.type == "error" and self.errors.append(f"{m.text} {m.location}"))
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", self._asked)
        self.page.on("websocket", self._asked)
        theme = json.dumps({"theme": "JupyterLab Dark" if dark else "JupyterLab Light"})
        settings = address.replace("/lab?", "/lab/api/settings/@jupyterlab/apputils-extension:themes?")
        assert self.page.request.put(settings, data={"raw": theme}).ok
        self.page.goto(address)
        self.page.wait_for_function("window.jupyterapp")
        self.page.evaluate(
            """async (path) => {
                await jupyterapp.restored;
                const open = {path, factory: 'Notebook'};
                window.book = await jupyterapp.commands.execute('docmanager:open', open);
                await book.context.ready; await book.sessionContext.ready;
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

    def close(self) -> None:
        """End the kernel, and leave without saving."""
        self.page.evaluate("async () => { await book.sessionContext.shutdown(); }")
        self.page.close()
