"""`stepper figures`: write all figures that a file lists, or check that those that are there are current.

Options of `stepper export` by their long names, as lists of figures and pages of documentation give them.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import shlex
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from stepper.cli.commands.export import check_file
from stepper.cli.commands.export import execute as export
from stepper.cli.parser import command_parsers, parsed
from stepper.cli.printing import print_answer, print_json
from stepper.cli.specs import OPTIONS_WITH_A_PATH
from stepper.commands.session_commands import ScriptError
from stepper.errors import FINDING, StepperError, UsageError
from stepper.files.allowed import ALLOWED, SettingsFile
from stepper.files.configuration import read_toml
from stepper.files.file_kinds import FORMATS
from stepper.files.output import OutputFile, ProtectedFiles
from stepper.records import Record
from stepper.terminal import say
from stepper.wording import no_such_file, none_of


def export_options() -> Mapping[str, argparse.Action]:
    """Return the options of export by their long names without dashes."""
    actions = command_parsers()["export"].actions
    return {name[2:]: action for action in actions for name in action.option_strings if name.startswith("--")}


def names_a_path(action: argparse.Action) -> bool:
    """True if the value of an option is the path of a file to be read, or may be one."""
    return action.dest in OPTIONS_WITH_A_PATH


def words_of(key: str, value: object, where: str, own: Sequence[str], source: SettingsFile) -> Iterator[str]:
    """Yield the words of one option that a file sets: `key` is its long name, and `own` are further keys of the file.

    Raise UsageError, beginning with `where`, for an option that the file may not set and for a value of a wrong kind.
    """
    options = export_options()
    if key not in ALLOWED[source]:
        why = f"--{key} is for the command line, a file cannot set it" if key in options else ""
        raise UsageError(f"{where}: {why or none_of(key, [*own, *ALLOWED[source]])}")
    if isinstance(value, bool):
        if options[key].nargs != 0:
            raise UsageError(f"{where}: {key} takes a value, not true or false")
        yield from (f"--{key}",) * value
        return
    values = value if isinstance(value, list) else [value]
    for one in values:
        if not isinstance(one, (str, int, float)) or isinstance(one, bool) or options[key].nargs == 0:
            raise UsageError(f"{where}: {key} = {value!r} is not a value of --{key}")
        yield f"--{key}={one}"


_KEYS = ("defaults", "figure", "page", "title", "text")
_OWN = ("name", "model", "file")
_MOST_SHOWN = 6
"""Frames of one figure that the page shows, the first ones."""
_NAME = re.compile(r"[\w./ -]+")


class ListedFigure(Record):
    """A figure of the file: the files to be written, relative to that, and the words of its `export` command.

    `in_frames`: what is written is a folder of frames, and the words name it.
    """

    name: str
    files: tuple[str, ...]
    words: tuple[str, ...]
    caption: str = ""
    in_frames: bool = False


class FigureList(Record):
    """The figures of a file, and the page that shows them ("": none): its path, title and first paragraph."""

    figures: tuple[ListedFigure, ...]
    page: str = ""
    title: str = ""
    text: str = ""


def execute(options: Namespace) -> int:
    """Write or check the figures. Return 0 if all went well, FINDING where one is out of date."""
    path = Path(options.file)
    listed = figure_list(path)
    chosen = _chosen(listed.figures, options.names, path)
    if options.list:
        data = {"figures": [{"name": one.name, "files": one.files, "words": one.words} for one in chosen]}
        print_answer(options, data, (f"{one.name}  {' '.join(one.files)}" for one in chosen))
        return 0
    done: list[dict[str, object]] = []
    with contextlib.chdir(path.resolve().parent):
        for figure in chosen:
            for file in figure.files:
                code = _carry_out(figure, file, options)
                if not options.json and not options.quiet and not options.check:
                    say(f"{figure.name}: {file}")
                done.append({"name": figure.name, "file": file, "current": code == 0})
        if listed.page and not options.names:
            done.append({"name": "page", "file": listed.page, "current": _page(listed, options) == 0})
    if options.json:
        print_json({"figures": done})
    return 0 if all(one["current"] for one in done) else FINDING


def figure_list(path: Path) -> FigureList:
    """Return the figures that a file lists. Raise UsageError, with the figure, for what is wrong."""
    if not path.exists():
        entry = 'with [[figure]], and below it name = "NAME", model = "FILE.xml" and options of export'
        raise UsageError(f"{path}: {no_such_file(path)}; such a file lists each figure {entry}")
    content = read_toml(path)
    unknown = set(content) - set(_KEYS)
    if unknown:
        raise UsageError(f"{path}: {none_of(min(unknown), _KEYS)}; options of figures stand below [[figure]]")
    defaults, entries = content.get("defaults", {}), content.get("figure", [])
    if not isinstance(defaults, dict) or not isinstance(entries, list):
        raise UsageError(f"{path}: [defaults] is one table, and each [[figure]] another")
    found: list[ListedFigure] = []
    for number, entry in enumerate(entries, 1):
        where = f"{path}: figure {number}"
        if not isinstance(entry, dict):
            raise UsageError(f"{where}: write [[figure]] and its options below")
        figure = _figure({**defaults, **entry}, where, path.resolve().parent)
        if any(figure.name == other.name for other in found):
            raise UsageError(f"{where}: there is a figure '{figure.name}' already; names are unique")
        found.append(figure)
    if not found:
        raise UsageError(f"{path}: lists no [[figure]]")
    page, title, text = (content.get(key, "") for key in ("page", "title", "text"))
    if not all(isinstance(word, str) for word in (page, title, text)):
        raise UsageError(f"{path}: page, title and text are texts in quotes")
    if page and not (path.resolve().parent / page).resolve().is_relative_to(path.resolve().parent):
        raise UsageError(f"{path}: the page '{page}' is outside of the folder of the file")
    return FigureList(tuple(found), page, title or "Figures", text)


def page_of(listed: FigureList, place: Path) -> str:
    """Return a page of Markdown with all figures, each with its caption and the command that writes it.

    Of frames it shows those that are in their folder, which is relative to `place`.
    """
    lines = [f"# {listed.title}", *(["", listed.text.strip()] if listed.text.strip() else [])]
    group = ""
    for figure in listed.figures:
        folder = figure.name.rpartition("/")[0]
        if folder != group:
            lines += ["", f"## {folder}"]
            group = folder
        words = shlex.join(word for word in figure.words if word != "--quiet" and not word.startswith("--caption="))
        command = f"`stepper export {words}`" if figure.in_frames else f"`stepper export {words} -o {figure.files[0]}`"
        lines += ["", f"{figure.caption}: {command}" if figure.caption else command]
        for file in _pictures(figure, place):
            picture = "" if Path(file).suffix in FORMATS["html"].suffixes else "!"  # a page is a link
            lines += ["", f"{picture}[{figure.caption or figure.name}]({file})"]
    return "\n".join([*lines, ""])


def _pictures(figure: ListedFigure, place: Path) -> list[str]:
    if not figure.in_frames:
        return [figure.files[0]]
    folder = figure.files[0]
    return [f"{folder}/{one.name}" for one in sorted((place / folder).glob("[0-9]*.*"))[:_MOST_SHOWN]]


def _figure(entry: Mapping[str, Any], where: str, folder: Path) -> ListedFigure:
    name, model, file = (entry.get(key) for key in _OWN)
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise UsageError(f"{where}: needs a name of letters, digits, blanks and _ . / -")
    where = f"{where}, '{name}'"
    if not isinstance(model, str) or not model or model.startswith("-"):
        raise UsageError(f'{where}: needs a model, such as model = "model.xml"')
    frames = entry.get("frames")
    files = _files(name, file, frames, where)
    for one in files:
        if not (folder / one).resolve().is_relative_to(folder):
            raise UsageError(f"{where}: '{one}' is outside of the folder of the file")
    words = [model, "--quiet"]
    for key, value in entry.items():
        if key not in _OWN:
            words += words_of(key, value, where, _OWN, SettingsFile.FIGURES)
    try:
        parsed(["export", *words, *(["-o", files[0]] if frames is None else [])])
    except UsageError as error:
        raise UsageError(f"{where}: {error}") from None
    return ListedFigure(name, tuple(files), tuple(words), str(entry.get("caption", "")), frames is not None)


def _files(name: str, file: Any, frames: Any, where: str) -> list[str]:
    """Return what is written: files, or the folder of frames."""
    if frames is not None:
        if file is not None:
            raise UsageError(f"{where}: frames is the folder that is written; leave out file")
        if not isinstance(frames, str) or not frames:
            raise UsageError(f'{where}: frames is a folder, such as frames = "steps"')
        return [frames]
    files = [f"{name}.svg"] if file is None else [file] if isinstance(file, str) else file
    if not isinstance(files, list) or not files or not all(isinstance(one, str) and one for one in files):
        raise UsageError(f'{where}: file is a path or a list of paths, such as file = ["a.svg", "a.pdf"]')
    return files


def _chosen(listed: Sequence[ListedFigure], names: Sequence[str], path: Path) -> tuple[ListedFigure, ...]:
    for name in names:
        if not any(one.name == name for one in listed):
            raise UsageError(f"{path}: {none_of(name, [one.name for one in listed])}")
    return tuple(one for one in listed if not names or one.name in names)


def _page(listed: FigureList, options: Namespace) -> int:
    """Write or check the page."""
    path, text = Path(listed.page), page_of(listed, Path())
    if options.check:
        return check_file(path, text.encode(), "stepper figures writes it")
    files = [ProtectedFiles.of_file(file, f"figure '{one.name}'") for one in listed.figures for file in one.files]
    protected = sum(files, ProtectedFiles.of_file(options.file, "the list of figures"))
    OutputFile(path, FORMATS["md"].kind, protected, "page").write(text.encode())
    return 0


def _carry_out(figure: ListedFigure, file: str, options: Namespace) -> int:
    """Write or check one file of a figure. Raise StepperError with the figure's name."""
    if not options.check:
        Path(file).parent.mkdir(parents=True, exist_ok=True)
    try:
        target = ["--check", file] if options.check else [] if figure.in_frames else ["-o", file]
        return export(parsed(["export", *figure.words, *target]))
    except StepperError as error:
        raise ScriptError(f"figure '{figure.name}'", error) from None
