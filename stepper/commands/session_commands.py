"""Commands about the session itself: marks, files, history, help, and the end."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from stepper.commands.breakpoint_commands import ensure_complete
from stepper.commands.command_session import (
    Answer,
    Command,
    Session,
    command,
    command_called,
    commands,
    moved,
    one_of,
    required,
)
from stepper.commands.inspection import evaluated
from stepper.commands.interpreter import Interpreter
from stepper.commands.moment_commands import PINNED, pin
from stepper.debug.stop import Mark, Reason
from stepper.errors import StepperError, UsageError
from stepper.files.configuration import init_file
from stepper.files.file_kinds import ARRAY, COMMANDS
from stepper.files.output import OutputFile, ProtectedFiles
from stepper.files.own_files import replacing_own
from stepper.plain_values import storable
from stepper.session.autosave import distrusted_lines
from stepper.wording import WIDTH, reason_of, two_columns


class ScriptError(StepperError):
    """Report a failed command of a file; the message names file and line.

    The exit code is the exit code of the error.
    """

    def __init__(self, where: str, error: StepperError) -> None:
        super().__init__(f"{where}: {error}")
        self.exit_code, self.kind, self.place = error.exit_code, error.kind, error.place
        self.has_lines = error.has_lines


def script_lines(name: str) -> list[tuple[int, str]]:
    """Return the lines of a file of commands with their numbers, empty ones left out. Raises UsageError."""
    try:
        content = Path(name).read_text(encoding="utf-8-sig")  # editors of Windows write a byte order mark
    except (OSError, ValueError) as error:
        reason = reason_of(Path(name), error) if isinstance(error, OSError) else "it is not text in UTF-8"
        raise UsageError(f"{name}: cannot be read: {reason}") from None
    return [(number, line) for number, line in enumerate(content.splitlines(), 1) if line.strip()]


_SETTING_UP = frozenset({"labels"})


def start_up(interpreter: Interpreter, *, setting_up: bool = False) -> list[str]:
    """Carry out the start-up file, if there is one, and return sentences on its errors.

    Each sentence names file and line; the other commands still run. `setting_up`: only breakpoints, watches and labels;
    other commands are left out.
    """
    path, problems = init_file(), []
    try:
        lines = script_lines(str(path)) if path.is_file() else []
    except StepperError as error:
        return [str(error)]
    for number, line in lines:
        try:
            if not setting_up or interpreter.is_collecting or _sets_up(line):
                interpreter.execute(line)
        except StepperError as error:
            problems.append(f"{path}, line {number}: {error}")
    try:
        ensure_complete(interpreter.session, str(path))
    except StepperError as error:
        problems.append(str(error))
    interpreter.session.history.clear()
    interpreter.session.ended = False
    return problems


def _sets_up(line: str) -> bool:
    if line.lstrip().startswith("#"):
        return False
    command = command_called(line.split()[0])
    return command.group == "breakpoint_commands" or command.name in _SETTING_UP


# --- help -----------------------------------------------------------------------------------------------------------


Rows = tuple[tuple[str, str], ...]
"""How something is written, and what it means."""


class Topic(NamedTuple):
    """A subject of help: a noun phrase for the list of topics, rows, and what holds for all of them."""

    title: str
    rows: Rows
    note: str = ""


_TOPICS = {
    "addresses": Topic("the names of values, operations and iterations", (
        ("h_next", "a value by its name: here and now"),
        ("h'", "the value that the iteration carries to the next; h is the value that it reads"),
        ("h_next:1", "another output than the first"),
        ("h_next@7  @2:5  @-1  @*", "in iteration 7, 2 to 4, the last, all"),
        ("h_next[0,:8]", "a part, in the syntax of numpy"),
        ("h_next[0,3]@7", "an element in iteration 7, as h_next@7[0,3]"),
        ("my_loop::h_next", "in the body of a loop; model::x in the model's own graph; branch::then::x in an If"),
        ("outer@3::inner@0::h", "iteration 0 of the inner loop, in iteration 3 of the outer loop"),
        ("id=12  lstm*  /gate_[ifo]$/", "a layer by its id; all names that match a pattern"),
        ("`aten::add/Add`", "in backquotes, a name with characters other than letters, digits, _ and ."),
    ), "A name is the name of a layer or tensor, its end (after / or .), or the name on a screen: `q/MatMul`, or h for "
       "h.9. The nearest graph counts, with @ITER the nearest loop. If several match, the message lists them."),
    "expressions": Topic("the expressions of print, watch, conditions and predicates", (
        ("x + 1  x * y  x // 2  x ** 2", "arithmetic in numpy's types, also - / % and brackets"),
        ("x < 1  0 <= x < y  x != y", "comparisons; and, or, not for single elements"),
        ("x[0, :8]  x[...]", "a part"),
        ("any  all  max  min  mean  sum", "functions of all elements: max(x)"),
        ("norm  std  argmax  argmin", "more functions of all elements"),
        ("abs  isnan  isinf  isfinite", "functions of each element"),
        ("size  rank  shape  dtype", "number of elements, number of axes, sizes, type, as in dtype(x) == f16"),
        ("prev(x)  ref(x)", "x one iteration before; x in the reference"),
        ("iter  iter(outer)", "the iteration of the innermost loop; of the named loop around it"),
        ("true  false  nan  inf  1e-3", "constants"),
    ), "Put a name with / or :: into backquotes: `q/MatMul` is a value, q/MatMul is a division."),
    "breaks": Topic("the events of break, run-to and --break", (
        ("break h_next  lstm*  MatMul", "after an operation; after all that match a pattern; after all of a type"),
        ("break @7  my_loop@7", "at the start of that iteration, in this or another loop"),
        ("break x if max(x) > 2", "there, if the condition holds"),
        ("break x hit 5  hit 5 exactly", "from the fifth time on; only the fifth time; `once`: only the first time"),
        ("break when max(h) > 2", "wherever an expression becomes true"),
    )),
}  # fmt: skip


@cache
def topics() -> Mapping[str, Topic]:
    """Return all topics by name; those who only run a model load no kinds of breakpoints."""
    from stepper.debug.breakpoints.data_breakpoints import kinds

    rows = [(f"break {one.shown}", one.meaning) for one in kinds().values()]
    breaks = _TOPICS["breaks"]
    return MappingProxyType(_TOPICS | {"breaks": breaks._replace(rows=(*breaks.rows, *rows))})


_EXPLAINED: Mapping[str, str] = MappingProxyType(
    {"EXPR": "expressions", "ADDR": "addresses", "TARGET": "breaks", "changes": "breaks"}
)
"""Words in the syntax of a command, by the topic that explains them."""


def help_answer(name: str, width: int = WIDTH) -> Answer:
    """Return the help for a topic or a command, or for an empty name the list of both. UsageError for another name."""
    if not name:
        how = f"help TOPIC: {', '.join(_TOPICS)}; help COMMAND: how it is written"
        lines = [*two_columns(((one.title, one.help) for one in commands()), width), how]
        return Answer(tuple(lines), {"commands": [_command_data(one) for one in commands()]})
    known = {one.name: one for one in commands()}
    abbreviated = {short: one.name for one in commands() for short in one.abbreviations}
    name = abbreviated.get(name) or one_of(name, (*known, *topics()), "command or topic")
    if name in topics():
        lines = topic_lines(topics()[name], width)
        return Answer(tuple(lines), {"topic": name, "lines": lines})
    return Answer(tuple(_command_lines(known[name], width)), {"commands": [_command_data(known[name])]})


def topic_lines(topic: Topic, width: int = WIDTH) -> list[str]:
    """Return a topic as text."""
    return [*two_columns(topic.rows, width), *textwrap.wrap(topic.note, width, break_on_hyphens=False)]


def _command_lines(command: Command, width: int) -> list[str]:
    usage = textwrap.wrap(f"usage: {command.usage}", width, subsequent_indent="  ", break_on_hyphens=False)
    words = re.findall(r"\w+", command.syntax)
    topics = dict.fromkeys(topic for word, topic in _EXPLAINED.items() if word in words)
    also = [f"see also: {', '.join(f'help {topic}' for topic in topics)}"] if topics else []
    return [*two_columns([(command.title, command.help)], width), *usage, *also]


def _command_data(one: Command) -> dict[str, Any]:
    return {"name": one.name, "abbreviations": one.abbreviations, "usage": one.usage, "help": one.help}


# --- the commands ---------------------------------------------------------------------------------------------------


_MOST_SOURCES = 8


@command("mark", syntax="NAME", help="name this position, for goto 'NAME; mark A makes it the baseline")
def _mark(session: Session, text: str) -> Answer:
    if text == PINNED:
        return pin(session, "")
    if not required(text, "a name").isidentifier():
        raise UsageError("the name of a mark is letters and digits")
    tick = session.debugger.machine.tick
    session.marks[text] = Mark(tick, session.debugger.branches.name)
    return Answer((f"mark {text} is tick {tick}",), {"tick": tick})


@command("save", syntax="EXPR FILE.npy", help="write a value into a file")
def _save(session: Session, text: str) -> Answer:
    words = text.rsplit(maxsplit=1)
    if len(words) != 2 or not words[1].endswith(".npy"):
        raise UsageError("a value and the name of a file that ends in .npy are expected")
    target = OutputFile(Path(words[1]), ARRAY, session.debugger.protected)
    target.check()
    value = storable(evaluated(session, words[0]))
    with replacing_own(target) as file:
        np.save(file, value, allow_pickle=False)
    return Answer((f"{words[1]} written",), {"file": words[1], "shape": list(value.shape)})


@command(
    "session",
    syntax="save|load [FILE]",
    help="keep breakpoints, watches, marks, labels, branches and this place in a file; or put back what is kept there",
)
def _session(session: Session, text: str) -> Answer:
    word, _, name = text.partition(" ")
    what = one_of(required(word, "save or load"), ("save", "load"), "session command")
    file = name.strip() or session.file
    if not file:
        raise UsageError(f"the name of a file is missing: session {what} FILE")
    from stepper.session.session_files import (  # few ask for them, and SQLite takes its time
        restore_session,
        save_session,
    )

    if what == "save":
        save_session(session.debugger, file)
        return Answer((f"session saved in {file}",), {"file": file})
    if restore_session(session.debugger, file).empty:
        raise UsageError(f"{file} keeps no session")
    answer = moved(session, session.debugger.stop)
    return replace(answer, lines=(*answer.lines, *distrusted_lines(session.debugger.breakpoints)))


@command("history", syntax="[FILE]", help="the commands so far, or write them into a file for `source` or --script")
def _history(session: Session, text: str) -> Answer:
    lines = tuple(session.history)
    if not text:
        return Answer(lines, {"commands": list(lines)})
    content = "".join(f"{line}\n" for line in lines)
    target = OutputFile(Path(text), COMMANDS, session.debugger.protected)
    with replacing_own(target) as file:
        file.write(content.encode("utf-8", "surrogateescape"))
    return Answer((f"{len(lines)} commands written to {text}",), {"file": text})


@command("source", syntax="FILE", help="carry out the commands of a file")
def _source(session: Session, text: str) -> Answer:
    if session.sources >= _MOST_SOURCES:
        raise UsageError(f"{_MOST_SOURCES} files of commands are inside one another already")
    script = script_lines(required(text, "a file"))
    session.debugger.protected += ProtectedFiles.of_file(text, "a script of this session")
    lines: list[str] = []
    session.sources += 1
    try:
        for number, line in script:
            before = session.debugger.stop
            try:
                lines += session.execute(line).lines
            except StepperError as error:
                raise ScriptError(f"{text}, line {number}", error) from None
            if session.ended:
                break
            if session.debugger.stop is not before and session.debugger.stop.reason is Reason.PAUSED:
                lines.append(f"{text} is left at line {number}, which was paused")
                break
        ensure_complete(session, text)
    finally:
        session.sources -= 1
    return Answer(tuple(lines))


@command("help", syntax="[TOPIC|COMMAND]", help="this list, or how a command or one of the topics below it is written")
def _help(session: Session, text: str) -> Answer:
    return help_answer(text, session.width)


@command("complete", syntax="LINE", help="complete a line: commands, and names with type, shape and value")
def _complete(session: Session, text: str) -> Answer:
    from stepper.commands.command_completion import Completer  # most sessions at a pipe ask for none

    found = Completer(session.debugger.machine.compiled).of_session(text, session)
    lines, data = [], []
    for one in found:
        value = one.value_text(40)
        lines.append("   ".join(filter(None, (one.line, one.form, value, one.what))))
        data.append({"line": one.line, "word": one.word, "what": one.what, "type": one.form, "value": value})
    return Answer(tuple(lines) or ("nothing is known that begins so",), {"completions": data})


@command("quit", "q", help="leave")
def _quit(session: Session, _text: str) -> Answer:
    session.ended = True
    return Answer()
