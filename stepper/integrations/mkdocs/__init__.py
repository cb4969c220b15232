"""A fence for MkDocs and every other program with `pymdownx.superfences`: its lines are a model and options.

    markdown_extensions:
      - pymdownx.superfences:
          custom_fences:
            - name: stepper
              class: stepper
              format: !!python/name:stepper.integrations.mkdocs.fence

Paths are relative to the folder of mkdocs.yml, elsewhere to the working directory.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

from stepper.errors import StepperError, UsageError
from stepper.integrations.documents import DocumentKind, FigureCache, InlineFigures, asked

_LOG = logging.getLogger("mkdocs.plugins.stepper")
"""MkDocs prints the warnings below its own name, and `--strict` counts them."""
_FENCES = ("```", "~~~")


class FencePlace(NamedTuple):
    """Place of a fence: the folder of mkdocs.yml, and the page and the line in it ("" and 0: not known).

    Outside of MkDocs it is the current folder.
    """

    folder: Path
    page: str = ""
    line: int = 0

    @classmethod
    def of(cls, md: Any, source: str) -> FencePlace:
        """Return where the converter of a page has met a fence with this text."""
        for one in md.treeprocessors:  # the one of links knows the page
            file, config = getattr(one, "file", None), getattr(one, "config", None)
            configured = getattr(config, "config_file_path", None)
            if file is not None and configured:
                return cls(Path(configured).resolve().parent, file.src_uri, _line(file, source))
        return cls(Path.cwd())

    def warn(self, text: str) -> None:
        """Tell an error as a warning with its place."""
        where = [self.page or "a page", *([str(self.line)] if self.line else [])]
        _LOG.warning("%s: %s", ":".join(where), text)


def tell_anchor(md: Any, name: str) -> None:
    """Have MkDocs know a name that links lead to: it sees none in what fences make."""
    for one in md.treeprocessors:
        names = getattr(one, "present_anchor_ids", None)
        if isinstance(names, set):
            names.add(name)


def _line(file: Any, source: str) -> int:
    """Return the line of the fence, from 1; 0 where its text is made by something else than the page."""
    try:
        page: str = file.content_string
    except (OSError, UnicodeError):
        return 0
    wanted, begin, found = _filled(source.splitlines()), 0, [""]
    for number, line in enumerate(map(str.strip, page.splitlines()), 1):
        if not begin and line.startswith(_FENCES) and "stepper" in line:
            begin, found = number, []
        elif begin and line.startswith(_FENCES):
            if _filled(found) == wanted:
                return begin
            begin = 0
        else:
            found.append(line)
    return 0


def _filled(lines: Iterable[str]) -> list[str]:
    return [line.strip() for line in lines if line.strip()]


_OPTION = re.compile(r":?([a-z][a-z-]*)(?:\s*:(?:\s+(.*))?)?")


def read_fence(source: str) -> tuple[str, Mapping[str, str]]:
    """Return the model ("": there is none) and the options: `name: value`, or a name alone.

    What stands there several times has a value on each line. Raise UsageError for another line.
    """
    lines = [line.strip() for line in source.splitlines() if line.strip()]
    found: dict[str, str] = {}
    for line in lines[1:]:
        match = _OPTION.fullmatch(line)
        if match is None:
            raise UsageError(f"'{line[:60]}' is no option; write one in each line, such as view: rolled")
        name, value = match[1], match[2] or ""
        found[name] = f"{found[name]}\n{value}" if name in found else value
    return lines[0] if lines else "", found


CACHE = Path(".cache", "stepper")
"""Folder of the figures, below the folder of mkdocs.yml."""
_OF_ELEMENT = ("name", "class")
"""Options that are attributes of the element in the page."""


def fence(source: str, language: str, css_class: str, options: object, md: Any, **header: Any) -> str:
    """Return the figure as HTML; where it cannot be drawn the reason in its place, and a warning in the log."""
    place = FencePlace.of(md, source)
    figures: InlineFigures = vars(md).setdefault("stepper_figures", InlineFigures())  # one Markdown is one page
    try:
        model, said = read_fence(source)
        options = {key: value for key, value in said.items() if key not in _OF_ELEMENT}
        figure = asked(model, options, place.folder, place.folder)
        file = figure.drawn(DocumentKind.SCREEN, FigureCache(place.folder / CACHE))
        name = said.get("name", "").strip() or header.get("id_value") or ""
        tell_anchor(md, name)
        classes = [css_class, *(header.get("classes") or ()), *said.get("class", "").split()]
        return _element(name, classes, figures.svg(file), figure.caption)
    except StepperError as error:
        place.warn(str(error))
        return (
            f'<div class="admonition failure {escape(css_class)}-error">\n'
            '<p class="admonition-title">This figure was not drawn</p>\n'
            f"<p>{escape(str(error))}</p>\n</div>"
        )


def _element(name: str, classes: Iterable[str], svg: str, caption: str) -> str:
    id = f' id="{escape(name)}"' if name else ""
    below = f"\n<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f'<figure{id} class="{escape(" ".join(classes))}">\n{svg}{below}\n</figure>'
