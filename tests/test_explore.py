"""Explorers: what the base promises, and what every explorer of a lesson keeps."""

import io
import itertools
import json
import threading
import time
import warnings

import ipywidgets
import numpy as np
import psutil
import pytest
import torch
import torch.nn.functional as F
from explorers import EXPLORERS, ends
from matplotlib.text import Text
from PIL import Image

from lecture_utils.explore import ffn_up_projection, map_of_llama
from lecture_utils.explore.explorer import Explorer, counted, listed, log_slider, slider, stops, toggle
from lecture_utils.llama import FeedForward, LlamaConfig
from lecture_utils.plots import style

each_explorer = pytest.mark.parametrize("kind", EXPLORERS.values(), ids=EXPLORERS)


class Rise(Explorer):
    """A line whose slope is moved; 3 cannot be drawn."""

    drawn = updates = 0

    def __init__(self):
        super().__init__(slope=slider("slope", -2, 4, start=1), up=toggle("up", True))

    def draw(self, axes):
        self.drawn += 1
        (self.line,) = axes.plot([-1, 1], [0, 0])
        axes.set(ylim=(-4, 4))
        return [self.line]

    def update(self, slope, up):
        self.updates += 1
        self.line.set_ydata([-slope, slope] if up else [slope, -slope])
        if slope == 3:
            raise ValueError("no <such> slope")
        return f"The slope is {slope if up else -slope}."


def test_a_move_changes_picture_and_caption_and_draws_nothing_anew():
    rise = Rise()
    first = rise.picture.value
    rise.controls["slope"].value = 2
    assert rise.picture.value != first and rise.says == "The slope is 2." and rise.says in rise._caption.value
    assert 'aria-live="polite"' in rise._caption.value
    assert (rise.drawn, rise.updates) == (1, 2)


def test_reset_brings_the_first_picture_back_in_one_move():
    rise = Rise()
    first = rise.picture.value
    rise.controls["slope"].value, rise.controls["up"].value = 2, False
    updates = rise.updates
    rise.reset()
    assert rise.picture.value == first and rise.says == "The slope is 1."
    assert rise.updates == updates + 1


def test_an_error_is_said_in_the_caption_the_picture_stays_and_the_next_move_works():
    rise = Rise()
    before = rise.picture.value
    rise.controls["slope"].value = 3
    assert rise.picture.value == before
    assert rise.says == "No picture for these values (ValueError: no <such> slope). Move on, or reset."
    assert "&lt;such&gt;" in rise._caption.value
    rise.controls["slope"].value = 2
    assert rise.picture.value != before and rise.says == "The slope is 2."


def test_moves_that_come_from_two_threads_take_turns():
    class Slow(Rise):
        busy = False

        def update(self, **values):
            overtaken, self.busy = self.busy, True
            time.sleep(0.01)
            self.busy = False
            return "overtaken" if overtaken else super().update(**values)

    slow, said = Slow(), set()
    slow._caption.observe(lambda change: said.add(slow.says), "value")

    def slide():
        for slope in (2, 1, 0, -1, -2) * 3:
            slow.controls["slope"].value = slope

    other = threading.Thread(target=slide)
    other.start()
    for _ in range(10):
        slow.reset()
    other.join()
    assert len(said) > 2 and "overtaken" not in said


def test_an_error_in_the_first_picture_is_raised():
    class Broken(Rise):
        def draw(self, axes):
            raise RuntimeError("nothing to draw")

    with pytest.raises(RuntimeError, match="nothing to draw"):
        Broken()


def test_controls_have_units_and_the_values_they_were_given():
    assert slider("position", 0, 8, 5, unit="tokens").description == "position (tokens)"
    assert isinstance(slider("position", 0, 8, 5), ipywidgets.IntSlider)
    assert slider("slope", 0, 1, 0.5, step=0.05).readout_format == ".2f"
    eps = log_slider("eps", -8, 0, 1e-6, step=0.25)
    assert (eps.value, eps.min, eps.max, eps.step) == (1e-6, -8, 0, 0.25)
    assert dict(stops("base", (-1, 10_000), -1).options) == {"−1": -1, "10,000": 10_000}


def test_captions_list_things_as_prose_does():
    assert [listed(range(n)) for n in (1, 2, 3)] == ["0", "0 and 1", "0, 1 and 2"]


def test_captions_count_things_as_prose_does():
    assert [counted(n, "token") for n in (1, 2, 2048)] == ["1 token", "2 tokens", "2,048 tokens"]
    assert counted(3, "query", "queries") == "3 queries"
    sizes = [512, 2**20 - 1, 1.5 * 2**30, 2**41]
    assert [style.memory(size) for size in sizes] == ["0.5 KiB", "1 MiB", "1.5 GiB", "2,048 GiB"]


def test_a_thousand_moves_take_no_memory():
    rise, process = Rise(), psutil.Process()
    move = itertools.cycle((2, 1))
    for _ in range(50):
        rise.controls["slope"].value = next(move)
    before = process.memory_info().rss
    for _ in range(1000):
        rise.controls["slope"].value = next(move)
    assert rise.updates == 1051
    assert process.memory_info().rss - before < 20e6


def put(explorer, values):
    for name, value in values.items():
        explorer.controls[name].value = value


@each_explorer
def test_every_control_changes_the_picture_and_the_caption(kind):
    explorer = kind()
    for name, control in explorer.controls.items():
        explorer.reset()
        pictures, captions = {bytes(explorer.picture.value)}, {explorer.says}
        for value in ends(control):
            control.value = value
            pictures.add(bytes(explorer.picture.value))
            captions.add(explorer.says)
        assert len(pictures) > 1 and len(captions) > 1, name


@each_explorer
def test_every_corner_is_drawn_without_a_warning_and_moves_nothing_but_its_artists(kind):
    explorer = kind()
    first = explorer.picture.value
    background = np.asarray(explorer._background).copy()
    things = len(list(explorer.figure.findobj()))
    limits = [(axes.get_xlim(), axes.get_ylim()) for axes in explorer.figure.axes]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for values in itertools.product(*(ends(control) for control in explorer.controls.values())):
            put(explorer, dict(zip(explorer.controls, values, strict=True)))
            assert "No picture" not in explorer.says and "nan" not in explorer.says, explorer.values
    assert [(axes.get_xlim(), axes.get_ylim()) for axes in explorer.figure.axes] == limits
    explorer._canvas.draw()  # leaves out what moves: whatever else changed would show here
    assert np.array_equal(np.asarray(explorer._canvas.copy_from_bbox(explorer.figure.bbox)), background)
    explorer.reset()
    assert len(list(explorer.figure.findobj())) == things
    assert explorer.picture.value == first


def texts(figure):
    """Every text of a figure but the numbers on its axes."""
    yield from figure.texts
    for axes in figure.axes:
        yield from (child for child in axes.get_children() if isinstance(child, Text))
        yield from (axes.xaxis.label, axes.yaxis.label)


@each_explorer
def test_no_text_is_cut_off_at_the_edge(kind):
    explorer = kind()
    width, height = explorer.figure.bbox.size
    for name, control in explorer.controls.items():
        for value in ends(control):
            explorer.reset()
            control.value = value
            for text in texts(explorer.figure):
                if text.get_visible() and text.get_text().strip() and not text.get_clip_on():
                    box = text.get_window_extent()
                    inside = box.x0 > -2 and box.y0 > -2 and box.x1 < width + 2 and box.y1 < height + 2
                    assert inside, f"{text.get_text()!r} at {name} = {value}"


@each_explorer
def test_a_viewer_without_a_kernel_sees_picture_and_caption(kind):
    explorer = kind()
    bundle = explorer._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in bundle
    stored = Image.open(io.BytesIO(bundle["image/png"]))
    live = Image.open(io.BytesIO(explorer.picture.value))
    width, height = stored.size
    picture_height = round(live.height * width / live.width)
    assert height > picture_height + 40
    below = np.asarray(stored.convert("L"))[picture_height + 2 :]
    assert (below < 128).sum() > 20 * len(explorer.says)  # ink of the caption
    assert len(bundle["image/png"]) < 200_000
    for name, control in explorer.controls.items():  # the text form is the same in every state
        control.value = ends(control)[0]
        assert explorer._repr_mimebundle_()["text/plain"] == bundle["text/plain"], name


@each_explorer
def test_no_picture_is_so_small_that_the_server_holds_it_back(kind):
    assert len(kind().picture.value) >= 65536  # a segment of the loopback


@each_explorer
def test_labels_leave_room_for_the_sliders(kind):
    for control in kind().controls.values():
        assert len(control.description) <= 26


def test_the_networks_of_width_are_those_that_the_lesson_trains():
    width = ffn_up_projection.Width()
    inputs, wave = width.inputs[:, None], width.wave[:, None]
    torch.manual_seed(1)
    network = FeedForward(1, 4)
    optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
    for _ in range(400):
        optimizer.zero_grad()
        F.mse_loss(network(inputs), wave).backward()
        optimizer.step()
    assert f"error {F.mse_loss(network(inputs), wave).sqrt():.3f} " in width.update(4, 1, 400)


def test_a_pasted_config_is_drawn_and_a_wrong_one_is_told_while_the_preset_stays():
    explorer = map_of_llama.Map()
    first = explorer.name.get_text()
    config = LlamaConfig(hidden_size=64, num_attention_heads=4, vocab_size=100).to_dict()
    explorer.controls["pasted"].value = json.dumps(config)
    assert explorer.name.get_text() == f"pasted: {LlamaConfig.from_dict(config).num_parameters:,} parameters"
    for text, words in (
        ("{", "this is not JSON"),
        ("[]", "must be a dict"),
        (json.dumps(config | {"model_type": "mistral"}), "model_type is 'mistral'"),
        (json.dumps(config | {"hidden_size": 66}), "not divisible"),
        (json.dumps(config | {"hidden_size": None}), "hidden_size"),
        (json.dumps({name: value for name, value in config.items() if name != "vocab_size"}), "is missing"),
    ):
        explorer.controls["pasted"].value = text
        wrong, _, rest = explorer.says.partition("Still")
        assert wrong.startswith("Not read: ") and words in wrong, explorer.says
        assert explorer.name.get_text() == first and rest.startswith(" Llama-3.2-1B.")


def test_the_tiny_model_of_next_word_writes_the_rhyme():
    model = map_of_llama.writer()
    for line in map_of_llama.LINES:
        ids = map_of_llama.encode(line)
        with torch.no_grad():
            chosen = model(ids)[0].argmax(-1)
        assert torch.equal(chosen[4:-1], ids[0, 5:]), line


@each_explorer
def test_has_a_sentence_about_it_and_no_output_widget(kind):
    assert "." in (kind.__doc__ or "")

    def inside(widget):
        yield widget
        for child in getattr(widget, "children", ()):
            yield from inside(child)

    assert not [w for w in inside(kind()) if isinstance(w, ipywidgets.Output)]
