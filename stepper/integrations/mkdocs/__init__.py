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

from collections.abc import Iterable
from html import escape
from pathlib import Path
from typing import Any, Final

from stepper.errors import StepperError
from stepper.integrations.documents.figure import DocumentKind, FigureCache, InlineFigures, asked
from stepper.integrations.mkdocs.page import FencePlace, read_fence, tell_anchor

CACHE: Final = Path(".cache", "stepper")
"""Folder of the figures, below that of mkdocs.yml."""
_OF_ELEMENT: Final = ("name", "class")
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
