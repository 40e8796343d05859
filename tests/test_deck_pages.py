"""The decks as a browser shows them: nothing cut off, too small, or fetched; and beside JupyterLab."""

import os
import re
import subprocess
import sys
import time
import urllib.request
import zlib
from contextlib import suppress
from importlib.util import find_spec

import pytest
from browser import browser

from lecture_utils import decks
from lecture_utils.decks import ROOT, chromium

SCREENS = ROOT / "build" / "screens" / "slides"
STEMS = [deck.path.stem for deck in decks.decks()]

# What is wrong with the slide that is shown, in words.
FAULTS = """() => {
    const faults = [];
    const slide = document.querySelector('svg.bespoke-marp-active section');
    const {left, top, width, height} = slide.getBoundingClientRect();
    const scale = width / 1280;
    const say = (what, element) => faults.push(`${what}: ${element.textContent.trim().slice(0, 60)}`);
    const high = slide.scrollHeight > slide.clientHeight, wide = slide.scrollWidth > slide.clientWidth;
    if (high || wide) say('overflow', slide);
    const area = (element) => {
        const range = document.createRange();
        range.selectNodeContents(element);
        return range.getBoundingClientRect();
    };
    const pinned = [...slide.querySelectorAll(':scope > header, :scope > footer')];
    for (const child of slide.children) {
        if (pinned.includes(child) || child.tagName === 'STYLE') continue;
        const box = child.getBoundingClientRect();
        if (box.bottom > top + height - 52 * scale) say('reaches into the footer', child);
        if (box.right > left + width - 40 * scale) say('reaches over the edge', child);
        const text = area(child);
        for (const each of pinned) {
            const other = area(each);
            const beside = text.left >= other.right || other.left >= text.right;
            if (!beside && text.top < other.bottom && other.top < text.bottom)
                say(`lies under "${each.textContent}"`, child);
        }
        if (child.tagName === 'PRE' && child.querySelector('code').scrollWidth > child.clientWidth)
            say('code is too wide', child);
    }
    const texts = document.createTreeWalker(slide, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
        const parent = texts.currentNode.parentElement;
        if (!texts.currentNode.textContent.trim() || parent.closest('style, mjx-assistive-mml')) continue;
        if (parseFloat(getComputedStyle(parent).fontSize) < 24) say('smaller than 24 px', parent);
    }
    for (const image of slide.querySelectorAll('img')) {
        if (!image.complete || !image.naturalWidth) say('missing picture', image.parentElement);
        if (image.getBoundingClientRect().width < 1180 * scale) say('small picture', image.parentElement);
    }
    return faults;
}"""

# What appears step by step is there, and the buttons at the bottom are not.
ALL = """[data-bespoke-marp-fragment] { visibility: visible !important; }
.bespoke-marp-osc { display: none !important; }"""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("decks") / "build" / "slides"
    if chromium() is None or find_spec("playwright") is None:
        missing = "no Chromium or Chrome was found, or playwright is not installed"
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)
    try:
        decks.build(folder)
    except decks.Missing as missing:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(str(missing))
    return folder


@pytest.fixture(scope="module")
def chrome():
    with browser() as chrome:
        yield chrome


@pytest.mark.parametrize("stem", STEMS)
def test_slides_show_all_of_their_content_large_enough_and_fetch_nothing(stem, built, chrome):
    page, asked = chrome.new_page(viewport={"width": 1280, "height": 720}), []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((built / f"{stem}.html").as_uri())
    count = len(decks.Deck.read(decks.SLIDES / f"{stem}.md").slides)
    assert page.locator("svg > foreignObject > section").count() == count
    faults = {}
    SCREENS.mkdir(parents=True, exist_ok=True)
    for number in range(1, count + 1):
        page.evaluate(f"location.hash = '#{number}'")
        page.wait_for_function(f"document.querySelector('svg.bespoke-marp-active section').id === '{number}'")
        page.add_style_tag(content=ALL)
        if found := page.evaluate(FAULTS):
            faults[number] = found
        page.screenshot(path=SCREENS / f"{stem[:2]}_{number:02}.png")
    page.close()
    assert faults == {}
    others = {url.partition("#")[0] for url in asked if not url.startswith(("data:", "blob:"))}
    assert others == {(built / f"{stem}.html").as_uri()}


def test_faults_are_found(chrome, built, tmp_path):
    whole = (built / f"{STEMS[0]}.html").read_text()
    for change, fault in (
        ("font-size: 12px !important", "smaller than 24 px"),
        ("padding-bottom: 700px", "overflow"),
        ("margin-top: 640px !important", "footer"),
    ):
        broken = tmp_path / "broken.html"
        broken.write_text(
            whole.replace("</head>", f"<style>section h1, section p {{ {change} }}</style></head>")
        )
        page = chrome.new_page(viewport={"width": 1280, "height": 720})
        page.goto(broken.as_uri())
        page.wait_for_selector("svg.bespoke-marp-active section")
        assert fault in "".join(page.evaluate(FAULTS)), fault
        page.close()


def test_every_deck_is_written_as_html_and_pdf_and_listed(built):
    index = (built / "index.html").read_text()
    for deck in decks.decks():
        whole, inside = deck.minutes
        assert deck.title in index and f"{whole} minutes, {inside} of them in the notebook" in index
        for kind in ("html", "pdf"):
            assert f'href="{deck.path.stem}.{kind}"' in index
        assert pages((built / f"{deck.path.stem}.pdf").read_bytes()) == len(deck.slides)


def pages(pdf):
    """How many pages a PDF has; its objects may be packed."""
    unpacked = pdf
    for packed in re.findall(rb"stream\r?\n(.*?)endstream", pdf, flags=re.DOTALL):
        with suppress(zlib.error):
            unpacked += zlib.decompressobj().decompress(packed)  # stops at the end, whatever follows
    return len(re.findall(rb"/Type\s*/Page\b", unpacked))


def test_without_a_browser_there_are_pages_and_a_word_about_the_pdfs(built, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(decks, "chromium", lambda: None)
    files = decks.build(tmp_path)
    assert {file.suffix for file in files} == {".html"} and all(file.exists() for file in files)
    assert "Chromium" in capsys.readouterr().out
    assert "PDF" not in (tmp_path / "index.html").read_text()


def test_present_serves_decks_and_notebooks_and_links_open_the_heading(built, chrome, tmp_path):
    own = {f"JUPYTER_{name}_DIR": str(tmp_path / name) for name in ("CONFIG", "DATA", "RUNTIME")}
    command = [sys.executable, "-m", "lecture_utils.decks", "present", "--allow-root"]
    own |= {"IPYTHONDIR": str(tmp_path / "ipython")}
    served = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ | own, cwd=ROOT)
    try:
        lines = "".join(served.stdout.readline() for _ in range(3))
        addresses = dict(re.findall(r"^(\w+): +(http://\S+)", lines, flags=re.MULTILINE))
        assert addresses.keys() == {"Decks", "JupyterLab"}
        for address in addresses.values():
            assert answers(address)
        page = chrome.new_page()
        page.goto(addresses["Decks"])
        page.get_by_role("link", name="HTML").nth(STEMS.index("02_rmsnorm_by_hand")).click()
        page.wait_for_selector("svg.bespoke-marp-active")
        lab = None
        for slide, heading in ((7, "Why eps is inside the root"), (3, "The idea")):
            page.evaluate(f"location.hash = '#{slide}'")
            link = page.locator("svg.bespoke-marp-active header a", has_text=heading)
            if lab is None:
                with page.expect_popup() as popup:
                    link.click()
                lab = popup.value
            else:
                link.click()
            lab.wait_for_function(
                """(heading) => [...document.querySelectorAll('.jp-Notebook :is(h2, h3)')].some((title) => {
                    const {top} = title.getBoundingClientRect();
                    return title.textContent.startsWith(heading) && 0 < top && top < 300;
                })""",
                arg=heading,
                timeout=60_000,
            )
    finally:
        served.terminate()
        assert served.wait(30) == 0


def answers(address):
    for _ in range(100):
        try:
            return urllib.request.urlopen(address, timeout=5).status == 200
        except OSError:
            time.sleep(0.2)
    return False
