"""Code tokens of the program: names, operators, numbers and texts, without comments and docstrings."""

from __future__ import annotations

import tokenize
from collections import Counter
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
_LAYOUT: Final = {tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT}
_NO_CODE: Final = {*_LAYOUT, tokenize.NL, tokenize.ENCODING, tokenize.ENDMARKER, tokenize.COMMENT}


def tokens(path: Path) -> int:
    """Return the code tokens of a file; a text that stands where a statement begins is a docstring."""
    count, begins = 0, True
    with path.open("rb") as file:
        for token in tokenize.tokenize(file.readline):
            if token.type in _NO_CODE:
                begins = begins or token.type in _LAYOUT
            else:
                count += not (begins and token.type == tokenize.STRING)
                begins = False
    return count


def part_of(path: Path) -> str:
    """Return the part that a file belongs to: a folder of stepper, stepper for its own modules, or tui."""
    parts = path.relative_to(ROOT).parts
    return parts[1] if parts[0] == "stepper" and len(parts) > 2 else parts[0]


def sources() -> list[Path]:
    """Return the files of the program."""
    return sorted(path for top in ("stepper", "tui") for path in (ROOT / top).rglob("*.py"))


def measured() -> Counter[str]:
    """Return the tokens of each part, and how many files there are and how many names of files come again."""
    files = sources()
    found = Counter[str]()
    for path in files:
        found[part_of(path)] += tokens(path)
    names = Counter(path.name for path in files if path.name not in ("__init__.py", "__main__.py"))
    found["(files)"], found["(repeated names)"] = len(files), sum(names.values()) - len(names)
    return found


if __name__ == "__main__":
    for name, count in measured().most_common():
        print(f"    {name!r}: {count:_},")
