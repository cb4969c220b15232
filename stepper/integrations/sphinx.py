"""The extension of Sphinx: its directive `stepper` draws figures of models and of runs.

A project names it in its `conf.py`: `extensions = ["stepper.integrations.sphinx"]`.

The directive: `.. stepper:: MODEL`, with the options of `stepper export`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from html import escape
from pathlib import Path
from types import MappingProxyType
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

from stepper import __version__
from stepper.errors import StepperError
from stepper.integrations.documents import (
    DocumentFigure,
    DocumentKind,
    FigureCache,
    InlineFigures,
    asked,
    keys,
)


def failed_in(env: BuildEnvironment) -> set[str]:
    """Return the names of the documents with a figure that could not be drawn."""
    found: set[str] = vars(env).setdefault("stepper_failed", set())
    return found


def outdated(_app: Sphinx, env: BuildEnvironment, *_documents: Set[str]) -> list[str]:
    """Return documents that are read again although no file of theirs changed, so that each build says what failed."""
    return sorted(failed_in(env))


def purge(_app: Sphinx, env: BuildEnvironment, docname: str) -> None:
    """Forget a document that is read again or is gone."""
    failed_in(env).discard(docname)


def merge(_app: Sphinx, env: BuildEnvironment, docnames: Iterable[str], other: BuildEnvironment) -> None:
    """Take what another process has read."""
    failed_in(env).update(failed_in(other).intersection(docnames))


_LOG = logging.getLogger(__name__)
_TYPES = MappingProxyType({DocumentKind.PRINT: "application/pdf", DocumentKind.PICTURE: "image/png"})
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


class _OptionsOfExport(dict[str, Callable[[str], Any]]):
    """Takes every option, so that an unknown one is answered with those that are near."""

    def __missing__(self, _name: str) -> Callable[[str], Any]:
        return str


_OF_FIGURES = ("align", "figclass", "class", "name")
"""Options that Sphinx's own figures have, too."""


def _align(text: str) -> str:
    chosen: str = directives.choice(text, ("left", "center", "right"))
    return chosen


class StepperDirective(SphinxDirective):
    """A figure of a model or a run. What stands in the directive is caption and legend, as in `figure`."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec: ClassVar[Any] = _OptionsOfExport(
        {
            **dict.fromkeys((*keys(), "name"), directives.unchanged),
            **dict.fromkeys(("class", "figclass"), directives.class_option),
            "align": _align,
        }
    )

    def run(self) -> list[nodes.Node]:
        """Return the figure; where it cannot be drawn, with the reason in its place, and a warning."""
        location = self.get_location()
        options = {name: value for name, value in self.options.items() if name not in _OF_FIGURES}
        folder, root = Path(self.env.doc2path(self.env.docname)).parent, Path(self.env.srcdir)
        caption, picture = options.get("caption", "").strip(), nodes.Element()
        try:
            asked_for = asked(self.arguments[0].strip(), options, folder, root)
            picture = self._picture(asked_for)
        except StepperError as error:
            failed_in(self.env).add(self.env.docname)
            warn(error, location)
            picture = told(error)
        self.set_source_info(picture)
        picture["classes"] += self.options.get("class", [])
        if not caption and not self.content and not {"name", "align", "figclass"} & {*self.options}:
            return [picture]
        figure = nodes.figure("", picture, classes=self.options.get("figclass", []))
        self.set_source_info(figure)
        if "align" in self.options:
            figure["align"] = self.options["align"]
        self._tell(figure, caption)
        self.add_name(figure)
        return [figure]

    def _picture(self, asked_for: DocumentFigure) -> PictureNode:
        """Return the node of a figure that can be drawn. Raise StepperError."""
        for path in asked_for.files():
            if path.is_file():  # one that is not there would have the document read in each build
                self.env.note_dependency(str(path))
        kind = kind_for(self.env)
        if kind is not None:
            asked_for.drawn(kind, cache_of(self.env))
        return PictureNode("", figure=asked_for)

    def _tell(self, figure: nodes.figure, caption: str) -> None:
        """Add caption and legend."""
        inside = self.parse_content_to_nodes()
        if caption:
            parsed, messages = self.parse_inline(caption)
            figure += nodes.caption(caption, "", *parsed)
            inside = [*messages, *inside]
        elif inside and isinstance(inside[0], nodes.paragraph):
            first = inside.pop(0)
            assert isinstance(first, nodes.paragraph)
            figure += nodes.caption(first.rawsource, "", *first.children)
        if inside:
            figure += nodes.legend("", *inside)


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive: figures are part of the page in HTML, and files elsewhere."""
    app.add_directive("stepper", StepperDirective)
    app.add_node(PictureNode, html=(visit_html, None))
    app.add_post_transform(PlacedImages)
    app.connect("env-get-outdated", outdated)
    app.connect("env-purge-doc", purge)
    app.connect("env-merge-info", merge)
    return {"version": __version__, "env_version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
