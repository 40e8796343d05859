"""`python -m lecture_utils.plots [FOLDER]`: draw every picture of the course as SVG (into `images`)."""

import importlib
import pkgutil
import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from lecture_utils import plots
from lecture_utils.plots import style

# A slide shows a picture of 7.5 inches 1190 pixels wide, so that 11 points are 24 pixels: the least that the
# last row of a room can read.
LARGE = {"xtick.labelsize": 11, "ytick.labelsize": 11, "legend.fontsize": 11}


def images() -> dict[str, Callable[[Figure], None]]:
    """The function that draws each picture, by the name of its file without `.svg`."""
    found = {}
    for module in sorted(module.name for module in pkgutil.iter_modules(plots.__path__)):
        if module not in ("__main__", "style"):
            found |= importlib.import_module(f"lecture_utils.plots.{module}").IMAGES
    return dict(sorted(found.items()))


def draw(folder: Path) -> None:
    """Write every picture as SVG: the same bytes each time (no date, no random ids)."""
    folder.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context():
        style.use()
        matplotlib.rcParams.update(LARGE)
        for name, draw_on in images().items():
            figure = Figure()
            draw_on(figure)
            figure.savefig(folder / f"{name}.svg", metadata={"Date": None, "Creator": None})
            print(folder / f"{name}.svg")


if __name__ == "__main__":
    draw(Path(sys.argv[1] if len(sys.argv) > 1 else "images"))
