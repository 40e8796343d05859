"""How quickly explorers answer, beside the same figures through `interact`: `make bench-explorers`.

In a kernel: the time of a move, and the memory that 1,000 moves take. In a browser: from a key to the
picture that it brings, and, after the handle was dragged for three seconds, how long the picture still moves.
"""

import argparse
import gc
import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from explorers import EXPLORERS, ends, options

RECORD = Path(__file__).parent / "records" / "explorers.md"
RECORD_HEAD = """# How quickly explorers answer

Printed and written by `make bench-explorers`: medians and 95th percentiles of one run,
in milliseconds. What counts is the ratio to the same figure through ipywidgets' `interact`, which took
turns with the explorer, five moves each. *Kernel*: from a new value to the messages sent. *Browser*: from a
key to its picture in JupyterLab. *Drag*: pictures in a drag of three seconds; how long the picture still
moved after it (lag); frames of a film of a second drag in which no picture was there (blank). *Memory*:
growth of the kernel in 1,000 moves.
"""
# Medians, in milliseconds, and how many times faster than `interact`.
KERNEL, KERNEL_RATIO, BROWSER, BROWSER_RATIO = 20, 4, 60, 2
LAG, MEMORY = 300, 20  # milliseconds, megabytes


def by_interact(kind):
    """The same controls and figure in the usual way: a new figure for each move, in an Output widget."""
    import ipywidgets
    import matplotlib.pyplot as plt

    from lecture_utils.plots import style

    style.use()
    still = kind()
    for control in still.controls.values():
        control.unobserve(still._answer, "value")

    def show(**values):
        figure = plt.figure(figsize=kind.size)
        still.draw(*figure.subplots(**kind.panels, squeeze=False).flat)
        still.update(**values)
        plt.show()

    return ipywidgets.interactive(show, **still.controls), still.controls


def moves(explorer, count):
    """Names and values, one control after the other, each value another one than before."""
    chance, now = random.Random(0), explorer.values
    for turn in range(count):
        name = list(explorer.controls)[turn % len(explorer.controls)]
        control = explorer.controls[name]
        if isinstance(now[name], bool):
            value = not now[name]
        elif hasattr(control, "options"):
            value = chance.choice([value for value in options(control) if value != now[name]])
        elif isinstance(now[name], str):
            value = ends(control)[not now[name]]
        else:
            low, high = ends(control)
            value = type(now[name])(chance.uniform(low, high))
            value = high if value == now[name] else value
        now[name] = value
        yield name, value


def in_kernel(name, turns=3, many=1000):
    """Runs inside a kernel: times in milliseconds of explorer and `interact`, growth in megabytes."""
    import psutil

    kind = EXPLORERS[name]
    explorer, (twin, controls) = kind(), by_interact(kind)
    twin.update()
    ours, theirs = [], []
    steps = list(moves(explorer, 6 * turns))
    for first in range(0, len(steps), 6):
        for group, times in ((explorer.controls, ours), (controls, theirs)):
            gc.collect()  # each clears up its own figures, outside the time that is taken
            for number, (control, value) in enumerate(steps[first : first + 6]):
                start = time.perf_counter()
                group[control].value = value
                if number:  # the first move of a turn warms up
                    times.append(1000 * (time.perf_counter() - start))
    before = psutil.Process().memory_info().rss
    for control, value in moves(explorer, many):
        explorer.controls[control].value = value
        print(end="", flush=True)  # until the pictures are sent: none waits in a queue
    grown = (psutil.Process().memory_info().rss - before) / 1e6
    return {"ours": ours, "theirs": theirs, "grown": grown}


def kernel_times(names):
    """`in_kernel` for every name, in one fresh kernel."""
    from jupyter_client.manager import start_new_kernel

    manager, client = start_new_kernel(kernel_name="python3")
    try:
        for name in names:
            printed = []
            code = (
                f"import sys, json; sys.path.insert(0, {str(Path(__file__).parent)!r})\n%matplotlib inline\n"
                f"import bench_explorers\nprint('RESULT', json.dumps(bench_explorers.in_kernel({name!r})))"
            )

            def keep(message, printed=printed):
                if message["msg_type"] in ("stream", "error"):
                    printed.append(message["content"].get("text") or str(message["content"]))

            client.execute_interactive(code, output_hook=keep, timeout=600)
            text = "".join(printed)
            assert "RESULT " in text, text[-2000:]
            yield name, json.loads(text.partition("RESULT ")[2].splitlines()[0])
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


PRESSES = """async (turns) => {
    // The first output with a slider is the explorer's, the second that of `interact`.
    const outputs = [...document.querySelectorAll('.jp-Cell-outputArea')];
    const areas = outputs.filter((area) => area.querySelector('.noUi-handle'));
    const wait = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
    const times = {ours: [], theirs: []};
    const press = (area, key) => new Promise((resolve, reject) => {
        const start = performance.now();
        const loaded = (event) => {
            if (event.target.tagName !== 'IMG') return;
            area.removeEventListener('load', loaded, true);
            resolve(performance.now() - start);
        };
        area.addEventListener('load', loaded, true);
        setTimeout(() => reject(new Error('no picture within five seconds')), 5000);
        area.querySelector('.noUi-handle').dispatchEvent(
            new KeyboardEvent('keydown', {key, bubbles: true, cancelable: true}));
    });
    const room = (handle) => 2 * handle.getAttribute('aria-valuenow')
        < +handle.getAttribute('aria-valuemin') + +handle.getAttribute('aria-valuemax');
    for (let turn = 0; turn < turns; turn++)
        for (const [number, name] of [[0, 'ours'], [1, 'theirs']])
            for (let move = 0; move < 6; move++) {
                const handle = areas[number].querySelector('.noUi-handle');
                handle.focus();
                const time = await press(areas[number], room(handle) ? 'ArrowRight' : 'ArrowLeft');
                if (move > 0) times[name].push(time);  // the first of a turn warms up
                await wait(30);
            }
    return times;
}"""


def browser_times(names, turns):
    """Key to picture for each name and its twin, and what a drag of three seconds shows, in JupyterLab."""
    from browser import Notebook, browser, jupyterlab

    with tempfile.TemporaryDirectory() as folder, jupyterlab(Path(folder)) as address, browser() as chrome:
        for name in names:
            lesson, kind = name.split(".")
            cells = [
                f"from lecture_utils.explore import {lesson} as explore\nexplore.{kind}()",
                f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n%matplotlib inline\n"
                f"import bench_explorers\nbench_explorers.by_interact(explore.{kind})[0]",
            ]
            notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
            notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
            nbformat.write(notebook, Path(folder) / "course" / "notebooks" / f"{name}.ipynb")
            page = Notebook(chrome, address, f"{name}.ipynb")
            assert page.run_all() == []
            times = page.page.evaluate(PRESSES, turns)
            (explorer,) = page.explorers()
            yield name, times | page.drag_for(explorer) | page.film(explorer)
            page.close()


def middle(times):
    """Median and 95th percentile."""
    return statistics.median(times), sorted(times)[round(0.95 * (len(times) - 1))]


def main() -> int:
    parser = argparse.ArgumentParser(prog="make bench-explorers", description=__doc__)
    parser.add_argument("explorers", nargs="*", help="lesson.Name, or a part of it (all)")
    asked = parser.parse_args().explorers
    chosen = [name for name in EXPLORERS if any(part in name for part in asked or [""])]
    if not chosen:
        parser.error(f"no explorer is called that; there are {', '.join(EXPLORERS)}")
    lines = [
        f"{'':36}{'kernel':^26}{'browser':^26}{'drag':^20}{'memory':>8}",
        f"{'explorer':36}{'median':>8}{'p95':>7}{'ratio':>10} {'median':>8}{'p95':>7}{'ratio':>10}"
        f"{'pictures':>10}{'lag':>5}{'blank':>6}{'MB':>7}",
    ]
    print("\n".join(lines))
    missed = []
    for (name, kernel), (_, page) in zip(kernel_times(chosen), browser_times(chosen, 3), strict=True):
        (k, k95), (b, b95) = middle(kernel["ours"]), middle(page["ours"])
        k_ratio, b_ratio = (statistics.median(each["theirs"]) / m for each, m in ((kernel, k), (page, b)))
        kept = {
            "kernel": k <= KERNEL,
            "kernel ratio": k_ratio >= KERNEL_RATIO,
            "browser": b <= BROWSER,
            "browser ratio": b_ratio >= BROWSER_RATIO,
            "lag": page["lag"] <= LAG,
            "flicker": page["frames"] > 10 and page["blank"] == 0,
            "memory": kernel["grown"] < MEMORY,
        }
        missed += [f"{name}: {what}" for what, good in kept.items() if not good]
        lines.append(
            f"{name:36}{k:8.1f}{k95:7.1f}{k_ratio:9.1f}× {b:8.1f}{b95:7.1f}{b_ratio:9.1f}×"
            f"{page['pictures']:10}{page['lag']:5.0f}{page['blank']:6}"
            f"{kernel['grown']:7.1f}"
        )
        print(lines[-1], flush=True)
        if not asked:  # row by row, so that a run that is cut short leaves what it measured
            rest = len(chosen) - len(lines) + 2
            cut = [f"(and {rest} not measured in this run)"] if rest else []
            table = "\n".join([*lines, *cut])
            RECORD.write_text(f"{RECORD_HEAD}\n```\n{table}\n```\n", encoding="utf-8")
    print("Missed: " + "; ".join(missed) if missed else "Every explorer keeps what is promised.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
