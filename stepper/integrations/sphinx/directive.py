"""The directive: `.. stepper:: MODEL`, with the options of `stepper export`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Final

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.util.docutils import SphinxDirective

from stepper.errors import StepperError
from stepper.integrations.documents.figure import DocumentFigure, asked, keys
from stepper.integrations.sphinx.documents import documents_of
from stepper.integrations.sphinx.placing import PictureNode, cache_of, kind_for, told, warn


class _OptionsOfExport(dict[str, Callable[[str], Any]]):
    """Takes every option, so that an unknown one is answered with those that are near."""

    def __missing__(self, _name: str) -> Callable[[str], Any]:
        return str


_OF_FIGURES: Final = ("align", "figclass", "class", "name")
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
        documents = documents_of(self.env)
        documents.having.add(self.env.docname)
        location = self.get_location()
        options = {name: value for name, value in self.options.items() if name not in _OF_FIGURES}
        folder, root = Path(self.env.doc2path(self.env.docname)).parent, Path(self.env.srcdir)
        caption, picture = options.get("caption", "").strip(), nodes.Element()
        try:
            asked_for = asked(self.arguments[0].strip(), options, folder, root)
            picture = self._picture(asked_for)
        except StepperError as error:
            documents.failed.add(self.env.docname)
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
