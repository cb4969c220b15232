"""Commands about the session itself: marks, files, history, help, and the end."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from msgspec.structs import replace

from stepper.commands.breakpoint_commands import ensure_complete
from stepper.commands.inspection import evaluated
from stepper.commands.moments import PINNED, pin
from stepper.commands.registry import command, one_of
from stepper.commands.scripts import ScriptError, script_lines
from stepper.commands.session import Answer, Session, required
from stepper.commands.stop_answers import moved
from stepper.commands.topics import help_answer
from stepper.debug.stop import Mark, Reason
from stepper.errors import StepperError, UsageError
from stepper.files.kinds import ARRAY, COMMANDS
from stepper.files.output import OutputFile, ProtectedFiles
from stepper.files.own_files import replacing_own
from stepper.plain_values import storable
from stepper.session.autosave import distrusted_lines

_MOST_SOURCES: Final = 8


@command("mark", syntax="NAME", help="give this moment a name, for goto 'NAME; mark A holds it against now")
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


@command("complete", syntax="LINE", help="how a line can go on: commands, and names with type, shape and value")
def _complete(session: Session, text: str) -> Answer:
    from stepper.commands.completion import Completer  # most sessions at a pipe ask for none

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
