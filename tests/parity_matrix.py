"""Proves every part on several versions of transformers, and writes tests/records/parity_matrix.md.

Usage: python tests/parity_matrix.py VERSION …
Each version is installed in build/transformers-VERSION, with what it needs, and put first on the path.
"""

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import torch

ROOT = Path(__file__).parents[1]


def install(version: str) -> Path:
    """The folder that holds this version of transformers."""
    folder = ROOT / "build" / f"transformers-{version}"
    if not folder.exists():
        half_done = folder.with_suffix(".new")
        pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check"]
        subprocess.run([*pip, "--target", half_done, f"transformers=={version}"], check=True)
        half_done.rename(folder)
    return folder


def prove(version: str) -> tuple[str, bool]:
    """A row of the table for this version, and whether every part is equal."""
    file = ROOT / "build" / f"parity-{version}.json"
    run = subprocess.run(
        [sys.executable, "-m", "lecture_utils.parity", "--json", file],
        env={**os.environ, "PYTHONPATH": str(install(version))},
        capture_output=True,
        text=True,
    )
    lines = run.stdout.splitlines()
    if not lines or f"transformers {version} " not in lines[0]:
        raise SystemExit(f"transformers {version} was not the one that ran:\n{run.stdout}{run.stderr}")
    print(f"transformers {version}: {lines[-1]}")
    rows = json.loads(file.read_text())
    fp32 = [row for row in rows if row["dtype"] == "float32"]
    values = max(row["value_error"] for row in fp32)
    gradients = max(row["gradient_error"] or 0 for row in fp32)
    equal = sum(row["passed"] for row in rows)
    verdict = "all equal" if run.returncode == 0 else "DIFFERENT"
    return (
        f"| {version} | {equal} of {len(rows)} | {values:.1e} | {gradients:.1e} | {verdict} |",
        not run.returncode,
    )


def main() -> int:
    """Prove each version named on the command line; 1 if a part differs on any."""
    results = [prove(version) for version in sys.argv[1:]]
    device = "CPU only: the rows of a GPU are absent, not passed"
    if torch.cuda.is_available():
        device = f"CPU and {torch.cuda.get_device_name()}"
    text = "\n".join(
        [
            "# Parity by version of transformers",
            "",
            "Written by `make parity-matrix`: the rows of `make parity` (values and gradients, in fp32,",
            "bf16 and fp16, on each device), run on each version of transformers.",
            "The errors are the largest over all parts, in fp32.",
            "",
            "| transformers | rows equal | error of values | error of gradients | verdict |",
            "|---|---|---|---|---|",
            *(row for row, _ in results),
            "",
            f"torch {torch.__version__.split('+')[0]} · {platform.machine()} · {device}",
            "",
        ]
    )
    (ROOT / "tests/records/parity_matrix.md").write_text(text)
    print(text)
    return 0 if all(passed for _, passed in results) else 1


if __name__ == "__main__":
    sys.exit(main())
