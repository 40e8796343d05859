"""The decks of `slides/`: `python -m lecture_utils.decks build` writes them, `present` serves them.

A deck is Markdown for Marp. Every slide ends with a comment, its speaker notes, of five fields: `Minutes:`
as in "5 (3 in the notebook)", `Show:` (a heading of the notebook), `Say:`, `Ask:` and `Wrong answer:`.
"""

import argparse
import base64
import html
import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SLIDES = ROOT / "slides"
BUILT = ROOT / "build" / "slides"
MARP = SLIDES / "node_modules" / "@marp-team" / "marp-cli" / "marp-cli.js"
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
FIELDS = ("Minutes", "Show", "Say", "Ask", "Wrong answer")


class Missing(Exception):
    """A program that is needed is not there; the message says what to install."""


@dataclass(frozen=True)
class Slide:
    """One slide: its Markdown without the notes, and the notes by field (absent ones are absent)."""

    text: str
    notes: dict[str, str]

    @property
    def minutes(self) -> tuple[int, int]:
        """How long it takes, and how much of that in the notebook."""
        whole, inside = re.fullmatch(r"(\d+)(?: \((\d+) in the notebook\))?", self.notes["Minutes"]).groups()
        return int(whole), int(inside or 0)


@dataclass(frozen=True)
class Deck:
    """One deck of `slides/`."""

    path: Path
    title: str
    slides: list[Slide]

    @classmethod
    def read(cls, path: Path) -> "Deck":
        """Read a deck.

        Args:
            path: the Markdown file: settings between two lines `---`, then slides with `---` between them.
        """
        _, _, body = path.read_text(encoding="utf-8").split("---\n", 2)
        slides = []
        for part in re.split(r"^---$", body, flags=re.MULTILINE):
            comments = re.findall(r"<!--\n(.*?)-->", part, flags=re.DOTALL)
            field = rf"^({'|'.join(FIELDS)}): (.*?)(?=^(?:{'|'.join(FIELDS)}): |\Z)"
            found = re.findall(field, comments[-1] if comments else "", flags=re.DOTALL | re.MULTILINE)
            text = re.sub(r"<!--\n.*?-->", "", part, flags=re.DOTALL).strip()
            slides.append(Slide(text, {name: " ".join(words.split()) for name, words in found}))
        title = re.search(r"^# (.+)$", body, flags=re.MULTILINE)
        return cls(path, title[1] if title else "", slides)

    @property
    def minutes(self) -> tuple[int, int]:
        """How long the whole takes, and how much of that in the notebook."""
        wholes, insides = zip(*(slide.minutes for slide in self.slides), strict=True)
        return sum(wholes), sum(insides)


def decks() -> list[Deck]:
    """All decks, in the order of the lessons."""
    return [Deck.read(path) for path in sorted(SLIDES.glob("[0-9]*.md"))]


def chromium() -> str | None:
    """The path of a Chromium or Chrome, or None; the variable CHROMIUM names one in an unusual place."""
    return next(filter(None, map(shutil.which, (os.environ.get("CHROMIUM", ""), *BROWSERS))), None)


def build(folder: Path = BUILT, live: bool = False) -> list[Path]:
    """Write every deck as HTML (one file each, pictures inside), as PDF, and an index page.

    The PDFs are made by a Chromium or Chrome; without one they are left out, with a word about it.

    Args:
        folder: where to; made if it is not there.
        live: for JupyterLab's own server: links open its notebooks. HTML only.

    Returns:
        The files.

    Raises:
        Missing: Node is not there, or what it runs could not be installed.
    """
    _install()
    folder.mkdir(parents=True, exist_ok=True)
    kinds = ["html"]
    if not live and chromium():
        kinds.append("pdf")
    elif not live:
        print("No PDFs: that needs Chromium or Chrome (on Debian and Ubuntu: apt install chromium).")
    found = decks()
    for kind in kinds:
        _marp(folder, kind)
    for deck in found:
        page = folder / f"{deck.path.stem}.html"
        page.write_text(_alone(page.read_text(encoding="utf-8"), live), encoding="utf-8")
    index = folder / "index.html"
    index.write_text(_index(found, kinds, live), encoding="utf-8")
    return [index, *(folder / f"{deck.path.stem}.{kind}" for kind in kinds for deck in found)]


def _install() -> None:
    """Bring `slides/node_modules` up to date with `slides/package-lock.json`."""
    if shutil.which("node") is None or shutil.which("npm") is None:
        raise Missing(
            "The decks need Node 18 or newer with npm, which were not found: install them from nodejs.org."
        )
    lock, done = SLIDES / "package-lock.json", SLIDES / "node_modules" / ".package-lock.json"
    if done.exists() and MARP.exists() and done.stat().st_mtime >= lock.stat().st_mtime:
        return
    print("Installing Marp in slides/node_modules (once)", flush=True)
    command = [shutil.which("npm"), "ci", "--no-audit", "--no-fund", "--loglevel=error"]
    run = subprocess.run(command, cwd=SLIDES, capture_output=True, text=True)
    if run.returncode:
        reason = (run.stderr or run.stdout).strip()[-500:]
        raise Missing(f"Marp could not be installed in slides/node_modules (is there a network?): {reason}")


def _marp(folder: Path, kind: str) -> None:
    # In `slides`, where its settings are; without input, since it would wait for a deck on it.
    command = [shutil.which("node"), MARP, "--no-stdin", "--input-dir", ".", "--output", folder.resolve()]
    if kind == "pdf":
        command += ["--pdf", "--allow-local-files", "--browser-path", chromium()]
    run = subprocess.run(command, cwd=SLIDES, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    if run.returncode:
        raise RuntimeError(f"Marp stopped: {run.stderr.strip()[-1000:]}")


def _alone(page: str, live: bool) -> str:
    """A page that needs no other file, and opens notebooks in one tab of their own."""

    def inside(found: re.Match) -> str:
        picture = base64.b64encode((SLIDES / found[1]).read_bytes()).decode()
        return f'src="data:image/svg+xml;base64,{picture}"'

    page = re.sub(r'src="(\.\./images/[^"]+\.svg)"', inside, page)
    page = page.replace('<a href="../notebooks/', f'<a target="notebook" href="{_notebooks(live)}')
    return page.replace("</body>", f"<script>{FOLLOW}</script></body>") if live else page


def _notebooks(live: bool) -> str:
    """The address of the notebooks: in JupyterLab, or as files, seen from build/slides."""
    return "/lab/tree/notebooks/" if live else "../../notebooks/"


# An address alone would load JupyterLab anew for each link, and without going to the heading.
FOLLOW = """
addEventListener('click', async (event) => {
    const link = event.target.closest('a[target=notebook]');
    if (!link) return;
    event.preventDefault();
    const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
    const tab = open('', 'notebook');
    tab.focus();
    if (!tab.jupyterapp) tab.location = link.href;
    while (!tab.jupyterapp) await pause(200);
    await tab.jupyterapp.restored;
    const path = link.pathname.replace('/lab/tree/', '');
    const book = await tab.jupyterapp.commands.execute('docmanager:open', {path, factory: 'Notebook'});
    await book.context.ready;
    await book.revealed;
    const heading = decodeURIComponent(link.hash.slice(1));
    if (!heading) return;
    // Cells above that are still being laid out push it away: until it stays.
    for (let tries = 0, seen = 0; tries < 40 && seen < 4; tries++) {
        const titles = [...book.node.querySelectorAll('h1, h2, h3')];
        const title = titles.find((title) => (title.id || title.dataset.jupyterId) === heading);
        const top = title ? title.getBoundingClientRect().top : 0;
        if (0 < top && top < tab.innerHeight / 2) seen++;
        else { seen = 0; book.setFragment(`#${heading}`); }
        await pause(300);
    }
});
"""


def _index(found: list[Deck], kinds: list[str], live: bool) -> str:
    rows = []
    for deck in found:
        whole, inside = deck.minutes
        links = " · ".join(f'<a href="{deck.path.stem}.{kind}">{kind.upper()}</a>' for kind in kinds)
        notebook = f'<a target="notebook" href="{_notebooks(live)}{deck.path.stem}.ipynb">notebook</a>'
        rows.append(
            f"<tr><td>{html.escape(deck.title)}</td><td>{links}</td><td>{notebook}</td>"
            f"<td>{whole} minutes, {inside} of them in the notebook</td></tr>"
        )
    return INDEX.format(rows="\n".join(rows))


INDEX = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>Llama, by hand: the decks</title>
<style>
body {{ max-width: 60rem; margin: 3rem auto; padding: 0 1rem; color: #1a1a1a; background: white;
  font: 18px/1.5 "Helvetica Neue", Helvetica, Arial, "Liberation Sans", "DejaVu Sans", sans-serif; }}
td, th {{ padding: .4rem 1.5rem .4rem 0; text-align: left; border-bottom: 1px solid #d9d9d9; }}
a {{ color: #0072b2; }}
</style>
<h1>Llama, by hand: the decks</h1>
<table>
<tr><th>Lesson</th><th>Deck</th><th>Notebook</th><th>Time</th></tr>
{rows}
</table>
<p>In a deck: arrows or space for the next slide, <b>p</b> for the presenter's window (notes, clock, next
slide), <b>f</b> for the full screen. With <code>make present</code> links open JupyterLab, at the
heading.</p>
</html>
"""


def present(options: list[str]) -> int:
    """Serve JupyterLab, and the decks with it, until Ctrl-C; prints both addresses.

    Args:
        options: for JupyterLab, as on its command line.

    Returns:
        JupyterLab's exit status.
    """
    with tempfile.TemporaryDirectory() as folder:
        build(Path(folder) / "slides", live=True)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        token = secrets.token_hex(16)
        command = [sys.executable, "-m", "jupyter", "lab", "--no-browser", "--log-level=ERROR"]
        command += [f"--ServerApp.root_dir={ROOT}", f"--ServerApp.extra_static_paths={folder}"]
        command += ["--ServerApp.ip=127.0.0.1", f"--ServerApp.port={port}", "--ServerApp.port_retries=0"]
        command += ["--LabApp.expose_app_in_browser=True", f"--IdentityProvider.token={token}", *options]
        signal.signal(signal.SIGTERM, lambda *_: sys.exit())
        running = subprocess.Popen(command)
        # With the token a browser is let in once, and then goes where it wants.
        address = f"http://127.0.0.1:{port}/login?token={token}&next="
        print(f"Decks:      {address}/static/slides/index.html")
        print(f"JupyterLab: {address}/lab")
        print("Ctrl-C ends both.", flush=True)
        try:
            return running.wait()
        except KeyboardInterrupt:
            return 0
        finally:
            running.terminate()
            running.wait()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m lecture_utils.decks", description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["build", "present"])
    what, options = parser.parse_known_args()
    try:
        if what.what == "present":
            return present(options)
        for file in build():
            print(os.path.relpath(file))
    except Missing as missing:
        print(missing, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
