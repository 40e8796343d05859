"""README.md says what is there: lessons, minutes, pictures, commands, and an example that runs."""

import json
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_table_lists_every_lesson_with_its_title_and_minutes():
    rows = re.findall(r"\[(\d+ · [^\]]+)\]\(notebooks/(\w+)\.ipynb\) · (\d+) \+ (\d+) min", README)
    expected = []
    for path in sorted(ROOT.glob("notebooks/*.ipynb")):
        first = "".join(json.loads(path.read_text())["cells"][0]["source"])
        title = first.splitlines()[0].removeprefix("# ")
        minutes = re.search(r"(\d+) minutes, and (\d+) more for what is marked second reading", first)
        expected.append((title, path.stem, *minutes.groups()))
    assert rows == expected


def test_every_picture_and_link_exists_and_every_picture_has_a_text():
    pictures = re.findall(r'<img src="([^"]+)"[^>]* alt="([^"]*)"', README)
    assert [path for path, _ in pictures] == [
        f"images/{p.stem}.svg" for p in sorted(ROOT.glob("notebooks/*.ipynb"))
    ]
    assert all(text for _, text in pictures)
    for link in re.findall(r"\]\(([^)]+)\)", README):
        assert link.startswith("https://") or (ROOT / link).exists(), link


def test_every_make_target_that_is_named_exists():
    targets = set(re.findall(r"^([a-z-]+):.*##", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    assert set(re.findall(r"`?make ([a-z-]+)", README)) - {"help"} <= targets


def test_the_example_runs():
    (example,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    run = subprocess.run([sys.executable, "-c", example], capture_output=True, text=True, check=True)
    assert run.stdout.count("equal") >= 3


def test_the_verdict_that_is_shown_is_what_the_checker_says(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    from lecture_utils import check

    def rms_norm(x, weight, eps):
        return weight * x / (x.square().mean(-1, keepdim=True) + eps)

    check.rms_norm._hints_given.clear()
    verdict = check.rms_norm(lambda x, weight, eps: rms_norm(x.float(), weight, eps).to(x.dtype))
    assert str(verdict) in README
