"""The decks of `slides/`: form, notes, links and pictures; their code runs, and prints what they say."""

import json
import re
from contextlib import redirect_stdout
from io import StringIO

import pytest

from lecture_utils import decks
from lecture_utils.decks import FIELDS, ROOT, Deck
from lecture_utils.plots import style

DECKS = {deck.path.stem: deck for deck in decks.decks()}
LESSONS = [path.stem for path in sorted(ROOT.glob("notebooks/*.ipynb"))]
each_deck = pytest.mark.parametrize("deck", DECKS.values(), ids=DECKS)


def cells(stem):
    return json.loads((ROOT / "notebooks" / f"{stem}.ipynb").read_text())["cells"]


def headings(stem):
    """Every heading of a notebook, as it is written."""
    text = "\n".join("".join(cell["source"]) for cell in cells(stem) if cell["cell_type"] == "markdown")
    return re.findall(r"^#{1,3} (.+)$", text, flags=re.MULTILINE)


def fragment(heading):
    """What JupyterLab calls a heading in an address."""
    return heading.replace("`", "").replace(" ", "-")


def blocks(deck, language):
    """The code blocks of a deck, without the indentation of a list that they are in."""
    text = "\n\n".join(slide.text for slide in deck.slides)
    found = re.findall(rf"^( *)```{language}\n(.*?)^ *```", text, flags=re.DOTALL | re.MULTILINE)
    return [re.sub(rf"^{indent}", "", code, flags=re.MULTILINE) for indent, code in found]


def words(line):
    return " ".join(line.split())


def test_every_lesson_has_a_deck_of_its_name_and_title():
    assert list(DECKS) == LESSONS
    for stem, deck in DECKS.items():
        assert deck.title == headings(stem)[0]
        assert f"\nfooter: {deck.title}\n" in deck.path.read_text()


@each_deck
def test_ten_to_eighteen_slides_with_the_parts_of_a_lesson(deck):
    assert 10 <= len(deck.slides) <= 18
    text = deck.path.read_text()
    for part in ("## What happens?", "## Talk about it", "## Recap", "## Your turn", "assert_matches("):
        assert part in text, part


@each_deck
def test_every_slide_has_its_notes(deck):
    for slide in deck.slides:
        assert list(slide.notes) == list(FIELDS), slide.text[:60]
        assert all(slide.notes.values()), slide.text[:60]
        assert slide.notes["Show"] in headings(deck.path.stem), slide.notes["Show"]
        whole, inside = slide.minutes
        assert whole >= max(1, inside), slide.text[:60]


@each_deck
def test_deck_and_notebook_fill_a_lecture(deck):
    whole, inside = deck.minutes
    assert 45 <= whole <= 60 and inside >= 10


@each_deck
def test_links_open_a_heading_that_the_notebook_has(deck):
    text = deck.path.read_text()
    links = re.findall(r"\]\((\.\./notebooks/[^)]+)\)", text)
    assert len(links) >= len(deck.slides) - 1
    known = {
        f"../notebooks/{deck.path.stem}.ipynb#{fragment(heading)}" for heading in headings(deck.path.stem)
    }
    assert set(links) <= known
    for part in re.split(r"^---$", text, flags=re.MULTILINE)[3:]:
        show = re.search(r"^Show: (.+)$", part, flags=re.MULTILINE)[1]
        assert re.search(r'_header: "\[Notebook: .*?#(.*?)\)', part), show


@each_deck
def test_pictures_are_drawn_by_the_course_and_have_a_text(deck):
    pictures = re.findall(r"!\[(.*?)\]\((.*?)\)", deck.path.read_text(), flags=re.DOTALL)
    assert pictures
    for text, path in pictures:
        assert len(text) > 20 and re.fullmatch(r"\.\./images/\w+\.svg", path), path
        assert (deck.path.parent / path).exists(), path


def test_the_theme_has_the_colours_of_the_plots():
    theme = (decks.SLIDES / "course.css").read_text()
    for name, color in {"input": style.INPUT, "output": style.OUTPUT}.items():
        assert f"--{name}: {color.lower()};" in theme


def test_every_picture_is_used():
    pages = [ROOT / "README.md", *ROOT.glob("notebooks/*.ipynb"), *ROOT.glob("slides/*.md")]
    text = "".join(page.read_text() for page in pages)
    for picture in ROOT.glob("images/*"):
        assert f"images/{picture.name}" in text, picture.name


@each_deck
def test_code_runs_from_top_to_bottom_and_prints_what_the_slides_say(deck):
    sybil = pytest.importorskip("sybil")
    from sybil.parsers.markdown import PythonCodeBlockParser

    printed = StringIO()
    document = sybil.Sybil([PythonCodeBlockParser()]).parse(deck.path)
    with redirect_stdout(printed):
        examples = [example.evaluate() for example in document.examples()]
    assert len(examples) == len(blocks(deck, "python")) >= 3
    outputs = printed.getvalue() + "".join(
        "".join(output.get("text", []))
        for cell in cells(deck.path.stem)
        for output in cell.get("outputs", [])
    )
    known = {words(line) for line in outputs.splitlines()}
    for block in blocks(deck, "text"):
        for line in block.splitlines():
            assert words(line) in known, line


@each_deck
def test_the_table_of_the_proof_is_what_the_notebook_shows(deck):
    stored = [
        words("".join(output.get("data", {}).get("text/plain", []) or output.get("text", [])))
        for cell in cells(deck.path.stem)
        for output in cell.get("outputs", [])
    ]
    rows = re.findall(r"^\| (cpu \|.*) \|$", deck.path.read_text(), flags=re.MULTILINE)
    assert len(rows) >= 3
    for row in rows:
        cell = r" (?:\S+ )*?".join(re.escape(words(each)) for each in row.split("|"))
        assert any(re.search(cell, output) for output in stored), row


@each_deck
def test_code_is_at_most_72_columns_wide(deck):
    for language in ("python", "text"):
        for block in blocks(deck, language):
            assert max(map(len, block.splitlines())) <= 72, max(block.splitlines(), key=len)


def test_a_deck_is_read_with_all_its_notes(tmp_path):
    path = tmp_path / "01_a.md"
    notes = "<!--\nMinutes: {}\nShow: Build\nSay: One.\nTwo.\nAsk: Why?\nWrong answer: So.\n-->\n"
    first, second = (notes.format(minutes) for minutes in ("3 (2 in the notebook)", 4))
    path.write_text(f"---\nmarp: true\n---\n# 1 · A\n{first}\n---\n## B\n{second}")
    deck = Deck.read(path)
    assert deck.title == "1 · A" and deck.minutes == (7, 2)
    assert deck.slides[0].text == "# 1 · A" and deck.slides[0].notes["Say"] == "One. Two."


def test_a_missing_node_is_said_in_one_sentence(monkeypatch, capsys):
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("sys.argv", ["decks", "build"])
    assert decks.main() == 1
    said = capsys.readouterr().err
    assert "Node" in said and "nodejs.org" in said and len(said.strip().splitlines()) == 1
