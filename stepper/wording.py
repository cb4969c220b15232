"""Words of messages: excerpts of texts, counts and sizes, names near a word, and why a file or JSON cannot be read.

Imports nothing heavy, so that a mistyped word of the command line is answered at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path

_MOST = 3
_LONGEST = 200
_MOST_FILES = 2000


DISTRIBUTION = "loop-stepper"
"""How the program is called on the index of packages, where `stepper` is another one."""


def install_line(extra: str) -> str:
    """Return the line that installs what an optional part of the program needs."""
    return f"pip install '{DISTRIBUTION}[{extra}]'"


def near_names(word: str, names: Iterable[str], cutoff: float = 0.6) -> list[str]:
    """Return the names that look like a word, at most three, the nearest first; capitals are no difference."""
    import difflib  # here, so that --help does not wait for it

    known = {name.lower(): name for name in names if len(name) <= _LONGEST}
    return [known[name] for name in difflib.get_close_matches(word[:_LONGEST].lower(), known, n=_MOST, cutoff=cutoff)]


def near_text(word: str, names: Iterable[str], cutoff: float = 0.6) -> str:
    """`near is NAME`, `near are NAME, NAME`; empty where none looks like the word."""
    return near_sentence(near_names(word, names, cutoff))


def near_sentence(found: Sequence[str]) -> str:
    """Return the same of names that were found to be near."""
    return f"near {'is' if len(found) == 1 else 'are'} {', '.join(map(printable, found))}" if found else ""


def enumerated(words: Sequence[str]) -> str:
    """Return words as a sentence lists them: one, two and three."""
    return " and ".join([", ".join(words[:-1]), words[-1]]) if len(words) > 1 else "".join(words)


def none_of(word: str, names: Iterable[str]) -> str:
    """Return a sentence on a word that is none of a few names: which there are, and which is near."""
    names = tuple(names)
    listed = enumerated(names)
    near = near_text(word, names)
    word = excerpt(word)
    said = f"'{word}' is not known, there is only {listed}" if len(names) == 1 else f"'{word}' is none of {listed}"
    return f"{said}; {near}" if near else said


def reason_of(path: Path, error: OSError) -> str:
    """Return why a file cannot be read; of one that is not there, which files beside it have a near name."""
    if not isinstance(error, FileNotFoundError):
        return error.strerror or str(error)
    return no_such_file(path)


def no_such_file(path: Path) -> str:
    """Return a sentence on a file that is not there."""
    folder = path.parent
    if not folder.is_dir():
        return f"there is no folder '{folder}'"
    near = near_text(path.name, _names_in(folder, path.suffix), 0.7)
    return f"there is no such file{f'; {near}' if near else ''}"


def _names_in(folder: Path, suffix: str) -> list[str]:
    """Return names of files in a folder; those of the same suffix where there are any."""
    found = (one.name for one in folder.iterdir() if one.is_file() and not one.name.startswith("."))
    try:
        names = list(islice(found, _MOST_FILES))
    except OSError:
        return []
    alike = [name for name in names if suffix and name.lower().endswith(suffix.lower())]
    return sorted(alike or names)


def excerpt(text: str, longest: int = 80) -> str:
    """Return the text if it is short, else its beginning and end; what cannot be printed (line breaks) is a blank."""
    if len(text) > longest:
        text = f"{text[: longest * 2 // 3]} ... {text[-(longest // 3) :]}"
    return printable(text)


def printable(text: str) -> str:
    """Return the text with a blank for what a terminal would obey, in names of files and models of strangers."""
    return text if text.isprintable() else "".join(letter if letter.isprintable() else " " for letter in text)


def printable_lines(text: str) -> str:
    """Return a text of several lines, each printable."""
    return "\n".join(map(printable, text.split("\n")))


def counted(count: int, noun: str) -> str:
    """Return a count with its noun, such as `1 iteration` and `1,200 iterations`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


_UNITS = ("bytes", "KB", "MB", "GB", "TB", "PB", "EB")


def size_text(size: int) -> str:
    """Return a number of bytes in the unit that fits: `48 bytes`, `1.5 KB`, `400 MB`; KB is 1024, as in options."""
    power = min(max(size.bit_length() - 1, 0) // 10, len(_UNITS) - 1)
    if not power:
        return f"{size} byte{'' if size == 1 else 's'}"
    number = size / 1024**power
    return (
        f"{number:,.0f} {_UNITS[power]}" if number >= 100 or number == int(number) else f"{number:.1f} {_UNITS[power]}"
    )


_SHOWN = 20


def json_fault(text: str, error: Exception) -> str:
    """Return a sentence with the place, for an error that `json.loads` raised for this text."""
    from json import JSONDecodeError  # few starts read any JSON

    if not isinstance(error, JSONDecodeError):
        return "it is nested too deeply" if isinstance(error, RecursionError) else "a number in it is too long"
    at = error.pos
    if not text[at:].strip():
        return "it ends too early; a bracket or a quote is not closed" if text.strip() else "it is empty"
    line = text.count("\n", 0, at) + 1
    place = f"character {at + 1}" if "\n" not in text else f"line {line}, character {at - text.rfind(chr(10), 0, at)}"
    return f"'{printable(text[at : at + _SHOWN])}' at {place} is not expected there"


def duration_text(seconds: float) -> str:
    """Return about how long it takes: `80 s`, `12 min`, `1 h 34 min`."""
    whole = round(seconds)
    if whole < 90:
        return f"{whole} s"
    minutes = round(whole / 60)
    return f"{minutes} min" if minutes < 90 else f"{minutes // 60} h {minutes % 60} min"


WIDTH = 80
"""Columns of a help."""
_WIDEST_LEFT = 31


def two_columns(rows: Iterable[tuple[str, str]], width: int) -> list[str]:
    """Return a line for each row.

    Text that is too long for the right column continues below. Text that is too long for the left column has its own
    line, and the right text starts below it.
    """
    import textwrap  # here, so that no start waits for it

    rows = list(rows)
    left = min(max((len(written) for written, _ in rows), default=0), _WIDEST_LEFT)
    lines: list[str] = []
    for written, means in rows:
        parts = textwrap.wrap(means, max(width - left - 2, 20), break_on_hyphens=False) or [""]
        if len(written) > left:
            lines.append(written)
            written = ""
        lines += [f"{written if not index else '':{left}}  {part}".rstrip() for index, part in enumerate(parts)]
    return lines
