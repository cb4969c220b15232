"""`stepper figures`: the figures of a file are written and checked, each as its export command would."""

from __future__ import annotations

from pathlib import Path

import pytest
from lxml import etree

from stepper.cli import main
from stepper.errors import FINDING, UsageError
from tests.export.runs import SAMPLES
from tests.json_answers import checked

LIST = """
page = "all.md"
title = "Of a paper"
[defaults]
theme = "print"
[[figure]]
name = "body"
model = "MODEL"
file = ["out/body.svg", "out/body.png"]
view = "rolled"
caption = "The body & its back edges"
hide = ["Multiply", "Add"]
[[figure]]
name = "ports"
model = "MODEL"
view = "ports"
title = "Ports"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for suffix in ("xml", "bin"):
        (tmp_path / f"m.{suffix}").write_bytes((SAMPLES / "for_loop" / f"model.{suffix}").read_bytes())
    (tmp_path / "figures.toml").write_text(LIST.replace("MODEL", "m.xml"), encoding="utf-8")
    return tmp_path


def run(folder: Path, *words: str) -> int:
    return main(["figures", "--file", str(folder / "figures.toml"), *words])


def test_figures_are_those_of_their_export_commands(
    folder: Path, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(folder) == 0
    assert capfdbinary.readouterr().out.split() == [
        b"body:",
        b"out/body.svg",
        b"body:",
        b"out/body.png",
        b"ports:",
        b"ports.svg",
    ]
    monkeypatch.chdir(folder)
    words = ["export", "m.xml", "-q", "--theme", "print", "--view", "rolled", "--hide", "Multiply", "--hide", "Add"]
    assert main([*words, "--caption", "The body & its back edges"]) == 0
    assert capfdbinary.readouterr().out == (folder / "out" / "body.svg").read_bytes()
    described = etree.parse(folder / "out" / "body.svg").find("{*}desc")
    assert described is not None and str(described.text).startswith("The body & its back edges The body of Loop")
    texts = [text.text for text in etree.parse(folder / "ports.svg").iter("{*}text")]
    assert texts[0] == "Ports"
    page = (folder / "all.md").read_text(encoding="utf-8")
    assert page.startswith("# Of a paper\n")
    assert "![The body & its back edges](out/body.svg)" in page and "--hide=Multiply --hide=Add" in page


def test_a_check_names_what_is_out_of_date_and_where_it_differs_first(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(folder, "--check") == FINDING
    assert not (folder / "out").exists(), "a check writes nothing"
    assert run(folder, "-q") == 0
    assert run(folder, "--check") == 0
    capfd.readouterr()
    svg = folder / "out" / "body.svg"
    lines = svg.read_bytes().splitlines()
    svg.write_bytes(b"\r\n".join(lines) + b"\r\n")
    assert run(folder, "--check") == 0, "line endings are no difference"
    number = next(at for at, line in enumerate(lines) if line.startswith(b"<rect"))
    lines[number] = lines[number].replace(b'width="', b'width="9', 1)
    svg.write_bytes(b"\n".join(lines))
    assert run(folder, "--check", "body") == FINDING
    said = capfd.readouterr().err
    assert (
        "out/body.svg is out of date (line " in said
        and f"line {number + 1}: '" in said
        and 'width="9' in said
        and len(said) < 300
    )
    assert run(folder, "--check", "ports") == 0
    assert run(folder, "--check", "--json") == FINDING
    found = checked("figures", capfd.readouterr().out)["figures"]
    assert [one["file"] for one in found if not one["current"]] == ["out/body.svg"]


@pytest.mark.parametrize(
    ("old", "new", "sentence"),
    [
        ('name = "ports"', 'name = "body"', "figure 2: there is a figure 'body' already"),
        ('model = "m.xml"\nview', "view", "figure 2, 'ports': needs a model"),
        ('view = "ports"', 'view = "porst"', "figure 2, 'ports': --view: 'porst' is none of"),
        ('view = "ports"', 'veiw = "ports"', "near is view"),
        ('"out/body.svg"', '"../body.svg"', "'../body.svg' is outside of the folder of the file"),
        ('page = "all.md"', 'page = "/tmp/all.md"', "the page '/tmp/all.md' is outside of the folder"),
        ("[defaults]", "[default]", "near is defaults"),
        ('title = "Ports"', 'check = "x.svg"', "--check is for the command line, a file cannot set it"),
        ('title = "Ports"', 'extension = "./notes.txt"', "--extension is for the command line, a file cannot set it"),
        ('title = "Ports"', 'engine-for = "*=openvino"', "--engine-for is for the command line"),
        ('model = "m.xml"\nview', 'model = "--extension=./notes.txt"\nview', "figure 2, 'ports': needs a model"),
        ('title = "Ports"', "carried = 3", "carried = 3 is not a value"),
        ('title = "Ports"', "title = true", "title takes a value"),
        ("[[figure]]", "[figure", "is not valid TOML"),
        ('view = "ports"', 'view = "ports"\nframes = "steps"\nfile = "a.svg"', "leave out file"),
        ('view = "ports"', 'view = "ports"\nframes = ["a", "b"]', "frames is a folder"),
        ('view = "ports"', 'view = "ports"\nframes = "../steps"', "'../steps' is outside of the folder of the file"),
    ],
)
def test_what_is_wrong_is_said_with_its_figure(
    folder: Path, old: str, new: str, sentence: str, capfd: pytest.CaptureFixture[str]
) -> None:
    text = (folder / "figures.toml").read_text(encoding="utf-8")
    assert old in text
    (folder / "figures.toml").write_text(new.join(text.rsplit(old, 1)), encoding="utf-8")
    assert run(folder) == UsageError.exit_code
    said = capfd.readouterr().err
    assert sentence in said and said.count("\n") == 1
    assert [path.name for path in folder.iterdir() if path.suffix == ".svg"] == []


def test_a_name_that_is_not_there_is_answered_with_the_near_one(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(folder, "boddy") == UsageError.exit_code
    assert "near is body" in capfd.readouterr().err
    assert main(["figures", "--file", str(folder / "none.toml")]) == UsageError.exit_code
    said = capfd.readouterr().err
    assert "no such file" in said and "[[figure]]" in said
    assert run(folder, "--list") == 0
    assert capfd.readouterr().out == "body  out/body.svg out/body.png\nports  ports.svg\n"


def test_the_list_is_data_too(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run(folder, "--list", "--json") == 0
    found = checked("figures", capfd.readouterr().out)["figures"]
    assert [(one["name"], one["files"]) for one in found] == [
        ("body", ["out/body.svg", "out/body.png"]),
        ("ports", ["ports.svg"]),
    ]


def test_a_page_never_overwrites_a_model(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = (folder / "figures.toml").read_text(encoding="utf-8")
    (folder / "figures.toml").write_text(text.replace("all.md", "m.xml"), encoding="utf-8")
    before = (folder / "m.xml").read_bytes()
    assert run(folder) == UsageError.exit_code
    assert (folder / "m.xml").read_bytes() == before
