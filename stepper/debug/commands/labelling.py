"""The command that gives the numbers of a value names."""

from __future__ import annotations

from pathlib import Path

from stepper.debug.addresses import Target, parse_address, resolve
from stepper.debug.commands.registry import command
from stepper.debug.commands.session import Answer, Session
from stepper.debug.labels import read_labels
from stepper.errors import UsageError


@command("labels", syntax="NAME [FILE [KEY]]", help="show the numbers of a value as words: a file of lines, or JSON")
def _labels(session: Session, text: str) -> Answer:
    words = text.split()
    if not 1 <= len(words) <= 3:
        raise UsageError("expected a value, a file of labels and, for a part of a JSON object, its key")
    target = target_called(session, words[0])
    labels = read_labels(Path(words[1]), *words[2:]) if len(words) > 1 else ()
    session.debugger.labels.put(target, labels)
    if not labels:
        return Answer((f"{words[0]} is shown as numbers",), {"value": words[0], "labels": 0})
    return Answer((f"{words[0]} has {len(labels)} labels",), {"value": words[0], "labels": len(labels)})


def target_called(session: Session, name: str) -> Target:
    """The place that a name means, seen from where the run stands."""
    machine = session.debugger.machine
    where = machine.stack[-1].program if machine.stack else None
    return resolve(parse_address(name), machine.compiled, where)
