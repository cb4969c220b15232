"""The manual page `stepper(1)`, made from the parsers of the command line.

python -m docs.man_page            write it
python -m docs.man_page --check    write nothing; exit with 1 where it is not up to date
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from stepper import __version__
from stepper.cli.parser import command_parsers, parser
from stepper.cli.usage import Parser
from stepper.errors import EXIT_CODES

PAGE = Path(__file__).parent / "stepper.1"


def text() -> str:
    """Return the page in the language of man."""
    top = parser()
    return "\n".join(
        [
            f'.TH STEPPER 1 "" "stepper {__version__}" "User Commands"',
            ".SH NAME",
            r"stepper \- a debugger for the loops of a neural network",
            ".SH SYNOPSIS",
            *(f".B {_plain(one)}\n.br" for one in top.pattern.split(", ")),
            ".SH DESCRIPTION",
            _plain(top.description or ""),
            *(line for name, one in command_parsers().items() for line in _command(name, one)),
            ".SH EXIT STATUS",
            *(line for code, meaning in EXIT_CODES.items() for line in (".TP", f".B {code}", _plain(meaning))),
            "",
        ]
    )


def _command(name: str, one: Parser) -> Iterator[str]:
    yield f".SH {name.upper()}"
    yield f".B {_plain(one.pattern)}"
    yield ".PP"
    yield _plain(one.description or "")
    yield ".PP\nExamples:\n.nf"
    yield from (f"  {_plain(example)}" for example in one.examples)
    yield ".fi"
    yield from _options(one.actions)


def _options(actions: Iterable[argparse.Action]) -> Iterator[str]:
    for action in actions:
        value = (
            "" if action.nargs == 0 else str(action.metavar or "|".join(map(str, action.choices or ())) or action.dest)
        )
        head = [", ".join(action.option_strings), value] if action.option_strings else [value]
        yield ".TP"
        yield f".B {_plain(' '.join(filter(None, head)))}"
        yield _plain((action.help or "").replace("%%", "%"))


def _plain(text: str) -> str:
    """Return a text in which nothing is a command of man."""
    escaped = " ".join(text.split()).replace("\\", "\\e").replace("-", "\\-")
    return f"\\&{escaped}" if escaped.startswith((".", "'")) else escaped


if __name__ == "__main__":
    if sys.argv[1:] == ["--check"]:
        sys.exit(not PAGE.is_file() or PAGE.read_text() != text())
    PAGE.write_text(text())
