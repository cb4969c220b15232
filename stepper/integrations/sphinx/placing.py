"""Where figures go: into the page of HTML, as files beside the text elsewhere."""

from __future__ import annotations

from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging

from stepper.errors import StepperError
from stepper.integrations.documents.cache import FigureCache
from stepper.integrations.documents.figure import DocumentFigure, DocumentKind
from stepper.integrations.documents.inline import InlineFigures

_LOG: Final = logging.getLogger(__name__)
_TYPES: Final = MappingProxyType({DocumentKind.PRINT: "application/pdf", DocumentKind.PICTURE: "image/png"})
"""Kinds that are files, the better one first."""


class PictureNode(nodes.General, nodes.Element):
    """A figure of stepper; its attribute `figure` is the DocumentFigure."""


def kind_for(env: BuildEnvironment) -> DocumentKind | None:
    """Return the kind of document that is built; None for one without pictures."""
    app: Sphinx = env._app if hasattr(env, "_app") else env.app  # which says that it is deprecated, from Sphinx 9 on
    builder = app.builder
    if builder.format == "html":
        return DocumentKind.SCREEN
    return next((kind for kind, type in _TYPES.items() if type in builder.supported_image_types), None)


def cache_of(env: BuildEnvironment) -> FigureCache:
    """Return the figures that are kept with what else is kept between builds."""
    return FigureCache(Path(env.doctreedir) / "stepper")


def warn(error: StepperError, location: Any) -> None:
    """Tell an error as a warning with its place; `suppress_warnings` knows it as `stepper`."""
    _LOG.warning("%s", error, location=location, type="stepper")


def told(error: StepperError) -> nodes.paragraph:
    """Return the text that stands where a figure would."""
    return nodes.paragraph("", f"This figure was not drawn: {error}", classes=["stepper-error"])


def visit_html(translator: Any, node: PictureNode) -> None:
    """Write the figure into the page."""
    figure: DocumentFigure = node["figure"]
    figures = vars(translator).setdefault("stepper_figures", InlineFigures())
    try:
        text = figures.svg(figure.drawn(DocumentKind.SCREEN, cache_of(translator.builder.env)))
    except StepperError as error:
        warn(error, node)
        text = f'<p class="stepper-error">{escape(told(error).astext())}</p>'
    classes = escape(" ".join(["stepper", *node["classes"]]))
    translator.body.append(f'<div class="{classes}">{text}</div>\n')
    raise nodes.SkipNode


class PlacedImages(SphinxPostTransform):
    """Makes images of figures for builders that write no HTML."""

    default_priority = 50  # before images are collected and converted

    def run(self, **_options: Any) -> None:
        """Replace the figures of a document."""
        kind = kind_for(self.env)
        if kind is DocumentKind.SCREEN:
            return
        for node in list(self.document.findall(PictureNode)):
            node.replace_self(self._image(node, kind))

    def _image(self, node: PictureNode, kind: DocumentKind | None) -> nodes.Element:
        figure: DocumentFigure = node["figure"]
        alt = figure.alt or figure.caption or figure.model
        if kind is None:
            return nodes.image("", uri=figure.model, alt=alt, candidates={"?": ""})
        try:
            file = str(figure.drawn(kind, cache_of(self.env)))
        except StepperError as error:
            warn(error, node)
            return told(error)
        self.env.images.add_file(self.env.docname, file)
        return nodes.image("", uri=file, alt=alt, candidates={_TYPES[kind]: file}, classes=list(node["classes"]))
