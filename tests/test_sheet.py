"""The instructor's sheet: students' notebooks in, a CSV out, whatever is in the notebooks."""

import csv
import subprocess
import sys

import nbformat
import pytest

from lecture_utils.check import sheet

IMPORTS = "import torch\nfrom lecture_utils import check"
RIGHT = """def rms_norm(x, weight, eps):
    wide = x.float()
    return weight * (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps)).to(x.dtype)"""
STUB = "def rotate_half(x):\n    ..."
CHECKS = ["check.rms_norm(rms_norm)", STUB, "check.rotate_half(rotate_half)"]
HANDED_IN = {
    "anna": [IMPORTS, RIGHT, *CHECKS],
    "ben": [IMPORTS, RIGHT.replace("weight *", "(1 + weight) *"), *CHECKS],
    "crash": [IMPORTS, RIGHT, CHECKS[0], "import os; os._exit(1)", *CHECKS[1:]],
    "error": [IMPORTS, "def rms_norm(x, weight, eps: return x", *CHECKS],
    "loop": [IMPORTS, "while True: pass", RIGHT, *CHECKS],
    "nothing": ["1 + 1"],
}


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    folder = tmp_path_factory.mktemp("handed in")
    for name, cells in HANDED_IN.items():
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
        nbformat.write(notebook, folder / f"{name}.ipynb")
    (folder / "unreadable.ipynb").write_text("{")
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    command = [sys.executable, "-m", "lecture_utils.check", str(folder), "--cell-timeout", "20"]
    run = subprocess.run([*command, "-o", str(folder / "sheet.csv")], capture_output=True, text=True)
    assert run.returncode == 1, run.stderr  # two files gave nothing: said, and the others are there
    assert "7/7" in run.stderr and "Traceback" not in run.stderr
    after = {p.name: p.read_bytes() for p in folder.iterdir() if p.name != "sheet.csv"}
    assert after == before  # nothing of the students is changed, and nothing left beside it
    with open(folder / "sheet.csv", newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert tuple(lines[0]) == sheet.COLUMNS
    table = {}
    for line in lines:
        student = line["file"].rsplit("/", 1)[-1].removesuffix(".ipynb")
        table.setdefault(student, []).append((line["exercise"], line["state"], line["mistake"]))
    return table


def test_right_not_yet_with_its_mistake_and_not_attempted(rows):
    assert rows["anna"] == [("rms_norm", "right", ""), ("rotate_half", "not attempted", "")]
    assert rows["ben"][0] == ("rms_norm", "not yet", "one-plus-weight")


def test_a_kernel_that_dies_costs_what_comes_after_it(rows):
    assert rows["crash"] == [
        ("rms_norm", "right", ""),
        ("rotate_half", "not reached", "stopped: the kernel died"),
    ]


def test_an_endless_loop_is_interrupted_and_the_next_cells_run(rows):
    assert rows["loop"] == [("rms_norm", "right", ""), ("rotate_half", "not attempted", "")]


def test_a_cell_that_cannot_be_read_costs_its_own_exercise(rows):
    assert rows["error"][0][:2] == ("rms_norm", "not reached")
    assert rows["error"][1] == ("rotate_half", "not attempted", "")


def test_a_file_that_is_no_notebook_or_checks_nothing_has_a_row_that_says_so(rows):
    assert rows["unreadable"] == [("", "not reached", "unreadable: NotJSONError")]
    assert rows["nothing"] == [("", "not reached", "no exercise of the course is checked in it")]


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["nowhere.ipynb"], "nowhere.ipynb is not there"),
        ([__file__], "is no notebook"),
        (["."], "there is no notebook in the folder ."),
        ([], "the following arguments are required"),
        ([__file__, "--cell-timeout", "0"], "must be above 0"),
    ],
)
def test_bad_input_gets_one_sentence(arguments, sentence, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        sheet.main(arguments)
    assert stop.value.code == 2 and sentence in capsys.readouterr().err
