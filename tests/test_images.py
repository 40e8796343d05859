"""images/*.svg are what the code draws, and every plot module draws on the axes it is given."""

import re
import subprocess
import sys
from pathlib import Path

import matplotlib
import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Text

from lecture_utils.plots import style
from lecture_utils.plots.__main__ import LARGE, images

COMMITTED = Path(__file__).parents[1] / "images"


@pytest.fixture(scope="session")
def drawn(tmp_path_factory):
    folders = [tmp_path_factory.mktemp(name) for name in ("first", "second")]
    for folder in folders:
        subprocess.run([sys.executable, "-m", "lecture_utils.plots", folder], check=True, capture_output=True)
    return folders


def assert_same_picture(now, committed):
    """Two SVG texts draw the same, but for 0.5 of a pixel: another processor may move a line a little."""
    # Ids of clip paths and glyphs hash what they draw.
    now, committed = (re.sub(r"\b[pm][0-9a-f]{10}\b", "ID", text) for text in (now, committed))
    assert re.sub(r"[-\d.e]+", "", now) == re.sub(r"[-\d.e]+", "", committed)
    numbers = [np.array(re.findall(r"-?\d+\.?\d*(?:e-?\d+)?", t), dtype=float) for t in (now, committed)]
    np.testing.assert_allclose(*numbers, atol=0.5)


def test_drawing_twice_gives_the_same_bytes(drawn):
    first, second = drawn
    assert {p.name for p in first.iterdir()} == {f"{name}.svg" for name in images()}
    for picture in first.iterdir():
        assert picture.read_bytes() == (second / picture.name).read_bytes(), picture.name


def test_committed_pictures_are_those_that_the_code_draws(drawn):
    assert {p.name for p in COMMITTED.glob("*")} == {p.name for p in drawn[0].iterdir()}
    for picture in drawn[0].iterdir():
        assert_same_picture(picture.read_text(), (COMMITTED / picture.name).read_text())


def test_a_picture_with_a_line_moved_or_added_is_another_picture(drawn):
    text = next(drawn[0].iterdir()).read_text()
    moved = re.sub(r'x="(\d+)', lambda m: f'x="{int(m[1]) + 5}', text, count=1)
    for other in (moved, text.replace("</svg>", '<path d="M 0 0"/></svg>')):
        assert other != text
        with pytest.raises(AssertionError):
            assert_same_picture(other, text)


@pytest.mark.parametrize("name", images())
def test_letters_are_large_enough_for_a_slide(name):
    with matplotlib.rc_context():
        style.use()
        matplotlib.rcParams.update(LARGE)
        figure = Figure()
        images()[name](figure)
        figure.draw_without_rendering()
    assert figure.get_figwidth() <= 7.5
    for text in figure.findobj(Text):
        if text.get_visible() and text.get_text().strip():
            assert text.get_fontsize() >= 11, text.get_text()


def test_plot_modules_use_no_pyplot():
    for module in Path(sys.modules[images.__module__].__file__).parent.glob("*.py"):
        assert "pyplot" not in module.read_text(), module.name
