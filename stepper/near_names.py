"""Near names: names that look like a word, and files that look like one that is not there.

Imports nothing heavy, so that a mistyped word of the command line is answered at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

_MOST: Final = 3
_LONGEST: Final = 200
_MOST_FILES: Final = 2000


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
    return f"near {'is' if len(found) == 1 else 'are'} {', '.join(map(_printable, found))}" if found else ""


def _printable(name: str) -> str:
    """Return a name of a file or a model, a stranger's, without what a terminal would obey."""
    return "".join(letter if letter.isprintable() else " " for letter in name)


def none_of(word: str, names: Iterable[str]) -> str:
    """Return a sentence on a word that is none of a few names: which there are, and which is near."""
    names = tuple(names)
    listed = " and ".join([", ".join(names[:-1]), names[-1]]) if len(names) > 1 else "".join(names)
    near = near_text(word, names)
    return f"'{word}' is {'not' if len(names) == 1 else 'none of'} {listed}" + (f"; {near}" if near else "")


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
    names: list[str] = []
    try:
        for one in folder.iterdir():
            if one.is_file() and not one.name.startswith("."):
                names.append(one.name)
            if len(names) >= _MOST_FILES:
                break
    except OSError:
        return []
    alike = [name for name in names if suffix and name.lower().endswith(suffix.lower())]
    return sorted(alike or names)
