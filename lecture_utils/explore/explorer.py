"""The base of every explorer: a picture that is drawn once and then only moved, fast enough for the hand."""

import html
import io
import textwrap
import threading
from collections.abc import Iterable

import ipywidgets
import matplotlib.style
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from PIL import Image

from lecture_utils.plots import style

PIXELS_PER_INCH = 110  # on the page, as in `course.mplstyle`
# Pixels of the picture for each pixel of the page, so that text is sharp on a dense screen. Affordable
# because a move is sent as JPEG, which is written about five times as fast as PNG; at this density, with
# full colour resolution, no eye sees the difference. What is stored in a notebook is PNG.
SHARPNESS = 1.5
# Bytes of a picture at least. A smaller one would wait in the server's socket for up to 40 ms, until the
# browser has acknowledged the small messages before it (Nagle's algorithm). One that fills a segment of the
# loopback goes at once. What stands behind the end of a JPEG is ignored.
SEGMENT = 65536


def slider(label: str, low: float, high: float, start: float, step: float = 1, unit: str = ""):
    """A slider from `low` to `high` (both included); whole numbers if all four numbers are whole."""
    whole = all(isinstance(number, int) for number in (low, high, start, step))
    kind = ipywidgets.IntSlider if whole else ipywidgets.FloatSlider
    decimals = len(f"{step:.6f}".rstrip("0").partition(".")[2])
    return kind(start, min=low, max=high, step=step, readout_format=f".{decimals}f", **_look(label, unit))


def log_slider(label: str, low: float, high: float, start: float, step: float = 0.1, unit: str = ""):
    """A slider from 10**low to 10**high; `step` is that of the exponent, `start` is the value itself."""
    look = _look(label, unit) | {"readout_format": ".2g"}
    return ipywidgets.FloatLogSlider(start, min=low, max=high, step=step, **look)


def stops(label: str, values: Iterable, start, unit: str = ""):
    """A slider that halts at the listed values only: numbers (shown as 10,000) or names."""
    options = [
        (value if isinstance(value, str) else f"{value:,}".replace("-", "−"), value) for value in values
    ]
    return ipywidgets.SelectionSlider(options=options, value=start, **_look(label, unit))


def toggle(label: str, start: bool = False):
    """Something to switch on and off."""
    return ipywidgets.Checkbox(start, description=label, indent=False, layout={"width": "max-content"})


def choice(label: str, options: Iterable[str], start: str):
    """One of a few names, as a row of buttons (in a drop-down list JupyterLab would take the arrow keys)."""
    look = _look(label, "")
    look["style"] |= {"button_width": "auto"}
    look["layout"] |= {"grid_area": "auto / 1 / auto / -1"}  # the whole row
    return ipywidgets.ToggleButtons(options=list(options), value=start, **look)


def pasted(label: str, example: str):
    """A field for text, empty at first; the picture follows when it is left. `example` is seen in grey."""
    look = _look(label, "")
    look["layout"] |= {"grid_area": "auto / 1 / auto / -1", "height": "64px"}  # the whole row
    return ipywidgets.Textarea(placeholder=example, continuous_update=False, **look)


def listed(things: Iterable) -> str:
    """For captions: 1, 2 and 3."""
    *some, last = map(str, things)
    return f"{', '.join(some)} and {last}" if some else last


def counted(number: int, one: str, more: str | None = None) -> str:
    """For captions: 1 token, 2 tokens; `more` where the plural is no `s` behind."""
    return f"{number:,} {one if number == 1 else more or one + 's'}"


def _look(label: str, unit: str) -> dict:
    return {
        "description": f"{label} ({unit})" if unit else label,
        "style": {"description_width": "max-content"},
        "layout": {"width": "auto", "margin": "2px 12px 2px 2px"},
    }


class Explorer(ipywidgets.VBox):
    """A picture that controls move, with a caption in words.

    A subclass draws once and then moves what it drew (`size` in inches, `panels` for `Figure.subplots`):

        class Rise(Explorer):
            def __init__(self):
                super().__init__(slope=slider("slope", -2, 2, start=1, step=0.1))

            def draw(self, axes):
                (self.line,) = axes.plot([-1, 1], [0, 0])
                axes.set(ylim=(-2, 2))
                return [self.line]

            def update(self, slope):
                self.line.set_ydata([-slope, slope])
                return f"One step to the right is {slope:g} up."

    (ipywidgets has taken the names `keys`, `layout`, `children` and a few more for itself.)

    Args:
        controls: by name, each made by `slider`, `log_slider`, `stops`, `toggle`, `choice` or
            `pasted`.
    """

    size = (7.5, 3.6)
    panels: dict = {}

    def __init__(self, **controls: ipywidgets.ValueWidget) -> None:
        self.controls = controls
        self._start = self.values
        with matplotlib.style.context(style.FILE):
            self.figure = Figure(figsize=self.size, dpi=PIXELS_PER_INCH * SHARPNESS)
            self._canvas = FigureCanvasAgg(self.figure)
            axes = self.figure.subplots(**self.panels, squeeze=False).flat
            self._moving = list(self.draw(*axes))
            self.says = self.update(**self.values)
            # Laid out once: a layout engine doubles the cost of every draw.
            self.figure.draw_without_rendering()
            self.figure.set_layout_engine("none")
            # An animated artist is left out of the background, and drawn over it at every move.
            for artist in self._moving:
                artist.set_animated(True)
            self._canvas.draw()
            self._background = self._canvas.copy_from_bbox(self.figure.bbox)
        width = f"{self.size[0] * PIXELS_PER_INCH:.0f}px"
        self.picture = ipywidgets.Image(
            format="jpeg", layout={"width": width, "max_width": "100%", "height": "auto"}
        )
        self._caption = ipywidgets.HTML(layout={"max_width": width})
        reset = ipywidgets.Button(description="reset", layout={"width": "70px", "align_self": "flex-end"})
        reset.on_click(lambda _: self.reset())
        columns = {"grid_template_columns": "repeat(auto-fit, minmax(340px, 1fr))", "flex": "1 1 0"}
        grid = ipywidgets.GridBox([*controls.values()], layout=columns)
        rows = ipywidgets.HBox([grid, reset], layout={"max_width": width})
        super().__init__([rows, self.picture, self._caption])
        self._resetting = False
        # JupyterLab has controls answered in a second thread, so that they move while a cell runs, but sends
        # a control's first message, and clicks, to the main one: both at once would draw over each other.
        self._turn = threading.RLock()
        self._show()
        for control in controls.values():
            control.observe(self._answer, "value")

    @property
    def values(self) -> dict:
        """What the controls say now, by name."""
        return {name: control.value for name, control in self.controls.items()}

    def draw(self, *axes: Axes) -> Iterable[Artist]:
        """Draw everything once, on the panels; returns the artists that `update` moves, in drawing order."""
        raise NotImplementedError

    def update(self, **values) -> str:
        """Move the artists to the values of the controls; returns the caption, in plain words."""
        raise NotImplementedError

    def reset(self) -> None:
        """All controls as they were at first; one new picture."""
        with self._turn:
            self._resetting = True
            for name, value in self._start.items():
                self.controls[name].value = value
            self._resetting = False
            self._answer()

    def _answer(self, _=None) -> None:
        with self._turn:
            if self._resetting:
                return
            try:
                self.says = self.update(**self.values)
                self._show()
            except Exception as error:
                # The last picture stays. What went wrong is said where the eye already is.
                name = type(error).__name__
                self.says = f"No picture for these values ({name}: {error}). Move on, or reset."
                self._tell()

    def _show(self) -> None:
        self._canvas.restore_region(self._background)
        for artist in self._moving:
            self.figure.draw_artist(artist)
        file = io.BytesIO()
        _image(self._canvas).save(file, "jpeg", quality=88, subsampling="4:4:4")
        self.picture.value = file.getvalue().ljust(SEGMENT, b"\0")
        self._tell()

    def _tell(self) -> None:
        # A screen reader reads a polite region when it changes. Two lines high, so that nothing jumps.
        self._caption.value = (
            '<div aria-live="polite" style="min-height: 2.8em; line-height: 1.4">'
            f"{html.escape(self.says)}</div>"
        )

    def _repr_mimebundle_(self, **options):
        """The live widget; for a viewer without a kernel, picture and caption as one PNG."""
        data = super()._repr_mimebundle_(**options)
        moves = ", ".join(control.description for control in self.controls.values())
        data["text/plain"] = f"{type(self).__name__}: a picture to move ({moves})"
        picture, text = _image(self._canvas), self._written(moves)
        both = Image.new("RGB", (picture.width, picture.height + text.height), "white")
        both.paste(picture.convert("RGB"))
        both.paste(text.convert("RGB"), (0, picture.height))
        file = io.BytesIO()
        both.resize([round(side / SHARPNESS) for side in both.size]).save(file, "png", optimize=True)
        data["image/png"] = file.getvalue()
        return data

    def _written(self, moves: str) -> Image.Image:
        """Caption and controls in writing, as wide as the picture."""
        columns = round(11.5 * self.size[0])  # 11.5 letters of 11 points to an inch
        caption = textwrap.wrap(self.says, columns)
        hint = textwrap.wrap(f"Run this cell to move: {moves}.", columns)
        height = 0.21 * (len(caption) + len(hint)) + 0.3
        with matplotlib.style.context(style.FILE):
            figure = Figure(figsize=(self.size[0], height), dpi=self.figure.dpi, layout="none")
            canvas = FigureCanvasAgg(figure)
            figure.text(0.012, 1 - 0.08 / height, "\n".join(caption), va="top", linespacing=1.35)
            figure.text(
                0.012, 0.08 / height, "\n".join(hint), va="bottom", color=style.MUTED, linespacing=1.35
            )
            canvas.draw()
        return _image(canvas)


def _image(canvas: FigureCanvasAgg) -> Image.Image:
    """What is drawn, not copied (RGBX: the fourth byte is ignored)."""
    pixels = canvas.buffer_rgba()
    height, width = pixels.shape[:2]
    return Image.frombuffer("RGBX", (width, height), pixels, "raw", "RGBX", 0, 1)
