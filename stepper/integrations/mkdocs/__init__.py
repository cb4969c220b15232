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

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any, Final

from stepper.errors import StepperError
from stepper.integrations.documents.cache import FigureCache
from stepper.integrations.documents.figure import DocumentKind, asked
from stepper.integrations.documents.inline import InlineFigures
from stepper.integrations.mkdocs.page import FencePlace
from stepper.integrations.mkdocs.reading import read_fence

CACHE: Final = Path(".cache", "stepper")
"""Folder of the figures, below that of mkdocs.yml."""


def fence(source: str, language: str, css_class: str, options: object, md: Any, **header: Any) -> str:
    """Return the figure as HTML; where it cannot be drawn the reason in its place, and a warning in the log."""
    place = FencePlace.of(md, source)
    figures: InlineFigures = vars(md).setdefault("stepper_figures", InlineFigures())  # one Markdown is one page
    try:
        model, said = read_fence(source)
        figure = asked(model, said, place.folder, place.folder)
        file = figure.drawn(DocumentKind.SCREEN, FigureCache(place.folder / CACHE))
        return f"<figure{_attributes(css_class, header)}>\n{figures.svg(file)}{_caption(figure.caption)}\n</figure>"
    except StepperError as error:
        place.warn(str(error))
        return (
            f'<div class="admonition failure {escape(css_class)}-error">\n'
            '<p class="admonition-title">This figure was not drawn</p>\n'
            f"<p>{escape(str(error))}</p>\n</div>"
        )


def _caption(text: str) -> str:
    return f"\n<figcaption>{escape(text)}</figcaption>" if text else ""


def _attributes(css_class: str, header: Mapping[str, Any]) -> str:
    """Return those of the figure: its class, and what its header gives, as in `{.stepper #name .class}`."""
    id = header.get("id_value")
    classes = " ".join([css_class, *(header.get("classes") or ())])
    name = f' id="{escape(id)}"' if id else ""
    return f'{name} class="{escape(classes)}"'
