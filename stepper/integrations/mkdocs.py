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
from html import escape
from pathlib import Path
from typing import Any, Final

from stepper.errors import StepperError
from stepper.integrations.documents import figure_of_text, inline_svg, page_figure

CACHE: Final = Path(".cache", "stepper")
"""Folder of the figures, below that of mkdocs.yml."""
_log: Final = logging.getLogger("mkdocs.stepper")  # what warns below this name ends a build that is strict


def fence(source: str, language: str, css_class: str, options: object, md: Any, **kwargs: object) -> str:
    """Return a figure as an element of the page; of one that cannot be drawn why, which is a warning of the build."""
    page, folder = _place(md)
    try:
        figure, caption = figure_of_text(source, folder)
        shown: set[str] = md.__dict__.setdefault("stepper_figures", set())  # one Markdown is one page
        return page_figure(inline_svg(figure.drawn("svg", folder / CACHE), shown), caption, css_class)
    except StepperError as error:
        _log.warning("%s: %s", _where(page, source), error)
        return f'<pre class="{escape(css_class)}-error">{escape(str(error))}</pre>'


def _place(md: Any) -> tuple[Any, Path]:
    """Return the page's file and the folder of mkdocs.yml, which the processor of links knows; None and here else."""
    for one in md.treeprocessors:
        file, config = getattr(one, "file", None), getattr(one, "config", None)
        configured = getattr(config, "config_file_path", None)
        if hasattr(file, "src_uri") and configured:
            return file, Path(configured).resolve().parent
    return None, Path.cwd()


def _where(page: Any, source: str) -> str:
    """Return page and line of a fence."""
    if page is None:
        return "a page"
    path = Path(page.abs_src_path) if page.abs_src_path else None
    if path is None or not path.is_file():
        return str(page.src_uri)
    wanted = [line.strip() for line in source.splitlines()]
    lines = [line.strip() for line in path.read_text(encoding="utf-8", errors="replace").splitlines()]
    for number in range(1, len(lines) - len(wanted)):
        inside, end = lines[number : number + len(wanted)], lines[number + len(wanted)]
        if inside == wanted and _is_fence(end) and _is_fence(lines[number - 1]) and "stepper" in lines[number - 1]:
            return f"{page.src_uri}:{number}"
    return str(page.src_uri)


def _is_fence(line: str) -> bool:
    return line.startswith(("```", "~~~"))
