"""The zoo: every right form and every mistake, on many random shapes. `make check-zoo` prints the table.

For each exercise: right forms accepted, mistakes caught, mistakes named as themselves, and pairs of
two mistakes caught and named as one of the two.
"""

import argparse
import importlib
import pkgutil
import sys
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import right_forms
from tqdm import tqdm

from lecture_utils.check import EXERCISES
from lecture_utils.check.exercise import Answer

FORMS, PAIRS = {}, {}
for module in sorted(m.name for m in pkgutil.iter_modules(right_forms.__path__)):
    loaded = importlib.import_module(f"right_forms.{module}")
    FORMS |= loaded.FORMS
    PAIRS |= loaded.PAIRS


def visit(exercise, seed):
    """Count, for one seed: what was tried and what came out; and a line on each surprise."""
    count, surprises = Counter(), []
    forms = {"the solution": exercise.solution_function} | FORMS.get(exercise.name, {})
    if not isinstance(exercise, Answer):
        for name, form in forms.items():
            verdict = exercise(form, seed=seed)
            count["forms"] += 1
            count["accepted"] += verdict.passed
            if not verdict.passed:
                surprises.append(f"{exercise.name}, seed {seed}: the right form {name!r} is rejected\n{verdict}")
    for mistake in exercise.mistakes:
        for function in mistake.functions:
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
                surprises.append(f"{exercise.name}, seed {seed}: {mistake.id} is named {verdict.mistake}\n{verdict}")
    for pair, function in PAIRS.get(exercise.name, {}).items():
        verdict = exercise(function, seed=seed)
        count["pairs"] += 1
        count["pairs caught"] += not verdict.passed
        count["pairs named"] += verdict.mistake in pair
        if verdict.passed:
            surprises.append(f"{exercise.name}, seed {seed}: {' and '.join(pair)} pass together")
    return count, surprises


def share(part, whole):
    return f"{part / whole:7.1%}" if whole else f"{'–':>7}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("exercises", nargs="*", help="names (default: all)")
    parser.add_argument("--seeds", type=int, default=200, help="random shapes and numbers for each (default: 200)")
    parser.add_argument("--surprises", type=int, default=5, help="how many to print")
    options = parser.parse_args()
    chosen = [EXERCISES[name] for name in options.exercises] or list(EXERCISES.values())
    total, surprises, rows = Counter(), [], []
    bar = tqdm(total=len(chosen) * options.seeds, disable=not sys.stderr.isatty())
    for exercise in chosen:
        count = Counter(ids=len([m for m in exercise.mistakes if not m.accepted]))
        for seed in range(options.seeds):
            found, odd = visit(exercise, seed)
            count += found
            surprises += odd
            bar.update()
        rows.append((exercise.name, count))
        total += count
    bar.close()
    print(f"{options.seeds} seeds: other sizes and other numbers each time")
    print(f"{'exercise':22}{'forms':>7}{'accepted':>10}{'mistakes':>10}{'caught':>9}{'named':>9}"
          f"{'pairs':>8}{'caught':>9}{'one named':>11}")  # fmt: skip
    for name, c in [*rows, ("all", total)]:
        forms, pairs = c["forms"] // options.seeds, c["pairs"] // options.seeds
        print(f"{name:22}{forms:7}{share(c['accepted'], c['forms']):>10}{c['ids']:10}"
              f"{share(c['caught'], c['mistakes']):>9}{share(c['named'], c['mistakes']):>9}{pairs:8}"
              f"{share(c['pairs caught'], c['pairs']):>9}{share(c['pairs named'], c['pairs']):>11}")  # fmt: skip
    for line in surprises[: options.surprises]:
        print(f"\n{line}")
    good = total["accepted"] == total["forms"] and total["caught"] == total["mistakes"]
    good = good and total["pairs caught"] == total["pairs"] and total["named"] >= 0.95 * total["mistakes"]
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
