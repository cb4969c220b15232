"""The parts of the pages that are made from the code (options, commands, keys, tables), or that were measured.

python -m docs.reference            write them
python -m docs.reference --check    write nothing; exit with 1 where they are not up to date

A page has `<!-- begin NAME -->` and `<!-- end -->` where the part of that name stands; the rest is written by hand.
"""

from __future__ import annotations

import argparse
import inspect
import re
import sqlite3
import sys
import textwrap
from collections.abc import Callable, Iterator
from enum import Enum, StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

from stepper_tui.command_line import VIEWS
from stepper_tui.keymap import PANES, chosen_keys, written_keys
from stepper_tui.keys import Key, shown

import stepper
from docs.measured import benchmarks, real_models
from docs.tables import Lines, cell, code, table
from stepper.cli.commands.help import COMMAND_LINE_TOPICS
from stepper.cli.parser import parser
from stepper.commands.command_session import GROUPS, commands
from stepper.commands.session_commands import Topic, topics
from stepper.compare.comparison import SHORT_ORIGINS
from stepper.compare.rerun import FAULT_TRIALS, QUANTISED_TRIALS, USUAL_TRIALS, ExplanationKind
from stepper.compare.rounding import STABLE, SUMS
from stepper.compare.verdict import ORIGIN_TEXTS, SWITCHED_OFF
from stepper.diagnosis.hunt.faults import FAULTS
from stepper.diagnosis.rule import SubjectKind, rules
from stepper.files.file_kinds import FORMATS
from stepper.operation_types import DEFINITIONS
from stepper.ops import departures
from stepper.ops.registry import FILE_OF, STRUCTURAL, all_kernels
from stepper.recording import file
from stepper.tensors.tolerances import COARSE, OTHER_KERNELS, SAME_KERNELS

FOLDER = Path(__file__).parent
PART = re.compile(r"^<!-- begin (\S+) -->\n(.*?)^<!-- end -->$", re.MULTILINE | re.DOTALL)

# --- the command line -----------------------------------------------------------------------------------------------


def command_parsers() -> dict[str, argparse.ArgumentParser]:
    """Return the parsers of the commands by name."""
    actions = parser()._actions
    found = next(action for action in actions if isinstance(action, argparse._SubParsersAction))
    return dict(found.choices)


def command_line() -> Lines:
    """Return each command of the command line with its options."""
    for name, one in command_parsers().items():
        yield from (f"## stepper {name}", "", one.description or "", "", "```text", usage(one), "```", "")
        yield from table(("", "what it is"), (option(action) for action in one._actions if action.dest != "help"))


def usage(one: argparse.ArgumentParser) -> str:
    """Return how a command is written, in short."""
    words = [one.prog]
    for action in one._actions:
        if not action.option_strings:
            word = written_value(action)
            words.append({"?": f"[{word}]", "+": f"{word} [{word} ...]"}.get(str(action.nargs), word))
    return " ".join([*words, "[options]"])


def option(action: argparse.Action) -> tuple[str, str]:
    """Return an option or argument as a row: how it is written, what it is."""
    takes = action.nargs != 0
    if not action.option_strings:
        written = code(written_value(action))
    else:
        last = action.option_strings[-1] if action.option_strings[0] != "-o" else action.option_strings[0]
        names = [
            f"{name} {written_value(action)}" if takes and name == last else name for name in action.option_strings
        ]
        written = ", ".join(map(code, names))
    text = cell(action.help or "")
    if action.choices and action.metavar:
        text += f" ({', '.join(map(code, map(str, action.choices)))})"
    return written, text


def written_value(action: argparse.Action) -> str:
    """Return the value of an option or argument, as its help writes it."""
    if action.metavar:
        return str(action.metavar)
    return "|".join(map(str, action.choices)) if action.choices else action.dest.upper()


# --- the debugger ---------------------------------------------------------------------------------------------------

GROUP_TITLES = MappingProxyType({
    "movement_commands": "Move in time",
    "breakpoint_commands": "Stop, and watch",
    "inspection": "Look",
    "edit_commands": "Change a value",
    "moment_commands": "Compare with a baseline",
    "session_commands": "Keep, and the rest",
})  # fmt: skip


def debugger_commands() -> Lines:
    """Return the commands of the debugger, group by group."""
    for group in GROUPS:
        yield from (f"## {GROUP_TITLES[group]}", "")
        rows = [
            (
                ", ".join(map(code, (one.name, *one.abbreviations))),
                code(one.syntax) if one.syntax else "",
                cell(one.help),
            )
            for one in commands()
            if one.group == group
        ]
        yield from table(("command", "with", "what it does"), rows)


def topic_table(topic: Topic) -> Callable[[], Lines]:
    """Return what makes a topic of `stepper help` a table; its note stands below."""

    def made() -> Lines:
        rows = [(", ".join(map(code, re.split(r"  +", written))), cell(means)) for written, means in topic.rows]
        yield from table(("written", "meaning"), rows)
        yield from (topic.note, "")

    return made


# --- the application ------------------------------------------------------------------------------------------------


def keys() -> Lines:
    """Return the keys that hold everywhere, and those of each pane."""
    keymap = chosen_keys("default").keymap
    yield from ("## Everywhere", "")
    yield from table(("keys", "what they do", "command"), map(key_row, (key for key in keymap if not key.panes)))
    for pane in PANES:
        own = [key for key in keymap if pane in key.panes]
        yield from (f"## In the pane `{pane}`", "")
        yield from table(("keys", "what they do", "command"), map(key_row, own))


def key_row(key: Key) -> tuple[str, str, str]:
    """Return a key as a row of a table."""
    names = written_keys(key)
    return " ".join(map(code, names)), cell(key.help), code(key.command)


def key_presets() -> Lines:
    """Yield the changes of each preset."""
    default = {(name, key.panes): key.command for key in chosen_keys("default").keymap for name in key.keys}
    for preset in ("vscode", "vim", "emacs"):
        found = [
            (code(shown(name)), cell(key.help), code(key.command), ", ".join(key.panes) or "everywhere")
            for key in chosen_keys(preset).keymap
            for name in key.keys
            if default.get((name, key.panes)) != key.command
        ]
        yield from (f"### {preset}", "", *table(("key", "what it does", "command", "where"), found))


def screens() -> Lines:
    """Return the screens by name."""
    yield from table(
        ("screen", "what it shows"), ((code(f":view {one.name}"), cell(one.help)) for one in VIEWS.values())
    )


# --- files ----------------------------------------------------------------------------------------------------------


def recording_tables() -> Lines:
    """Return the tables of a recording: what they hold, and how tables and views are made."""
    rows: list[list[str]] = []
    for line in inspect.cleandoc(file.__doc__ or "").partition("Below them:\n\n")[2].partition("\n\n")[0].splitlines():
        names, text = line[:16].strip(), line[16:].strip()
        if names:
            rows.append([", ".join(map(code, names.split(", "))), text])
        else:
            rows[-1][1] += f" {text}"
    yield from table(("table", "what it holds"), ((names, cell(text)) for names, text in rows))
    yield from ("## As SQL", "", "```sql")
    for name, columns in file.TABLES.items():
        yield from textwrap.wrap(f"CREATE TABLE {name} ({folded(columns)});", 110, subsequent_indent="    ")
    yield from (f"CREATE VIEW {name} AS{text};" for name, text in file.VIEWS.items() if name != "statistics")
    yield from ("```", "")


def recording_views() -> Lines:
    """Return the views of a recording with their columns."""
    connection = sqlite3.connect(":memory:")
    file.create(connection)
    rows = []
    for name in file.VIEWS:
        columns = [column[0] for column in connection.execute(f"SELECT * FROM {name}").description]
        rows.append((code(name), ", ".join(map(code, columns))))
    yield from table(("view", "columns"), rows)


def folded(columns: str) -> str:
    """Return the columns of a table, without the many that differ by their number alone."""
    return re.sub(r"n0, n1, .*, (n\d+)", r"n0, n1, ..., \1", columns)


def figure_formats() -> Lines:
    """Return the formats that `stepper export` writes, by their declarations."""
    rows = (
        (code(one.name), ", ".join(map(code, one.suffixes)), cell(one.description), cell(one.subject))
        for one in FORMATS.values()
    )
    yield from table(("format", "suffix", "what it is", "of"), rows)


def own_options(command: str) -> Callable[[], Lines]:
    """Return what writes the options that a command has and `stepper inspect` has not."""

    def made() -> Lines:
        shared = {action.dest for action in command_parsers()["inspect"]._actions} - {"model"}
        own = [action for action in command_parsers()[command]._actions if action.dest not in shared]
        yield from table(("", "what it is"), map(option, own))

    return made


# --- comparison -----------------------------------------------------------------------------------------------------


def tolerances() -> Lines:
    """Return the tolerances of the element types, for references with our kernels and with others."""
    rows = []
    for name, same in SAME_KERNELS.items():
        other = OTHER_KERNELS[name]
        rows.append(
            (code(name), *(f"{one:g}" for one in (same.relative, same.absolute, other.relative, other.absolute)))
        )
    rows.append(("floats of 8 and fewer bits", *(f"{number:g}" for number in (COARSE.relative, COARSE.absolute) * 2)))
    rows.append(("integers, booleans, texts", *["0"] * 4))
    yield from table(("", "same kernels: relative", "absolute", "other kernels: relative", "absolute"), rows)


def rounding_allowances() -> Lines:
    """Return the types of operations for which rounding may leave more than the tolerance."""
    kinds = {"sums of products": SUMS, "found by perturbed inputs": STABLE, "a level more or less": ("FakeQuantize",)}
    rows = [(kind, ", ".join(code(one) for one in sorted(types))) for kind, types in kinds.items()]
    yield from table(("allowance", "operations"), rows)


def mismatch_origins() -> Lines:
    """Where a mismatch comes from: the word in the table of the worst values, and the sentence of the verdict."""
    rows = [(code(SHORT_ORIGINS.get(origin, str(origin))), cell(text)) for origin, text in ORIGIN_TEXTS.items()]
    yield from table(("origin", "what the verdict says"), rows)


def runtime_explanations() -> Lines:
    """Return the trials that tell which part of OpenVINO makes its outputs differ."""
    properties = dict((*QUANTISED_TRIALS, *USUAL_TRIALS))
    rows = [
        (
            str(kind),
            ", ".join(code(f"{name}={value}") for name, value in properties.get(kind, {}).items()) or "a changed model",
            cell(SWITCHED_OFF.get(kind) or f"the fault {code(FAULT_TRIALS[kind].fault)} of OpenVINO"),
        )
        for kind in ExplanationKind
    ]
    yield from table(("explanation", "trial", "what it means where the runtime then agrees"), rows)


def runtime_faults() -> Lines:
    """Return the catalogue of a hunt: known faults of the runtime."""
    rows = (
        (code(one.id), cell(one.what), cell(one.where), one.versions, code(f"stepper hunt --fault {one.id}"))
        for one in FAULTS
    )
    yield from table(("fault", "what is wrong", "where", "seen in", "shown by"), rows)


# --- rule books and operations --------------------------------------------------------------------------------------


def operation_departures() -> Lines:
    """Yield where OpenVINO's plugin departs from the specification, by type of operation."""
    rows = []
    for type_, facts in sorted(departures.FACTS.items()):
        for fact in facts:
            where = [", ".join(sorted(fact.element_types))] if fact.element_types else []
            where += [f"version {', '.join(map(str, fact.versions))}"] if fact.versions else []
            rows.append((code(type_), cell(fact.text), "; ".join(where)))
    yield from table(("operation", "what the plugin does", "where"), rows)


def operations() -> Lines:
    """Return every operation of the operation sets: the definitions that have a kernel, and its file."""
    kernels = all_kernels()
    rows = []
    for type_, versions in DEFINITIONS.items():
        having = [version for version in versions if (type_, version) in kernels]
        where = "the engine" if type_ in STRUCTURAL else code(f"stepper/ops/{FILE_OF[type_]}.py") if having else ""
        rows.append((code(type_), ", ".join(map(str, having if having else versions)), where))
    yield from (f"{len(rows)} types of operations.", "")
    yield from table(("operation", "opset of the definition", "where"), rows)


# --- Python ---------------------------------------------------------------------------------------------------------


def python_names() -> Lines:
    """Return every public name with its signature and its docstring."""
    for name in sorted(stepper.__all__, key=lambda name: (isinstance(getattr(stepper, name), type), name.lower())):
        yield from described(f"stepper.{name}", name, getattr(stepper, name))


def described(title: str, name: str, thing: Any) -> Iterator[str]:
    """Yield a function or a class with its methods."""
    yield from (f"## {title}", "")
    is_error = isinstance(thing, type) and issubclass(thing, Exception)
    if isinstance(thing, type) and issubclass(thing, Enum):
        yield from (
            docstring(thing),
            "",
            "Members: " + ", ".join(code(f"{name}.{one.name}") for one in thing) + ".",
            "",
        )
        return
    if not is_error:
        yield from ("```py", f"{title}{on_lines(signature(thing))}".removesuffix(" -> None"), "```", "")
    yield from (docstring(thing), "")
    if not isinstance(thing, type) or is_error:
        return
    rows = []
    for member, value in vars(thing).items():
        text = docstring(value if not isinstance(value, classmethod | staticmethod) else value.__func__)
        if member.startswith("_") or not text or isinstance(value, int | str):
            continue
        if isinstance(value, property):
            rows.append((code(member), cell(text)))
        elif callable(value):
            rows.append((code(f"{member}{signature(value)}".removesuffix(" -> None")), cell(text)))
    if rows:
        yield from table(("member", "what it is"), rows)


def signature(thing: Any) -> str:
    """Return the signature as it is written, without `self`."""
    try:
        found = inspect.signature(thing)
    except (TypeError, ValueError):
        return ""
    parameters = [
        one.replace(annotation=plain(one.annotation), default=plain_default(one.default))
        for one in found.parameters.values()
        if one.name != "self"
    ]
    found = found.replace(parameters=parameters, return_annotation=plain(found.return_annotation))
    return str(found).replace("<factory>", "{}")


def on_lines(text: str) -> str:
    """Return a signature with a parameter a line, where it is long."""
    if len(text) < 70:
        return text
    depth, lines, begun = 0, [], 1
    for index, letter in enumerate(text):
        depth += (letter in "([") - (letter in ")]")
        if (letter == "," and depth == 1) or (letter == ")" and depth == 0):
            lines.append(f"    {text[begun:index].strip()},")
            begun = index + 1
    return "\n".join(["(", *lines, f"){text[begun:]}"])


class Verbatim:
    """A text that a signature shows as it is."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def plain(annotation: Any) -> Any:
    """Return an annotation without the modules that its names come from."""
    if annotation is inspect.Parameter.empty:
        return annotation
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    return Verbatim(re.sub(r"\b(?:\w+\.)+(?=\w)", "", text))


def plain_default(default: Any) -> Any:
    """Return a default; that of a word is the word."""
    if isinstance(default, StrEnum):
        return Verbatim(repr(default.value))
    return Verbatim(f"{type(default).__name__}.{default.name}") if isinstance(default, Enum) else default


def docstring(thing: Any) -> str:
    """Return the docstring, cleaned."""
    return inspect.cleandoc(getattr(thing, "__doc__", None) or "")


def rule_table(are_wanted: Callable[[SubjectKind], bool]) -> Lines:
    """Return the rules of `stepper lint`, or those that `stepper check` adds, with what comes of breaking them."""
    rows = (
        (rule.id, code(rule.name), str(rule.severity), cell(rule.means), cell(rule.do), cell(rule.source))
        for rule in rules().values()
        if are_wanted(rule.scope)
    )
    yield from table(("id", "rule", "severity", "what it means for a run", "what to do", "source"), rows)


PARTS: MappingProxyType[str, Callable[[], Lines]] = MappingProxyType({
    "command-line": command_line,
    "debugger-commands": debugger_commands,
    **{name: topic_table(topic) for name, topic in (*topics().items(), *COMMAND_LINE_TOPICS.items())},
    "keys": keys,
    "key-presets": key_presets,
    "screens": screens,
    "recording-views": recording_views,
    "recording-tables": recording_tables,
    "figure-formats": figure_formats,
    "figure-options": own_options("export"),
    "compare-options": own_options("compare"),
    "tolerances": tolerances,
    "rounding-allowances": rounding_allowances,
    "mismatch-origins": mismatch_origins,
    "runtime-explanations": runtime_explanations,
    "runtime-faults": runtime_faults,
    "departures": operation_departures,
    "lint-rules": lambda: rule_table(lambda scope: not scope.is_of_runs),
    "check-rules": lambda: rule_table(lambda scope: scope is SubjectKind.RUN),
    "narrow-rules": lambda: rule_table(lambda scope: scope is SubjectKind.NARROW_RUN),
    "operations": operations,
    "python": python_names,
    "benchmarks": benchmarks,
    "real-models": real_models,
})  # fmt: skip
"""By name: what makes a part."""


def filled(text: str) -> str:
    """Return a page with its parts as they should be. KeyError for a part that nothing makes."""

    def made(match: re.Match[str]) -> str:
        content = "\n".join(PARTS[match[1]]()).strip("\n")
        return f"<!-- begin {match[1]} -->\n\n{content}\n\n<!-- end -->"

    return PART.sub(made, text)


def main(words: list[str]) -> int:
    """Write or compare; the exit code."""
    stale = []
    for path in sorted(FOLDER.rglob("*.md")):
        text = path.read_text(encoding="utf-8")
        wanted = filled(text)
        if wanted != text:
            stale.append(path)
            if "--check" not in words:
                path.write_text(wanted, encoding="utf-8")
    if "--check" not in words:
        return 0
    for path in stale:
        print(f"{path} is not up to date: python -m docs.reference", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
