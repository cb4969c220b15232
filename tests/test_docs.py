"""README and docs: what is made from the code is current, each command in them runs and prints what they show.

In a page, a fence of `sh` has commands, one a line, which end with code 0; with `# exit code N` behind one, with that.
A fence of `console` has `$ ` before each command and its output below (`...`: any lines, or none); `$ echo $?` shows
the code of the one before. Behind `$ stepper debug ...`, lines that begin with `(stepper)` are typed. A fence of
`python` runs after those above it, with their names. All of a page run in one folder that has the sample models. Other
fences (`text`, `py`, `toml`, with a `title=`) are only shown, where each `stepper ...` has words that it takes;
commands of other programs are not run.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from shutil import which
from typing import NamedTuple

import pytest

import stepper
from docs import man_page, site
from docs.reference import command_parsers
from stepper.cli import main
from stepper.cli.parser import COMMANDS, parsed, parser
from stepper.files.file_kinds import is_model_path
from stepper.wording import DISTRIBUTION, install_line
from tests.debug.transcript import PROMPT, commands_in, held
from tests.last_digits import agree

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^( *)```([^\n]*)\n(.*?)^\1```", re.MULTILINE | re.DOTALL)
NOT_RUN = ("git", "mkdocs", "mypy", "pip", "pytest", "python", "python3", "ruff", "textual")
"""Programs that install, serve or check, and the project's own scripts, which have tests of their own."""


class Fence(NamedTuple):
    """A fence of a page, with the line on which it begins."""

    language: str
    text: str
    line: int


class Command(NamedTuple):
    """A command of a page: its line, the code that it ends with, and the output that is shown (None: none is)."""

    line: str
    code: int
    shown: str | None = None


def fences(page: Path) -> Iterator[Fence]:
    """The fences of a page, those in lists without their indentation."""
    text = page.read_text(encoding="utf-8")
    for match in FENCE.finditer(text):
        inner = re.sub(rf"^{match[1]}", "", match[3], flags=re.MULTILINE)
        yield Fence(match[2].strip(), inner, text[: match.start()].count("\n") + 1)


def commands(fence: Fence) -> Iterator[Command]:
    """The commands of a fence of sh or console."""
    text = fence.text.replace("\\\n", " ")
    if fence.language == "sh":
        for line in text.splitlines():
            command, _, comment = line.partition("  # ")
            code = re.fullmatch(r"exit code (\d+).*", comment)
            if command.strip() and not command.startswith("#"):
                yield Command(command.strip(), int(code[1]) if code else 0)
        return
    parts = [part.partition("\n") for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]]
    for index, (line, _, shown) in enumerate(parts):
        if line == "echo $?":
            continue
        following = parts[index + 1] if index + 1 < len(parts) else ("", "", "")
        yield Command(line, int(following[2]) if following[0] == "echo $?" else 0, shown)


CAPTURED = ("kept", "stream")
"""Folders of cases that OpenVINO alone can make."""


def needs_openvino(line: str) -> bool:
    """True for a command that runs OpenVINO, or takes what it wrote or converts."""
    words = line.split()
    named = "openvino" in line or ".onnx" in line or any(folder in line for folder in CAPTURED)
    return named or bool({"passes", "capture"} & {*words}) or ("compare" in words and "--with" not in words)


def is_missing(line: str) -> bool:
    """True if a command needs a package that is not installed."""
    extras = {"openvino": needs_openvino(line), "onnxruntime": "--with onnx" in line, "fpdf": writes_pdf_or_png(line)}
    return any(is_needed and find_spec(package) is None for package, is_needed in extras.items())


def writes_pdf_or_png(line: str) -> bool:
    """True for a command whose figure the default installation refuses."""
    return re.search(r"-o \S+\.(pdf|png)\b|--as (pdf|png)\b", line) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_page_says_what_to_install_for_its_commands(page: Path) -> None:
    lines = [one.line for fence in fences(page) for one in commands(fence) if fence.language in ("sh", "console")]
    for extra, needs in (("openvino", needs_openvino), ("figures", writes_pdf_or_png)):
        if any(map(needs, lines)) and "reference" not in page.parts:
            assert f"loop-stepper[{extra}]" in page.read_text(encoding="utf-8"), [one for one in lines if needs(one)]


def is_not_run(line: str) -> bool:
    """True for a command of other programs; a line of Python that the page shows runs."""
    words = shlex.split(line)
    return Path(words[0]).name in NOT_RUN and words[1:2] != ["-c"]


def asked_of_sqlite(words: list[str], folder: Path) -> tuple[int, str]:
    """What the program sqlite3 prints, which may not be installed."""
    with contextlib.closing(sqlite3.connect(folder / words[1])) as file:
        return 0, "".join("|".join(map(str, row)) + "\n" for row in file.execute(words[2]))


def carried_out(line: str, folder: Path) -> tuple[int, str]:
    """The code and the standard output of a command."""
    if line.startswith("sqlite3 "):
        return asked_of_sqlite(shlex.split(line), folder)
    if re.search(r"[|<>;&$`]", re.sub(r'"[^"]*"|\'[^\']*\'', "", line)):
        done = subprocess.run(
            ["bash", "-o", "pipefail", "-c", line],
            cwd=folder,
            capture_output=True,
            text=True,
            timeout=120,
        )
        return done.returncode, done.stdout
    words = shlex.split(line)
    if words[0] != "stepper":
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=120)
        return done.returncode, done.stdout
    if words[1] == "tui" or "--open" in words or is_model_path(words[1]):  # needs a terminal
        options = parsed(words[1:])
        assert (folder / options.model).is_file() and all(
            (folder / path).is_file() for path in [getattr(options, "inputs", None)] if path
        )
        return 0, ""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        try:
            code = main(words[1:])
        except SystemExit as end:
            code = int(end.code or 0)
    return code, out.getvalue()


def conversation(line: str, shown: str) -> str:
    """What a conversation with a sample model says to what is typed in it."""
    words = shlex.split(line)
    name = re.fullmatch(r"sample_models/(\w+)/model\.xml", words[2])
    assert name is not None and words[3:] == ["--inputs", f"sample_models/{name[1]}/inputs.npz"]
    return held(name[1], commands_in(shown))


def fits(printed: str, shown: str) -> bool:
    """True if the output is what is shown, in which a line `...` stands for any lines, but for last digits."""
    lines = [line.rstrip() for line in printed.splitlines()]
    ends = {0}  # how many lines of the output may be what is shown so far
    for line in shown.splitlines():
        if line.strip() == "...":
            ends = set(range(min(ends, default=len(lines) + 1), len(lines) + 1))
        else:
            ends = {end + 1 for end in ends if end < len(lines) and agree(lines[end], line)}
    return len(lines) in ends


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the sample models, and no settings of the user."""
    (tmp_path / "sample_models").symlink_to(ROOT / "sample_models")
    for name in ("STATE", "CONFIG", "CACHE"):
        monkeypatch.setenv(f"XDG_{name}_HOME", str(tmp_path / name.lower()))
    monkeypatch.setattr("sys.stdin", io.StringIO())
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_example_of_a_page_runs_and_prints_what_it_shows(
    page: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: dict[str, object] = {}
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")  # as in an active environment
    for fence in fences(page):
        place = f"{page.relative_to(ROOT)}, line {fence.line}"
        if fence.language == "python":
            if "openvino" in fence.text and find_spec("openvino") is None:
                continue
            with contextlib.redirect_stdout(io.StringIO()):
                exec(compile(fence.text, place, "exec"), names)
        if fence.language not in ("sh", "console"):
            continue
        for command in commands(fence):
            if is_not_run(command.line) or is_missing(command.line):
                continue
            if command.shown is not None and PROMPT in command.shown:
                code, printed = 0, conversation(command.line, command.shown)
            else:
                code, printed = carried_out(command.line, folder)
            assert code == command.code, (place, command.line, printed)
            assert command.shown is None or fits(printed, command.shown), (place, command.line, printed)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_that_is_only_shown_has_words_that_stepper_takes(page: Path) -> None:
    for fence in fences(page):
        if fence.language in ("sh", "console"):
            continue
        for line in re.findall(r"^(?:\$ | *- run: )?stepper (.*?)(?:  #.*| [>|] .*)?$", fence.text, re.MULTILINE):
            if "[options]" not in line:  # what a usage shows
                parsed(shlex.split(line))


def test_every_part_that_is_made_from_the_code_is_current() -> None:
    check = subprocess.run(
        [sys.executable, "-m", "docs.reference", "--check"], cwd=ROOT, capture_output=True, text=True, timeout=120
    )
    assert (check.returncode, check.stderr) == (0, "")


def test_the_manual_page_is_up_to_date_and_groff_takes_it() -> None:
    assert man_page.PAGE.read_text(encoding="utf-8") == man_page.text()
    if which("groff"):
        words = ["groff", "-man", "-ww", "-Tutf8", str(man_page.PAGE)]
        shown = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert (shown.returncode, shown.stderr) == (0, "") and "stepper check model.xml" in shown.stdout


def test_what_installs_more_is_called_as_the_distribution_is() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["name"] == DISTRIBUTION and install_line("figures") == f"pip install '{project['name']}[figures]'"
    for path in (*PAGES, *(ROOT / "stepper").rglob("*.py"), *(ROOT / "tui").rglob("*.py")):
        for line in path.read_text(encoding="utf-8").splitlines():
            for wanted in re.findall(r"pip install '?(?:-U )?(loop-stepper|stepper)\b\[?([a-z]*)", line):
                assert wanted[0] == DISTRIBUTION and wanted[1] in ("", *project["optional-dependencies"]), (path, line)


def test_every_command_and_every_public_name_is_in_the_reference() -> None:
    commands_page = (ROOT / "docs" / "reference" / "commands.md").read_text(encoding="utf-8")
    assert all(f"\n## stepper {name}\n" in commands_page for name in COMMANDS)
    python_page = (ROOT / "docs" / "reference" / "python.md").read_text(encoding="utf-8")
    assert all(f"\n## stepper.{name}\n" in python_page for name in stepper.__all__)


def test_every_link_between_pages_leads_to_a_file() -> None:
    for page in (*PAGES, ROOT / "CONTRIBUTING.md", ROOT / "sample_models" / "README.md"):
        for link in re.findall(r"\]\(([^)\s:#]+)(?:#[^)]*)?\)", FENCE.sub("", page.read_text(encoding="utf-8"))):
            assert (page.parent / link).exists(), (page, link)


def test_every_option_that_is_named_is_one() -> None:
    parsers = (parser(), *command_parsers().values())
    known = {name for one in parsers for action in one._actions for name in action.option_strings}
    for page in PAGES:
        for named in re.findall(r"(?<!`)`(?:stepper [^`]*)?--[a-z][^`]*`(?!`)", page.read_text(encoding="utf-8")):
            assert set(re.findall(r"(?<![\w-])--[a-z][a-z0-9-]*", named)) <= known, (page, named)


def test_every_format_and_every_view_of_figures_is_described() -> None:
    text = (ROOT / "docs" / "reference" / "figures.md").read_text(encoding="utf-8")
    described = {
        name for row in re.findall(r"^\| (`[^|]*`) \|", text, re.MULTILINE) for name in re.findall(r"`(\w+)`", row)
    }
    choices = {action.dest: set(action.choices or ()) for action in command_parsers()["export"]._actions}
    assert choices["format"] | choices["view"] <= described


@pytest.mark.skipif(find_spec("zensical") is None, reason="needs zensical; runs in the second part of .ci/run")
def test_the_site_is_built_without_a_broken_link(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "docs.site", str(tmp_path / "site"), "--no-outputs"]
    built = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert built.returncode == 0, built.stderr
    pages = {path.relative_to(tmp_path / "site").as_posix() for path in (tmp_path / "site").rglob("*.html")}
    named = set(re.findall(r"([\w/-]+)\.md$", (ROOT / "docs" / "site.yml").read_text(encoding="utf-8"), re.MULTILINE))
    assert len(named) > 60 and {f"{name.replace('README', 'index')}.html" for name in named} <= pages
    written = {path.relative_to(ROOT / "docs").with_suffix("").as_posix() for path in (ROOT / "docs").rglob("*.md")}
    assert written <= named, "a page that no tab leads to"


@pytest.mark.skipif(find_spec("nbclient") is None, reason="needs nbclient, of the extra docs")
def test_a_notebook_is_a_page_with_what_its_cells_show() -> None:
    text = "".join(site.notebook_lines(ROOT / "docs" / "notebooks" / "what-if.ipynb", with_outputs=True))
    assert text.startswith("# What if") and "```python\nimport numpy" in text and '<div class="output">' in text
