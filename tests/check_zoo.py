"""The zoo: every right form and every mistake, on many random shapes. `make check-zoo` prints the table.

For each exercise: right forms accepted, mistakes caught, mistakes named as themselves, and pairs of
two mistakes caught and named as one of the two.
"""

import argparse
import functools
import importlib
import os
import pkgutil
import sys
import tempfile
from collections import Counter
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import right_forms
import torch
from tqdm import tqdm

from lecture_utils.check import EXERCISES
from lecture_utils.check import exercise as machinery
from lecture_utils.check.exercise import Answer

RECORD = Path(__file__).parent / "records" / "check_zoo.md"
RECORD_HEAD = """# The zoo of the checkers

Printed and written by `make check-zoo`, when it tried all exercises on 200 seeds. *Right forms* are right
answers as people write them. *Mistakes* are the catalogue; ways to make the same one take turns. *Pairs* are
two mistakes at once, on every fourth seed; *one named*: the verdict names one of the two.
"""
FORMS, PAIRS = {}, {}
for module in sorted(m.name for m in pkgutil.iter_modules(right_forms.__path__)):
    loaded = importlib.import_module(f"right_forms.{module}")
    FORMS |= loaded.FORMS
    PAIRS |= loaded.PAIRS


def visit(exercise, seed, every=True):
    """Count, for one seed: what was tried and what came out; and a line on each surprise.

    Without `every`, one implementation of each mistake, in turn, and the pairs on each fourth seed.
    """
    count, surprises = Counter(), []
    forms = {"the solution": exercise.solution_function} | FORMS.get(exercise.name, {})
    if not isinstance(exercise, Answer):
        for name, form in forms.items():
            verdict = exercise(form, seed=seed)
            count["forms"] += 1
            count["accepted"] += verdict.passed
            if seed == 0:
                count[f"forms of {exercise.name}"] += 1
            if not verdict.passed:
                surprises.append(
                    f"{exercise.name}, seed {seed}: the right form {name!r} is rejected\n{verdict}"
                )
    for mistake in exercise.mistakes:
        ways = mistake.functions if every else [mistake.functions[seed % len(mistake.functions)]]
        for function in ways:
            if isinstance(exercise, Answer):
                given = function()
                verdict = exercise(*(given if isinstance(given, tuple) else (given,)), seed=seed)
            else:
                verdict = exercise(function, seed=seed)
            if mistake.accepted:
                count["forms"] += 1
                count["accepted"] += verdict.passed
                continue
            if getattr(exercise, "_given", None) is function:
                continue  # as it is shipped: not attempted
            count["mistakes"] += 1
            count["caught"] += verdict.attempted and not verdict.passed
            count["named"] += verdict.mistake == mistake.id
            if verdict.mistake != mistake.id:
                surprises.append(
                    f"{exercise.name}, seed {seed}: {mistake.id} is named {verdict.mistake}\n{verdict}"
                )
    pairs = PAIRS.get(exercise.name, {}) if every or seed % 4 == 0 else {}
    for pair, function in pairs.items():
        verdict = exercise(function, seed=seed)
        count["pairs"] += 1
        count["pairs caught"] += not verdict.passed
        count["pairs named"] += verdict.mistake in pair
        if verdict.passed:
            surprises.append(f"{exercise.name}, seed {seed}: {' and '.join(pair)} pass together")
    return count, surprises


def share(part, whole):
    """In per cent, rounded down: 100.0% is all of them."""
    return f"{1000 * part // whole / 10:.1f}%" if whole else "–"


def visit_all(name, seeds):
    """The sum over some seeds; each process does some of the work."""
    torch.set_num_threads(1)
    # These functions are ours and need no watching: no thread of its own for every call.
    machinery.call = functools.partial(machinery.call, trusted=True)
    os.chdir(tempfile.gettempdir())  # not the learner's record of progress
    count, surprises = Counter(), []
    for seed in seeds:
        found, odd = visit(EXERCISES[name], seed, every=False)
        count += found
        surprises += odd
    return count, surprises


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("exercises", nargs="*", metavar="EXERCISE", help="default: all of them")
    parser.add_argument(
        "--seeds", type=int, default=200, help="random sizes and numbers for each (default: 200)"
    )
    parser.add_argument("--surprises", type=int, default=5, help="how many to print")
    options = parser.parse_args()
    chosen = options.exercises or list(EXERCISES)
    if unknown := set(chosen) - EXERCISES.keys():
        parser.error(f"there is no exercise {', '.join(sorted(unknown))}")
    counts, surprises = {name: Counter() for name in chosen}, []
    bar = tqdm(total=len(chosen) * options.seeds, unit="seed", disable=not sys.stderr.isatty())
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        blocks = [range(i, min(i + 10, options.seeds)) for i in range(0, options.seeds, 10)]
        tasks = {pool.submit(visit_all, name, block): (name, block) for name in chosen for block in blocks}
        for task in as_completed(tasks):
            name, block = tasks[task]
            found, odd = task.result()
            counts[name] += found
            surprises += odd
            bar.update(len(block))
    bar.close()
    total = sum(counts.values(), Counter())
    lines = [f"{options.seeds} seeds each: other sizes and other numbers every time", ""]
    lines.append(
        f"{'exercise':28}{'right forms':>12}{'accepted':>10}{'mistakes':>10}{'caught':>9}{'named':>9}"
        f"{'pairs':>8}{'caught':>9}{'one named':>11}"
    )
    for name, c in [*counts.items(), ("all", total)]:
        chosen_here = chosen if name == "all" else [name]
        pairs = sum(len(PAIRS.get(each, ())) for each in chosen_here)
        forms = sum(c[f"forms of {each}"] for each in chosen_here)
        ids = sum(not m.accepted for each in chosen_here for m in EXERCISES[each].mistakes)
        lines.append(
            f"{name:28}{forms:12}{share(c['accepted'], c['forms']):>10}{ids:10}"
            f"{share(c['caught'], c['mistakes']):>9}{share(c['named'], c['mistakes']):>9}{pairs:8}"
            f"{share(c['pairs caught'], c['pairs']):>9}{share(c['pairs named'], c['pairs']):>11}"
        )
    print("\n".join(lines))
    for line in surprises[: options.surprises]:
        print(f"\n{line}")
    if not options.exercises and options.seeds >= 200:
        RECORD.write_text(f"{RECORD_HEAD}\n```\n" + "\n".join(lines) + "\n```\n", encoding="utf-8")
    good = total["accepted"] == total["forms"] and total["caught"] == total["mistakes"]
    good = good and total["pairs caught"] == total["pairs"] and total["named"] >= 0.95 * total["mistakes"]
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
