"""The notebooks as they are committed: of one form, executed, clean, and the package's own code."""

import ast
import inspect
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from explorers import EXPLORERS
from nbconvert import HTMLExporter

from lecture_utils import llama
from lecture_utils.check import EXERCISES
from lecture_utils.check.lessons import TITLES

ROOT = Path(__file__).parents[1]
NOTEBOOKS = {path.stem: json.loads(path.read_text()) for path in sorted(ROOT.glob("notebooks/*.ipynb"))}
HEADINGS = ["Predict", "The idea", "Build", "Explore", "Prove", "Measure", "Break it", "Recap"]
PARTS = {
    "00": [],  # a map: nothing of the model is built yet
    "01": ["LayerNorm"],
    "02": ["RMSNorm"],
    "03": ["FeedForward"],
    "04": ["SwiGLU", "intermediate_size"],
    "05": ["sigmoid", "tanh", "relu", "leaky_relu", "gelu", "swish", "silu", "silu_grad"],
    "06": ["inv_freq", "cos_sin", "rotate_half", "apply_rope", "interleaved_to_half", "RotaryEmbedding"],
    "07": ["causal_mask", "repeat_kv", "attention", "causal_attention", "Attention"],
    "08": ["kv_cache_bytes", "KVCache"],
    "09": ["DecoderLayer"],
    "11": ["Llama", "next_token_probabilities"],
}
each_notebook = pytest.mark.parametrize("stem", NOTEBOOKS)


def cells(stem, kind):
    return [c for c in NOTEBOOKS[stem]["cells"] if c["cell_type"] == kind]


def source(cell):
    return "".join(cell["source"])


def headings(stem, level):
    text = "\n".join(source(c) for c in cells(stem, "markdown"))
    return re.findall(rf"^#{{{level}}} (.+)$", text, flags=re.MULTILINE)


def test_lessons_pictures_plots_explorers_and_checkers_have_the_same_names():
    modules = {p.stem for p in ROOT.glob("lecture_utils/plots/*.py")} - {"__init__", "__main__", "style"}
    pictures = {p.stem for p in ROOT.glob("images/*.svg")}
    assert [stem[:2] for stem in NOTEBOOKS] == list(PARTS)
    assert {stem[3:] for stem in NOTEBOOKS} == modules
    for floor in ("check/lessons", "check/mistakes", "explore"):
        assert {p.stem for p in ROOT.glob(f"lecture_utils/{floor}/*.py")} - {
            "__init__",
            "explorer",
        } == modules
    titles = {stem[3:]: headings(stem, 1)[0] for stem in NOTEBOOKS}
    assert titles == TITLES and list(titles) == list(TITLES)
    assert NOTEBOOKS.keys() <= pictures
    assert {name[:2] for name in pictures} == PARTS.keys()


@each_notebook
def test_headings_are_those_of_every_lesson(stem):
    assert headings(stem, 2) == HEADINGS
    (title,) = headings(stem, 1)
    assert title.startswith(f"{int(stem[:2])} · ")


@each_notebook
def test_first_cell_has_minutes_needs_and_links_that_lead_somewhere(stem):
    first = source(cells(stem, "markdown")[0])
    minutes = int(re.search(r"(\d+) minutes", first).group(1))
    assert minutes <= 45 and "needs" in first and f"[slides](../slides/{stem}.md)" in first
    for cell in cells(stem, "markdown"):
        for link in re.findall(r"\]\(([^)#]+)[^)]*\)", source(cell)):
            assert link.startswith("https://") or (ROOT / "notebooks" / link).exists(), link


@each_notebook
def test_exercises_of_every_kind_have_difficulty_and_minutes(stem):
    exercises = [h for h in headings(stem, 3) if h.startswith(("Your turn:", "Predict:", "Vary:", "Debug:"))]
    assert {h.split(":")[0] for h in exercises} == {"Your turn", "Predict", "Vary", "Debug"}
    for heading in exercises:
        assert re.search(r" · difficulty [1-5] of 5 · \d+ minutes( · second reading)?$", heading), heading


@each_notebook
def test_every_exercise_is_checked_where_it_stands_and_is_not_attempted_as_shipped(stem):
    lesson = [e.name for e in EXERCISES.values() if e.lesson == stem[3:]]
    checked = {}
    for cell in cells(stem, "code"):
        for name, argument in re.findall(r"^check\.(\w+)\((\w+)", source(cell), flags=re.MULTILINE):
            if not argument.startswith("suspect"):
                (output,) = cell["outputs"]
                checked[name] = "".join(output["data"]["text/plain"])
    assert set(checked) == set(lesson)
    for name, text in checked.items():
        assert text.startswith(f"○ {name} · not attempted"), text


@each_notebook
def test_suspects_under_break_it_are_named(stem):
    verdicts = [
        "".join(cell["outputs"][0]["data"]["text/plain"])
        for cell in cells(stem, "code")
        if re.search(r"^check\.\w+\(suspect_", source(cell), flags=re.MULTILINE)
    ]
    assert len(verdicts) >= 2
    for text in verdicts:
        assert re.match(r"✗ \w+ · not yet · [a-z0-9-]+\n", text), text


def core_code(stem):
    """The code cells outside the sub-sections that are marked second reading."""
    core = True
    for cell in NOTEBOOKS[stem]["cells"]:
        if cell["cell_type"] == "code":
            if core:
                yield source(cell)
            continue
        for heading in re.findall(r"^#{1,3} (.+)$", source(cell), flags=re.MULTILINE):
            core = not heading.endswith(" · second reading")


@each_notebook
def test_core_runs_without_what_is_marked_second_reading(stem):
    assert any(heading.endswith("second reading") for heading in headings(stem, 3))
    code = "\n\n".join(["display = print", *core_code(stem)])
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)
    assert run.returncode == 0, run.stderr[-1000:]


@each_notebook
def test_is_executed_top_to_bottom_in_a_fresh_kernel(stem):
    counts = [c["execution_count"] for c in cells(stem, "code")]
    assert counts == list(range(1, len(counts) + 1))


@each_notebook
def test_stores_no_error_no_warning_no_path_of_a_machine_and_no_times(stem):
    for cell in cells(stem, "code"):
        for output in cell["outputs"]:
            assert output["output_type"] != "error"
            assert output.get("name") != "stderr", output
        assert not re.search(r"/(home|root|tmp|work|Users)/", json.dumps(cell["outputs"]))
        assert "execution" not in cell["metadata"]
    assert "widgets" not in NOTEBOOKS[stem]["metadata"]  # random ids: noise in every diff


@each_notebook
def test_every_explorer_of_the_lesson_is_shown_and_stored_as_a_picture(stem):
    shown = {}
    for cell in cells(stem, "code"):
        for name in re.findall(r"^explore\.(\w+)\(", source(cell), flags=re.MULTILINE):
            (shown[name],) = [
                output["data"] for output in cell["outputs"] if "image/png" in output.get("data", {})
            ]
    assert {f"{stem[3:]}.{name}" for name in shown} == {
        name for name in EXPLORERS if name.startswith(stem[3:])
    }
    html, _ = HTMLExporter().from_filename(ROOT / "notebooks" / f"{stem}.ipynb")
    for name, data in shown.items():
        assert data["text/plain"][0].startswith(f"{name}: a picture to move (")
        # As GitHub and nbconvert show it: caption and picture are one PNG.
        assert "".join(data["image/png"]).replace("\n", "") in html


@each_notebook
def test_stores_nothing_that_needs_a_running_kernel(stem):
    assert "widget-view" not in json.dumps([cell["outputs"] for cell in cells(stem, "code")])


@each_notebook
def test_cells_are_short_and_no_prose_is_left_for_another_day(stem):
    for cell in cells(stem, "code"):
        assert len(source(cell).splitlines()) <= 30
    for cell in cells(stem, "markdown"):
        assert not re.search(
            r"\b(todo|to-do|coming soon|in a later (lesson|version))\b", source(cell), flags=re.IGNORECASE
        )


def plain(node):
    """The syntax tree without docstrings and without the guards `expect.…(…)`, as text."""

    class Strip(ast.NodeTransformer):
        def visit_Expr(self, expression):
            value = expression.value
            is_text = isinstance(value, ast.Constant) and isinstance(value.value, str)
            is_guard = isinstance(value, ast.Call) and ast.unparse(value.func).startswith("expect.")
            return None if is_text or is_guard else expression

    return ast.unparse(Strip().visit(node))


def definitions(stem):
    """Every class and function of a notebook that has a body (a stub's body is `...`)."""
    for cell in cells(stem, "code"):
        for node in ast.parse(re.sub(r"^[%!].*$", "", source(cell), flags=re.MULTILINE)).body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef):
                body = node.body[-1]
                if not (isinstance(body, ast.Expr) and ast.unparse(body) == "..."):
                    yield node


@each_notebook
def test_the_parts_in_the_notebook_are_the_code_of_the_package(stem):
    found = set()
    for node in definitions(stem):
        if node.name in llama.__all__:
            package = ast.parse(inspect.getsource(getattr(llama, node.name))).body[0]
            if node.name == "Llama":  # without the methods that read, write and generate
                package.body = [n for n in package.body if getattr(n, "name", "") in ("__init__", "forward")]
            assert plain(node) == plain(package), node.name
            found.add(node.name)
    assert found >= set(PARTS[stem[:2]])


@each_notebook
def test_proves_its_part_against_the_reference(stem):
    code = "\n".join(source(c) for c in cells(stem, "code"))
    assert "assert_matches(" in code
    assert ("reference." in code) or ("nn.LayerNorm(" in code and stem.startswith("01"))
    assert "import transformers" not in code and "from transformers" not in code
