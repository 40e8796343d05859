"""The instructor's sheet: run students' notebooks, and write down what the checkers said, as a CSV.

Each notebook runs in a kernel of its own, in an empty folder of its own, with a time limit per cell.
What a checker says it also writes into the record of progress in that folder: this is read afterwards,
so a kernel that dies costs the exercises after it, and only in that notebook.
"""

import csv
import logging
import os
import re
import sys
import tempfile
from collections.abc import Iterable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from . import record
from .exercise import EXERCISES

COLUMNS = ("file", "exercise", "state", "mistake")
_CHECK = re.compile(r"\bcheck\.(\w+)\((?!suspect)")


@dataclass(frozen=True)
class Line:
    """One line of the sheet; `state` is that of a verdict, or "not reached"."""

    file: str
    exercise: str
    state: str
    mistake: str = ""


def notebooks(paths: Iterable[str | Path]) -> list[Path]:
    """The notebooks among files and folders (with their subfolders), each once, in order.

    Raises:
        ValueError: a path that is not there, is no notebook, or a folder without any.
    """
    found: dict[Path, None] = {}
    for path in map(Path, paths):
        if path.is_dir():
            inside = sorted(p for p in path.rglob("*.ipynb") if ".ipynb_checkpoints" not in p.parts)
            if not inside:
                raise ValueError(f"there is no notebook in the folder {path}")
            found.update(dict.fromkeys(inside))
        elif path.suffix == ".ipynb" and path.is_file():
            found[path] = None
        else:
            raise ValueError(f"{path} is {'no notebook (.ipynb)' if path.exists() else 'not there'}")
    return list(found)


def grade(path: Path, *, cell_timeout: float = 60.0) -> list[Line]:
    """Run one notebook and say what became of each exercise that it checks.

    Args:
        path: a notebook; it is not written to.
        cell_timeout: seconds for one cell; one that takes longer is interrupted, and the next one runs.

    Returns:
        One line for each exercise that the notebook checks, or one for a file that cannot be read.
    """
    import nbformat
    from nbclient import NotebookClient

    try:
        notebook = nbformat.read(path, as_version=4)
        names = _checked(notebook)
    except Exception as error:  # not JSON, no notebook, another encoding, cells without a source
        return [Line(str(path), "", "not reached", f"unreadable: {type(error).__name__}")]
    if not names:
        return [Line(str(path), "", "not reached", "no exercise of the course is checked in it")]
    with tempfile.TemporaryDirectory(prefix="sheet-", ignore_cleanup_errors=True) as folder:
        client = NotebookClient(
            notebook,
            timeout=cell_timeout,
            allow_errors=True,
            kernel_name="python3",
            extra_arguments=["--log-level=CRITICAL"],
            resources={"metadata": {"path": folder}},
            shutdown_kernel="immediate",
        )
        done: set[str] = set()  # exercises whose check ran
        client.on_cell_executed = lambda cell, cell_index, execute_reply: done.update(
            _CHECK.findall(cell.source) if execute_reply["content"]["status"] == "ok" else ()
        )
        progress = Path(folder) / record.FILE
        trouble = _run(client, {**os.environ, record.PLACE: str(progress)})
        states = record.load(progress)
    return [_line(path, name, states.get(name), name in done, trouble) for name in names]


def _run(client, environment: dict[str, str]) -> str:
    """Execute cell after cell; "", or what ended it early."""
    from nbclient.exceptions import CellTimeoutError, DeadKernelError

    for name in ("traitlets", "asyncio"):  # nbclient's complaints: the sheet says it in a column
        logging.getLogger(name).setLevel(logging.CRITICAL + 1)
    slow = ""
    try:
        with client.setup_kernel(env=environment):
            for index, cell in enumerate(client.nb.cells):
                try:
                    client.execute_cell(cell, index)
                except CellTimeoutError:
                    slow = "stopped: a cell did not end"
                    if not _interrupted(client):
                        return slow
    except DeadKernelError:
        return "stopped: the kernel died"
    except Exception as error:
        return f"stopped: {type(error).__name__}"
    return slow


def _interrupted(client) -> bool:
    """Interrupt the cell that runs; whether the kernel answers again soon."""
    import nbformat
    from jupyter_core.utils import run_sync
    from nbclient.exceptions import CellTimeoutError

    run_sync(client.km.interrupt_kernel)()
    limit, client.timeout = client.timeout, 15
    try:
        client.execute_cell(nbformat.v4.new_code_cell("None"), 0)
    except CellTimeoutError:
        return False
    finally:
        client.timeout = limit
    return True


def _checked(notebook) -> list[str]:
    """The exercises of the course that the notebook checks, in order."""
    source = "\n".join(c.source for c in notebook.cells if c.cell_type == "code")
    return [name for name in dict.fromkeys(_CHECK.findall(source)) if name in EXERCISES]


def _line(path: Path, name: str, entry: dict | None, reached: bool, trouble: str) -> Line:
    if entry:
        return Line(str(path), name, entry["state"], entry.get("mistake") or "")
    if reached:
        return Line(str(path), name, "not attempted")
    return Line(str(path), name, "not reached", trouble or "its check gave no verdict")


def main(arguments: list[str] | None = None) -> int:
    """`python -m lecture_utils.check FILE …`: 0 if every file has exercises, 1 if not, 2 on bad input."""
    import argparse

    from tqdm import tqdm

    parser = argparse.ArgumentParser(
        prog="python -m lecture_utils.check",
        description="Run students' notebooks and write what the checkers say: a CSV with file, exercise, "
        "state, mistake. Files are executed, so run only what you would run yourself.",
    )
    parser.add_argument("paths", nargs="+", metavar="FILE.ipynb", help="notebooks, or folders of notebooks")
    parser.add_argument("-o", "--output", metavar="FILE.csv", help="where to write (default: the terminal)")
    parser.add_argument("--cell-timeout", type=float, default=60.0, metavar="SECONDS", help="default: 60")
    options = parser.parse_args(arguments)
    if not options.cell_timeout > 0:
        parser.error("--cell-timeout must be above 0")
    try:
        files = notebooks(options.paths)
        to_file = options.output and _opened(options.output)
        with to_file or nullcontext(sys.stdout) as out:
            return _write(out, tqdm(files, unit="notebook", file=sys.stderr), options.cell_timeout)
    except (ValueError, OSError) as error:
        parser.error(str(error))


def _opened(path: str) -> TextIO:
    # A file name that is not UTF-8 (from an old zip) is written with a backslash in it.
    return open(path, "w", newline="", encoding="utf-8", errors="backslashreplace")


def _write(out: TextIO, files: Iterable[Path], cell_timeout: float) -> int:
    writer = csv.writer(out)
    writer.writerow(COLUMNS)
    complete = True
    for file in files:
        lines = grade(file, cell_timeout=cell_timeout)
        complete = complete and all(line.exercise for line in lines)
        writer.writerows((line.file, line.exercise, line.state, line.mistake) for line in lines)
        out.flush()  # what is done is written, should the next one be the last
    return 0 if complete else 1
