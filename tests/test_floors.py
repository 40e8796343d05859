"""Which floor of the house imports which: checked in a fresh interpreter."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[1] / "lecture_utils"
HEAVY = {"transformers", "matplotlib", "ipywidgets", "jupyterlab", "IPython", "nbclient", "nbformat"}


def modules_after(statement):
    code = f"{statement}\nimport sys\nprint(*{{name.split('.')[0] for name in sys.modules}})"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(run.stdout.split())


@pytest.mark.parametrize(
    ("statement", "allowed"),
    [
        ("import lecture_utils", set()),
        ("import lecture_utils.llama", set()),
        ("import lecture_utils.parity", set()),
        ("import lecture_utils.parity.formula", set()),
        ("import lecture_utils.check", set()),
        ("import lecture_utils.plots.rmsnorm_by_hand", {"matplotlib"}),
        ("import lecture_utils.explore.rope_2d_to_nd", {"matplotlib", "ipywidgets", "IPython"}),
        ("import lecture_utils.explore.whole_llama", {"matplotlib", "ipywidgets", "IPython"}),
        ("import lecture_utils.tiny.make", set()),
        ("import lecture_utils.predict", {"ipywidgets", "IPython"}),
    ],
)
def test_import_loads_nothing_heavy(statement, allowed):
    assert modules_after(statement) & HEAVY <= allowed


def test_importing_llama_needs_torch_and_the_standard_library_only():
    allowed = {"torch", *sys.stdlib_module_names}
    for file in (PACKAGE / "llama").glob("*.py"):
        at_the_top = [
            n for n in ast.parse(file.read_text()).body if isinstance(n, ast.Import | ast.ImportFrom)
        ]
        for node in at_the_top:
            if isinstance(node, ast.Import):
                assert {alias.name.split(".")[0] for alias in node.names} <= allowed, file
            else:
                assert (node.level == 1) or node.module.split(".")[0] in allowed, file


@pytest.mark.parametrize(
    ("floor", "may_not_import"),
    [
        ("llama", {"parity", "check", "plots", "explore", "predict", "tiny", "transformers"}),
        ("tiny", {"parity", "check", "plots", "explore", "predict", "matplotlib", "transformers"}),
        ("parity", {"check", "plots", "explore", "predict", "matplotlib", "ipywidgets", "transformers"}),
        ("check", {"plots", "explore", "predict", "matplotlib", "ipywidgets", "transformers"}),
        ("plots", {"parity", "check", "explore", "predict", "transformers", "ipywidgets"}),
        ("explore", {"parity", "check", "predict", "transformers", "pyplot"}),
    ],
)
def test_a_floor_does_not_reach_upwards(floor, may_not_import):
    for file in (PACKAGE / floor).rglob("*.py"):
        if file.name == "reference.py":
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or "", *(alias.name for alias in node.names if node.level == 2)]
            parts = {part for name in names for part in name.split(".")}
            assert not parts & may_not_import, f"{file}: {names}"


def test_importing_costs_less_than_a_third_of_a_second_beyond_torch():
    code = (
        "import time, torch; start = time.perf_counter(); "
        "import lecture_utils, lecture_utils.llama; print(time.perf_counter() - start)"
    )
    runs = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        for _ in range(3)
    ]
    assert min(runs) < 0.3
