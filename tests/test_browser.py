"""Every lesson in JupyterLab in a real browser: it runs to the end, and its explorers answer the hand."""

import os
from importlib.util import find_spec
from pathlib import Path

import pytest
from browser import Notebook, browser, jupyterlab

from lecture_utils.decks import ROOT, chromium

SCREENS = ROOT / "build" / "screens"
LESSONS = [path.name for path in sorted(ROOT.glob("notebooks/*.ipynb"))]


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    missing = None
    if chromium() is None:
        missing = "no Chromium or Chrome was found (CHROMIUM=/path/to/it names one)"
    elif find_spec("playwright") is None:
        missing = "playwright is not installed (pip install playwright)"
    if missing:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(missing)
    with jupyterlab(tmp_path_factory.mktemp("lab")) as address, browser() as chrome:
        yield lambda name: Notebook(chrome, address, name)


@pytest.fixture(scope="module", params=LESSONS, ids=[name[:2] for name in LESSONS])
def lesson(request, lab):
    notebook = lab(request.param)
    yield notebook
    photograph(notebook, SCREENS / Path(request.param).stem)
    notebook.close()


def photograph(notebook, folder):
    """Every explorer as it starts: light, at a window 1000 px wide, and dark."""
    folder.mkdir(parents=True, exist_ok=True)
    for explorer in notebook.explorers():
        notebook.reset(explorer)
    for look, theme, width in (("light", "Light", 1280), ("narrow", "Light", 1000), ("dark", "Dark", 1280)):
        notebook.theme(theme)
        notebook.page.set_viewport_size({"width": width, "height": 900})
        for number, explorer in enumerate(notebook.explorers(), 1):
            explorer.screenshot(path=folder / f"{number}_{look}.png")
    notebook.theme("Light")


def test_opens_with_pictures_where_explorers_will_be(lesson):
    assert "model not found" not in lesson.page.inner_text(".jp-Notebook")
    assert lesson.page.locator(".jp-OutputArea img[src^='data:image/png']").count() > 0


@pytest.fixture(scope="module")
def ran(lesson):
    """The lesson after Run All, whichever test asks for it first."""
    assert lesson.run_all() == []
    assert lesson.explorers()
    return lesson


def test_every_control_changes_the_picture_by_keyboard_and_by_drag(ran):
    for explorer in ran.explorers():
        first = ran.picture(explorer)
        for handle in explorer.locator(".noUi-handle").all():
            name = handle.locator("xpath=ancestor::div[contains(@class,'widget-hslider')]").inner_text()
            for move in (ran.press_arrow, ran.drag):
                before = ran.picture(explorer)
                move(handle)
                assert ran.changes(explorer, before), f"{name}: {move.__name__}"
                ran.reset(explorer)
                assert ran.becomes(explorer, first), f"{name}: reset"
        for box in explorer.locator("input[type=checkbox]").all():
            box.focus()
            ran.page.keyboard.press("Space")
            assert ran.changes(explorer, first), "a box by keyboard"
            box.click()
            assert ran.becomes(explorer, first), "a box by click"
        for field in explorer.locator("textarea").all():
            before = ran.picture(explorer)
            field.fill(field.get_attribute("placeholder"))
            field.blur()
            assert ran.changes(explorer, before), "a field that is pasted into"
            ran.reset(explorer)
            assert ran.becomes(explorer, first), "field: reset"
        for button in explorer.locator(".widget-toggle-buttons button").all():
            before, said = ran.picture(explorer), ran.caption(explorer)
            if "mod-active" not in button.get_attribute("class"):
                button.focus()
                ran.page.keyboard.press("Space")
                # Two names may draw the same, and then the caption says why.
                assert ran.changes(explorer, before) or ran.caption(explorer) != said, button.inner_text()
        ran.reset(explorer)
        assert ran.becomes(explorer, first), "reset"


def test_a_drag_is_followed_at_once_and_never_leaves_the_picture_blank(ran):
    explorer = ran.explorers()[0]  # `make bench` does it for all
    drag = ran.drag_for(explorer)
    assert drag["pictures"] > 10 and drag["lag"] <= 300
    film = ran.film(explorer)
    assert film["frames"] > 10 and film["blank"] == 0


def test_no_error_in_the_console_and_nothing_asked_for_outside_this_machine(ran):
    assert ran.errors == []
    assert ran.strangers == []
