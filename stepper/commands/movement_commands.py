"""Commands that move in time."""

from __future__ import annotations

from collections.abc import Callable

from stepper.commands.command_session import Answer, Session, command, count, moved, number, required
from stepper.commands.moment_commands import PINNED
from stepper.debug.stop import Reason, Stop


def _verb(*names: str, help: str, syntax: str = "", moves: bool = True) -> None:
    """Register a command that is a verb of the debugger; it takes a count where it has a syntax."""

    @command(*names, syntax=syntax, help=help, moves=moves)
    def move(session: Session, text: str) -> Answer:
        verb = getattr(session.debugger, names[0].replace("-", "_"))
        return moved(session, verb(count(text)) if syntax else verb())


_verb("next", "n", syntax="[N]", help="the next operation here, a nested loop or branch as one")
_verb("step", "s", syntax="[N]", help="the next operation, into nested bodies too")
_verb("finish", "f", help="after the last iteration of this loop; from there, or in a branch, out of it")


@command(
    "iter",
    syntax="N|+N|-N|first|last",
    help="the same place in another iteration of this loop; outside of loops one of any",
    moves=True,
)
def _iter(session: Session, text: str) -> Answer:
    debugger = session.debugger
    if text in ("first", "last"):
        return moved(session, debugger.goto_iteration(0 if text == "first" else -1))
    wanted = number(required(text, "the iteration"), "an iteration: N, +N, -N, first or last")
    if text[0] == "+":
        return moved(session, debugger.next_iteration(wanted))
    if text[0] == "-":
        return moved(session, debugger.previous_iteration(-wanted))
    return moved(session, debugger.goto_iteration(wanted))


@command("continue", "c", syntax="[N]", help="on to the next stop (the N-th), or to the end", moves=True)
def _continue(session: Session, text: str) -> Answer:
    return _to_stops(session, text, session.debugger.continue_)


@command("until", syntax="EXPR", help="on to where the expression holds, or to the next stop", moves=True)
def _until(session: Session, text: str) -> Answer:
    return moved(session, session.debugger.until(required(text, "an expression")))


@command(
    "run-to",
    syntax="TARGET",
    help="on to an operation, an iteration, an output, or into a loop; or to the next stop",
    moves=True,
)
def _run_to(session: Session, text: str) -> Answer:
    return moved(session, session.debugger.run_to(required(text, "what to run to")))


_verb("first", help="the start of the run", moves=False)
_verb("last", help="the end of the run, whatever would stop on the way", moves=False)
_verb("reverse-next", "rn", syntax="[N]", help="next, backward")
_verb("reverse-step", "rs", syntax="[N]", help="step, backward")
_verb("reverse-finish", "rf", help="before the first iteration of this loop or branch")


@command("reverse-continue", "rc", syntax="[N]", help="back to the stop before, or to the start", moves=True)
def _reverse_continue(session: Session, text: str) -> Answer:
    return _to_stops(session, text, session.debugger.reverse_continue)


def _to_stops(session: Session, text: str, move: Callable[[], Stop]) -> Answer:
    stop = move()
    for _ in range(count(text) - 1):
        if stop.reason is not Reason.BREAK:
            break
        stop = move()
    return moved(session, stop)


@command("to-anomaly", help="on to where NaN or Inf is made or a carried shape changes, or the next stop", moves=True)
def _to_anomaly(session: Session, _text: str) -> Answer:
    return _among_anomalies(session, session.debugger.continue_)


@command("reverse-to-anomaly", help="the same, backward", moves=True)
def _reverse_to_anomaly(session: Session, _text: str) -> Answer:
    return _among_anomalies(session, session.debugger.reverse_continue)


def _among_anomalies(session: Session, move: Callable[[], Stop]) -> Answer:
    with session.debugger.breakpoints.anomalies():
        return moved(session, move())


@command("goto", syntax="N|tick N|ADDR|'MARK", help="iteration N; a tick; after an operation, or into a loop; a mark")
def _goto(session: Session, text: str) -> Answer:
    debugger = session.debugger
    required(text, "where to go")
    if text == f"'{PINNED}":
        return moved(session, debugger.goto_pinned())
    if text.startswith("'"):
        return moved(session, debugger.goto_tick(session.marked(text[1:])))
    if text.split()[0] == "tick":
        return moved(session, debugger.goto_tick(number(text[len("tick") :].strip(), "a tick")))
    if text.removeprefix("-").isdecimal():
        return moved(session, debugger.goto_iteration(number(text)))
    return moved(session, debugger.goto(text))
