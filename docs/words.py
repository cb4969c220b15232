"""Whether texts are plain English: `python -m docs.words` lists places in pages, help, messages and rules.

It looks for words and openings that have a plainer form, sentences of more than LONGEST words, and sentences that open
with a passive. Docstrings are checked where a page shows them.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from docs.reference import command_parsers
from stepper.commands.command_session import commands
from stepper.commands.session_commands import topics
from stepper.diagnosis.rule import rules

ROOT: Final = Path(__file__).parents[1]
LONGEST: Final = 25
"""Words of a sentence: most have 8 to 15, a list may have more."""

PLAINER: Final = {
    r"\b(is|are|was|were) (told|said)\b": "says, shows",
    r"\bheld against\b|\bholds? \S+ against\b": "compared with",
    r"\bborn\b|\bbirths?\b": "first appears, origin",
    r"\bgravest\b": "most severe",
    r"\bhand(s|ed)? on\b": "carries to the next iteration",
    r"\bparts? (from|company)\b|\bthey part\b|\bpart at\b": "diverges, differs",
    r"\b(mend|mends|mended)\b": "fix",
    r"\bthe same, (with|but|as)\b": "repeat the noun",
    r"^(Of|What|One|That|Those|Which|Whether) (?!.*\?$)": "start with the subject",
    r"\bof which\b|\bof whom\b": "split the sentence",
    r"\bas it is\b": "drop",
    r"\b(that|those) of\b": "repeat the noun",
    r"\bin (the )?place of\b": "instead of",
    r"\b(goes|go|gone|going) on\b": "continues",
    r"\bis what\b": "name it",
    r"\b(story|stories)\b": "explanation",
    r"\bmoments?\b": "position, baseline",
    r"\banew\b": "again",
    r"\bsemantics [0-9]": "the specification of ..., section ...",
    r"\b(is|are) wanted\b": "you need",
    r"\b(visit(s|ed)?|excursions?)\b": "replay",
    r"\bway back\b": "path",
    r"\b(parting|partings)\b": "divergence",
    r"\b(beside|than|of) A\b|\bfrom A\b(?! to)": "baseline",
    r"\b(tells?|telling) (that|them|it|of|what|whether)\b": "shows, says",
    r"\b(take|takes|took|taking) the place of\b": "replaces",
    r"\b(one|each|all|any|some) of these\b": "repeat the noun",
    r"\bjudge[sd]?\b": "checks",
}
_PARTICIPLE: Final = (
    r"(\w+ed|built|chosen|cut|drawn|found|given|held|kept|known|left|lost|made|meant|put|read|run|seen|shown|taken|"
    r"written)"
)
PASSIVE: Final = re.compile(
    rf"^(A|All|An|Any|Each|Every|It|No|The|These|They|This|What)\b( [\w'`-]+){{0,3}}? (is|are|was|were) "
    rf"{_PARTICIPLE} (by|in|to|at|on|as|for|from|into)\b"
)
SENTENCE: Final = re.compile(r"(?<=[.:;!?])\s+|\s+[–—]\s+")
FENCE: Final = re.compile(r"^( *)(`{3,4})[^\n]*\n.*?^\1\2 *$|<!--.*?-->|^---\n.*?^---$", re.MULTILINE | re.DOTALL)

ALLOWED: Final = frozenset(
    {
        "story",  # the name of a view: --view story
        "does it go on?",
        "goes on?",  # the row of a condition, and what figures say of one
        "goes on if",
        "goes on while",
    }
)
"""Names that users type or see as names, wherever they stand."""
NOT_PROSE: Final = frozenset(
    {
        "stepper/engine/arithmetic.py",  # lists of operation types
        "stepper/export/styles.py",
        "stepper/export/figures/builder.py",
        "stepper/export/figures/drawn_graph.py",
        "stepper/export/figures/loop_facts.py",
        "stepper/export/numpy_code/code_file.py",
        "stepper/export/numpy_code/emitters.py",
        "stepper/export/writers/drawings.py",
        "stepper/export/writers/html.py",  # HTML
        "stepper/recording/file.py",  # SQL
        "stepper/sweep/sweep_results.py",
    }
)


class Place(NamedTuple):
    """A text that is not plain: where it stands, what was found, and what is plainer."""

    where: str
    found: str
    plainer: str

    def __str__(self) -> str:
        return f"{self.where}: {self.found!r}: {self.plainer}"


def sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a paragraph, a cell or a message."""
    for part in SENTENCE.split(text):
        if part.strip():
            yield part.strip()


def found_in(where: str, text: str) -> Iterator[Place]:
    """Yield what is not plain in a text; a title or a cell of a table may begin with a question's word."""
    is_title = re.match(r"#+ |\| ?", text)
    text = re.sub(r"^(#+|\|) ?", "", text)
    text = re.sub(r"``[^`]+``|`[^`\n]+`|\[[^]]*\]\([^)]*\)", "X", text)  # names, and titles of other pages
    text = re.sub(r"X((, | or )X)+", "X", text)  # a list of names is one word
    for sentence in sentences(text):
        for pattern, plainer in PLAINER.items():
            if is_title and pattern.startswith("^"):
                continue
            for match in re.finditer(pattern, sentence, re.MULTILINE):
                if not any(name in sentence for name in ALLOWED):
                    yield Place(where, match[0], plainer)
        count = len(sentence.split())
        if count > LONGEST:
            yield Place(where, f"{sentence[:40]}... ({count} words)", "split it")
        if match := PASSIVE.match(sentence):
            yield Place(where, match[0], "say who does it")


def paragraphs(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the paragraphs, list items and table cells of a page, each with its line."""
    text = FENCE.sub(lambda match: "\n" * match[0].count("\n"), path.read_text(encoding="utf-8"))
    begin, lines = 1, list[str]()
    for number, line in enumerate([*text.splitlines(), ""], 1):
        begins = re.match(r"\s*([*-] |[0-9]+\. |\||#|!\[|<)", line)
        if lines and (begins or not line.strip() or lines[0].startswith("#")):
            yield begin, " ".join(lines)
            lines = []
        if line.lstrip().startswith("|"):
            yield from ((number, f"| {cell.strip()}") for cell in re.split(r"(?<!\\)\|", line) if cell.strip())
        elif line.strip():
            begin, lines = (begin, lines) if lines else (number, lines)
            lines.append(re.sub(r"^\s*([*-] |[0-9]+\. )", "", line).strip())


def in_pages() -> Iterator[Place]:
    """Yield what is not plain in the pages and notebooks."""
    others = (ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md"))
    for path in (*others, *sorted((ROOT / "docs").rglob("*.md"))):
        name = path.relative_to(ROOT).as_posix()
        for line, text in paragraphs(path):
            yield from found_in(f"{name}:{line}", text)
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        for number, one in enumerate(json.loads(path.read_text(encoding="utf-8"))["cells"], 1):
            if one["cell_type"] == "markdown":
                for text in "".join(one["source"]).split("\n\n"):
                    yield from found_in(f"{path.relative_to(ROOT).as_posix()}, cell {number}", text)


def in_help() -> Iterator[Place]:
    """Yield what is not plain in the help of the command line and of the debugger."""
    for name, parser in command_parsers().items():
        yield from found_in(f"stepper {name}", str(parser.description))
        for action in parser._actions:
            yield from found_in(f"stepper {name} {action.dest}", str(action.help))
    for command in commands():
        yield from found_in(f"help {command.name}", command.help)
    for name, topic in topics().items():
        for text in (topic.title, topic.note, *(row[1] for row in topic.rows)):
            yield from found_in(f"help {name}", text)


def in_rules() -> Iterator[Place]:
    """Yield what is not plain in the texts of rules."""
    for rule in rules().values():
        for text in (rule.says, rule.means, rule.do, rule.source):
            yield from found_in(rule.id, text)


def in_messages() -> Iterator[Place]:
    """Yield what is not plain in the strings of the program, of which docstrings are none."""
    for top in ("stepper", "tui/stepper_tui"):
        for path in sorted((ROOT / top).rglob("*.py")):
            name = path.relative_to(ROOT).as_posix()
            if name not in NOT_PROSE:
                for line, text in strings(path):
                    for part in text.split("\n"):
                        yield from found_in(f"{name}:{line}", part)


def strings(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the strings with several words of a file, docstrings left out; parts that are filled in are `X`."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    inside: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
            inside.add(id(node.value))
        if isinstance(node, ast.JoinedStr):
            inside.update(id(part) for part in node.values)
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            parts = (part.value if isinstance(part, ast.Constant) else "X" for part in node.values)
            text = "".join(map(str, parts))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            text = node.value
        else:
            continue
        if text.count(" ") > 2:
            yield node.lineno, text


def places() -> Iterator[Place]:
    """Yield all places that are not plain."""
    for search in (in_pages, in_help, in_rules, in_messages):
        yield from search()


if __name__ == "__main__":
    listed = list(places())
    print(*listed, sep="\n")
    sys.exit(bool(listed))
