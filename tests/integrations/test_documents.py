"""Figures that documents ask for: what is drawn, from which files, and when it is drawn again."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from xml.etree import ElementTree

import pytest

from stepper.errors import UsageError
from stepper.integrations.documents import DocumentFigure, FigureFailed, figure_of_text, inline_svg, page_figure

SAMPLES = Path(__file__).parents[2] / "sample_models"
ROLLED = {"view": ("rolled",)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of documents with a model below it."""
    shutil.copytree(SAMPLES / "reverse", tmp_path / "reverse", ignore=shutil.ignore_patterns("*.svg", "steps"))
    return tmp_path


def test_lines_are_a_model_its_options_and_a_caption(folder: Path) -> None:
    text = "a.xml\ninput: x=rand:0\n\n  input: y=ones\ncarried\nonly: ^Add: b\ncaption: What <it> does"
    figure, caption = figure_of_text(text, folder)
    assert figure.model == "a.xml"
    assert figure.options == {"input": ["x=rand:0", "y=ones"], "carried": [], "only": ["^Add: b"]}
    assert caption == figure.description == "What <it> does"
    assert figure_of_text("a.xml\nalt: For ears\ncaption: For eyes", folder)[0].description == "For ears"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "needs a model"),
        ("--help", "needs a model"),
        ("a.xml\n-o: x.svg", "no option"),
        ("a.xml\noutput: /tmp/x.svg", "no option of a figure in a document"),
        ("a.xml\nframes: there", "no option of a figure in a document"),
        ("a.xml\nView: rolled", "no option"),
    ],
)
def test_a_document_writes_no_files_of_its_own_choice(folder: Path, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        figure_of_text(text, folder)


def test_a_figure_is_drawn_once_until_something_that_it_is_made_of_changes(folder: Path) -> None:
    options = {"inputs": ("reverse/inputs.npz",), "values": ("full",)}
    figure, cache = DocumentFigure("reverse/model.xml", options, folder), folder / "cache"
    first = figure.drawn("svg", cache)
    (kept,) = cache.iterdir()
    kept.write_bytes(b"kept")
    assert figure.drawn("svg", cache) == b"kept", "nothing changed"
    model = folder / "reverse" / "model.xml"
    model.write_text(model.read_text().replace('name="discounted"', 'name="weighted_down"'))
    changed = figure.drawn("svg", cache)
    assert b"weighted_down" in changed and b"weighted_down" not in first
    keys = {figure.key("svg")}
    for name in ("inputs.npz", "model.bin"):
        path = folder / "reverse" / name
        path.write_bytes(path.read_bytes() + b"\0")
        keys.add(figure.key("svg"))
    other = DocumentFigure("reverse/model.xml", {**options, "theme": ("dark",)}, folder)
    assert len(keys | {other.key("svg"), figure.key("pdf")}) == 5


def test_all_files_are_known_that_a_figure_is_drawn_from(folder: Path) -> None:
    options = {"inputs": ("reverse/inputs.npz",), "diff": ("reverse",), "only": ("reverse/none",), "hide": ("\0",)}
    found = {path.relative_to(folder).as_posix() for path in DocumentFigure("reverse/model.xml", options, folder).files}
    assert {"reverse/model.xml", "reverse/model.bin", "reverse/inputs.npz"} <= found
    given = DocumentFigure("reverse/model.xml", {"input": ("rewards=reverse/inputs.npz",)}, folder).files
    assert folder / "reverse" / "inputs.npz" in given


def test_what_export_says_of_a_mistake_is_the_message(folder: Path) -> None:
    for options, said in (({"view": ("rolld",)}, "--view: 'rolld' is none of"), ({"foo": ("x",)}, "no option --foo")):
        with pytest.raises(FigureFailed, match=re.escape(said)) as caught:
            DocumentFigure("reverse/model.xml", options, folder).drawn("svg", folder / "cache")
        assert "Traceback" not in str(caught.value)
    with pytest.raises(FigureFailed, match=r"nothing\.xml: cannot be read"):
        DocumentFigure("nothing.xml", {}, folder).drawn("svg", folder / "cache")
    assert not (folder / "cache").exists()


def test_modules_of_the_folder_are_not_loaded(folder: Path) -> None:
    (folder / "numpy.py").write_text("raise SystemExit(99)")
    assert DocumentFigure("reverse/model.xml", ROLLED, folder).drawn("svg", folder / "cache").startswith(b"<svg")


def test_the_same_figure_twice_on_a_page_has_its_own_identifiers(folder: Path) -> None:
    content = DocumentFigure("reverse/model.xml", ROLLED, folder).drawn("svg", folder / "cache")
    shown: set[str] = set()
    page = f"<body>{''.join(page_figure(inline_svg(content, shown), 'a < b') for _ in range(3))}</body>"
    elements = list(ElementTree.fromstring(page).iter())
    identifiers = [one.get("id") for one in elements if one.get("id")]
    assert len(identifiers) > 30 and len(set(identifiers)) == len(identifiers)
    for svg in (one for one in elements if one.tag.endswith("svg")):
        names = (svg.get("aria-labelledby") or "").split()
        own = {one.get("id") for one in svg.iter()}
        assert len(names) == 2 and set(names) <= own
    assert [one.text for one in elements if one.tag == "figcaption"] == ["a < b"] * 3
