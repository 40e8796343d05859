"""`python -m lecture_utils.parity`: every part against Hugging Face, as a table; non-zero if any differs."""

import argparse
import json
import platform
import sys

import torch

from .compare import ParityError
from .tolerances import TOLERANCES


def main() -> int:
    """Run every proof; print the tables and, with --json, write the rows to a file."""
    parser = argparse.ArgumentParser(prog="python -m lecture_utils.parity", description=__doc__)
    parser.add_argument("--json", metavar="FILE", help="write the rows to FILE as well")
    arguments = parser.parse_args()

    from . import reference  # here, not above: --help needs no transformers
    from .parts import proofs

    device = torch.cuda.get_device_name() if torch.cuda.is_available() else platform.machine()
    print(f"torch {torch.__version__} · transformers {reference.version} · {device}\n")
    rows, failed, note = [], 0, ""
    for proof in proofs():
        try:
            table = proof.run()
            note = table.note
            rows += table.as_dicts()
            print(table.text, end="\n\n")
        except ParityError as error:
            failed += 1
            rows += error.table.as_dicts()
            print(error, end="\n\n")
    print("What is allowed, and why:")
    for (kind, dtype), allowed in TOLERANCES.items():
        name = str(dtype).removeprefix("torch.")
        print(f"  {kind:12} {name:9} {allowed.values:7.1e} {allowed.gradients:7.1e}  {allowed.reason}")
    if note:
        print(note)
    if arguments.json:
        with open(arguments.json, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    print(f"{len(rows)} rows equal" if not failed else f"{failed} parts differ")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
