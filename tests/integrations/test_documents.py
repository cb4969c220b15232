"""Figures that documents ask for: what is drawn, from which files, and when it is drawn again."""

from __future__ import annotations

import os
import re
import shutil
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

from stepper.errors import StepperError, UsageError
from stepper.integrations import documents
from stepper.integrations.documents import (
    DocumentFigure,
    DocumentKind,
    FigureCache,
    FigureFailed,
    InlineFigures,
    asked,
)
from stepper.integrations.mkdocs import read_fence

SAMPLES = Path(__file__).parents[2] / "sample_models"
MODEL = "reverse/model.xml"
RUN = {"inputs": "reverse/inputs.npz"}
SCREEN, PRINT, PICTURE = DocumentKind.SCREEN, DocumentKind.PRINT, DocumentKind.PICTURE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder of documents with a model below it."""
    shutil.copytree(SAMPLES / "reverse", tmp_path / "reverse", ignore=shutil.ignore_patterns("*.svg", "steps"))
    return tmp_path


def wanted(folder: Path, options: Mapping[str, str], model: str = MODEL) -> DocumentFigure:
    return asked(model, options, folder, folder)


def test_lines_are_a_model_and_its_options() -> None:
    text = "a.xml\ninput: x=rand:0\n\n  input: y=ones\ncarried\n:only: ^Add: b\ntitle:\ncaption: What <it> does"
    model, options = read_fence(text)
    assert model == "a.xml"
    assert options == {
        "input": "x=rand:0\ny=ones",
        "carried": "",
        "only": "^Add: b",
        "title": "",
        "caption": "What <it> does",
    }


def test_the_options_are_those_of_export_and_what_the_document_has_room_for(folder: Path) -> None:
    options = {**RUN, "iters": "0:2", "carried": "", "hide": "a\nb", "alt": "For  ears", "caption": "For eyes"}
    figure = wanted(folder, options)
    own = ("--inputs=reverse/inputs.npz", "--iters=0:2", "--carried", "--hide=a", "--hide=b")
    usual = (MODEL, "--quiet", "--caption=For ears", *own)
    assert figure.caption == "For eyes"
    assert figure.words(SCREEN) == (*usual, "--theme=page", "--preset=docs")
    assert figure.words(PRINT) == (*usual, "--theme=print", "--preset=paper", "--width=160mm")
    assert figure.words(PICTURE) == (*usual, "--theme=print", "--preset=docs", "--scale=2")
    narrow = wanted(folder, {"width": "400", "theme": "light"}).words(PRINT)
    assert narrow == (MODEL, "--quiet", "--width=400", "--theme=light", "--preset=paper")
    slide = wanted(folder, {**RUN, "preset": "slide"}).words(PRINT)
    assert slide[3:] == ("--preset=slide", "--theme=print")
    playing = wanted(folder, {**RUN, "animate": "", "pace": "2"})
    assert {"--animate", "--pace=2"} <= {*playing.words(SCREEN)} and "--animate" not in playing.words(PRINT)


@pytest.mark.parametrize(
    ("model", "options", "said"),
    [
        ("", {}, "needs a model"),
        ("--help", {}, "needs a model"),
        (MODEL, {"output": "/tmp/x.svg"}, "'output' is none of"),
        (MODEL, {"frames": "there"}, "--frames is for the command line"),
        (MODEL, {"extension": "notes.txt"}, "--extension is for the command line"),
        (MODEL, {"device": "CPU"}, "--device is for the command line"),
        (MODEL, {"fra": "there"}, "'fra' is none of"),  # argparse takes the beginning of an option for it
        (MODEL, {"chec": "x.svg"}, "'chec' is none of"),
        (MODEL, {"vew": "rolled"}, "near is view"),
        (MODEL, {"view": "rolld"}, "--view: 'rolld' is none of"),
        (MODEL, {"view": ""}, "view needs a value"),
        (MODEL, {"carried": "very"}, "carried = 'very' is not a value of --carried"),
        ("\0.xml", {}, "null"),
        ("a" * 300 + ".xml", {"inputs": "b" * 300}, "name"),
    ],
)
def test_a_wrong_word_is_one_sentence_and_a_document_writes_no_files_of_its_own_choice(
    folder: Path, model: str, options: Mapping[str, str], said: str
) -> None:
    with pytest.raises(StepperError, match=said) as caught:
        wanted(folder, options, model).drawn(SCREEN, FigureCache(folder / "cache"))
    assert "Traceback" not in str(caught.value)
    assert {path.name for path in folder.iterdir()} <= {"reverse", "cache"}
    with pytest.raises(UsageError, match="is no option; write one in each line"):
        read_fence("a.xml\n-o: x.svg")


def test_a_figure_is_drawn_once_until_something_that_it_is_made_of_changes(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cache = FigureCache(folder / "cache")
    figure = wanted(folder, {**RUN, "values": "full"})
    first = figure.drawn(SCREEN, cache)
    text = first.read_bytes()
    first.write_bytes(b"kept")
    assert figure.drawn(SCREEN, cache).read_bytes() == b"kept", "nothing changed"
    model = folder / MODEL
    model.write_text(model.read_text().replace('name="discounted"', 'name="weighted_down"'))
    changed = figure.drawn(SCREEN, cache).read_bytes()
    assert b"weighted_down" in changed and b"weighted_down" not in text

    names: list[str] = []
    monkeypatch.setattr(cache, "get", lambda name, _make: names.append(name) or cache.folder)
    figure.drawn(SCREEN, cache)
    for name in ("inputs.npz", "model.bin"):
        path = folder / "reverse" / name
        path.write_bytes(path.read_bytes() + b"\0")
        figure.drawn(SCREEN, cache)
    figure.drawn(PRINT, cache)
    wanted(folder, {**RUN, "values": "full", "theme": "dark"}).drawn(SCREEN, cache)
    monkeypatch.setattr(documents, "__version__", "another")
    figure.drawn(SCREEN, cache)
    assert len(set(names)) == 6


def test_the_same_model_in_another_place_is_the_same_figure(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    shutil.copytree(folder / "reverse", elsewhere / "reverse")
    cache = FigureCache(folder / "cache")
    assert wanted(folder, RUN).drawn(SCREEN, cache) == wanted(elsewhere, RUN).drawn(SCREEN, cache)


def test_what_no_build_asks_for_is_forgotten_in_time(folder: Path) -> None:
    cache = FigureCache(folder / "cache")
    old, used = (cache.get(f"{name}.svg", lambda path: path.write_text("x") and None) for name in ("old", "used"))
    long_ago = time.time() - 40 * 24 * 3600
    for path in (old, used):
        os.utime(path, (long_ago, long_ago))
    cache.get("used.svg", lambda _path: pytest.fail("it is there"))
    cache.get("new.svg", lambda path: path.write_text("x") and None)
    assert {path.name for path in cache.folder.iterdir()} == {"used.svg", "new.svg", ".gitignore"}


def test_all_files_are_known_that_a_figure_is_drawn_from(folder: Path) -> None:
    def names(options: Mapping[str, str], model: str = MODEL) -> set[str]:
        return {path.relative_to(folder).as_posix() for path in wanted(folder, options, model).files()}

    model = {"reverse/model.xml", "reverse/model.bin"}
    assert names({}) == model
    assert names(RUN) == names({"input": "rewards=reverse/inputs.npz:rewards"}) == {*model, "reverse/inputs.npz"}
    assert names({**RUN, "diff": "other.sqlite"}) == {*model, "reverse/inputs.npz", "other.sqlite"}
    assert names({"calls": "reverse/*.npz"}) == {*model, "reverse/inputs.npz", "reverse/expected.npz"}
    inner = folder / "pages"
    inner.mkdir()
    figure = asked("/reverse/model.xml", {"inputs": "/reverse/inputs.npz", "only": "/reverse"}, inner, folder)
    assert figure.model == "../reverse/model.xml"
    assert figure.words(SCREEN)[2:4] == ("--inputs=../reverse/inputs.npz", "--only=/reverse"), "a pattern is no path"


def test_what_export_says_of_a_mistake_is_the_message(folder: Path) -> None:
    with pytest.raises(FigureFailed, match=r"nothing\.xml: cannot be read"):
        wanted(folder, {}, "nothing.xml").drawn(SCREEN, FigureCache(folder / "cache"))
    with pytest.raises(FigureFailed, match="there is nothing called 'Softmax'"):
        wanted(folder, {"around": "Softmax"}).drawn(SCREEN, FigureCache(folder / "cache"))
    assert [path.name for path in (folder / "cache").iterdir()] == [".gitignore"]
    (folder / "file").write_text("")
    with pytest.raises(StepperError, match="figures cannot be kept there"):
        wanted(folder, {}).drawn(SCREEN, FigureCache(folder / "file" / "cache"))


@pytest.mark.skipif(sys.platform == "win32", reason="there are no signals")
def test_a_drawing_that_does_not_end_or_is_killed_is_an_error(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FigureFailed, match=r"was not drawn within 0\.05 s"):
        documents.draw([MODEL], folder, folder / "x.svg", seconds=0.05)
    monkeypatch.setattr(documents, "_PROGRAM", "import os; os.abort()")
    with pytest.raises(FigureFailed, match="ended with -6"):
        documents.draw([MODEL], folder, folder / "x.svg")


def test_modules_of_the_folder_are_not_loaded(folder: Path) -> None:
    (folder / "numpy.py").write_text("raise SystemExit(99)")
    assert wanted(folder, {}).drawn(SCREEN, FigureCache(folder / "cache")).read_text().startswith("<svg")


def test_the_same_figure_twice_on_a_page_has_its_own_identifiers(folder: Path) -> None:
    file = wanted(folder, {}).drawn(SCREEN, FigureCache(folder / "cache"))
    page = InlineFigures()
    elements = list(ElementTree.fromstring(f"<body>{''.join(page.svg(file) for _ in range(3))}</body>").iter())
    identifiers = [one.get("id") for one in elements if one.get("id")]
    assert len(identifiers) > 30 and len(set(identifiers)) == len(identifiers)
    for svg in (one for one in elements if one.tag.endswith("svg")):
        names = (svg.get("aria-labelledby") or "").split()
        own = {one.get("id") for one in svg.iter()}
        assert len(names) == 2 and set(names) <= own
        (sheet,) = (one.text for one in svg.iter() if one.tag.endswith("style"))
        scope = re.search(r"stepper (\w+)", svg.get("class") or "")
        assert scope is not None and set(re.findall(r"\.(s[0-9a-f]{8}\w*)", sheet or "")) == {scope[1]}
