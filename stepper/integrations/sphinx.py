"""A directive for Sphinx, `.. stepper:: MODEL`, with the options of `stepper export`.

    extensions = ["stepper.integrations.sphinx"]

HTML has the figure as an element of the page, LaTeX as a PDF; what shows no figures has its description. Paths are
relative to the document, or, with a slash before them, to the folder of the sources.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, Final

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

import stepper
from stepper.errors import StepperError
from stepper.files.kinds import figure_format
from stepper.files.output import OutputFile
from stepper.integrations.documents import OF_DOCUMENTS, DocumentFigure, FigureFailed, inline_svg

_log: Final = logging.getLogger(__name__)
_OF_FIGURES: Final = ("align", "figclass", "class", "name")
"""Options that Sphinx's own figures have, too."""


class stepper_figure(nodes.General, nodes.Element):  # noqa: N801  # as docutils calls its nodes
    """A figure in a document: `model`, `options`, `folder`, `description`; drawn when the document is written."""


class _AnyOption:
    """Options of a directive that are given on as they are: stepper export knows which there are."""

    def __getitem__(self, name: str) -> Callable[[str | None], str]:
        return lambda value: value or ""


class StepperDirective(SphinxDirective):
    """`.. stepper:: MODEL`: a figure; below its options stands the caption, as of `figure`."""

    required_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec: ClassVar[Any] = _AnyOption()

    def run(self) -> list[nodes.Node]:
        """Return the figure; a warning with its line where it cannot be drawn."""
        caption, description = (self.options.pop(name, "") for name in OF_DOCUMENTS)
        own = {name: self.options.pop(name) for name in _OF_FIGURES if name in self.options}
        content = self.content if self.content else StringList([caption] if caption else [])
        options = {name: tuple(map(self._path, value.splitlines())) for name, value in self.options.items()}
        folder = Path(self.env.doc2path(self.env.docname)).parent
        try:
            node = stepper_figure(
                model=self._path(self.arguments[0]),
                options=options,
                folder=str(folder),
                description=description or caption or " ".join(self.content),
            )
            figure = _figure(node)
            for path in figure.files:
                self.env.note_dependency(os.path.relpath(path, self.env.srcdir))
            figure.drawn("svg", _cache(self.env.app))  # what is wrong is wrong here, where the line is known
        except StepperError as error:
            self.env.note_dependency(self.env.relfn2path(self.arguments[0])[0])
            return [self.state.document.reporter.warning(str(error), line=self.lineno)]
        node["classes"] += own.get("class", "").split()
        if not content and "name" not in own:
            return [node]
        return [self._captioned(node, content, own)]

    def _path(self, value: str) -> str:
        """Return a value; a path that begins with a slash as one of the sources, if there is such a file."""
        value = value.strip()
        inside = Path(self.env.srcdir, value.lstrip("/")) if value.startswith("/") else None
        return str(inside) if inside is not None and inside.exists() else value

    def _captioned(self, node: nodes.Element, content: StringList, own: dict[str, str]) -> nodes.Node:
        """Return a figure with a caption: the first paragraph; what is below it is the legend."""
        figure = nodes.figure("", node, align=own.get("align", "default"))
        figure["classes"] += own.get("figclass", "").split()
        self.set_source_info(figure)
        parsed = nodes.Element()
        self.state.nested_parse(content, self.content_offset, parsed)
        for number, one in enumerate(parsed.children):
            if number == 0 and isinstance(one, nodes.paragraph):
                figure += nodes.caption(one.rawsource, "", *one.children)
            elif number == 1:
                figure += nodes.legend("", *parsed.children[1:])
        if "name" in own:
            self.options["name"] = own["name"]
            self.add_name(figure)
        return figure


def _figure(node: nodes.Element) -> DocumentFigure:
    return DocumentFigure(node["model"], node["options"], Path(node["folder"]), node["description"])


def _cache(app: Sphinx) -> Path:
    return Path(app.doctreedir) / "stepper"


def _drawn(translator: Any, node: nodes.Element, format: str) -> bytes | None:
    """Return the figure as a file; None, with a warning of the build, where it cannot be drawn any more."""
    app = translator.builder.app
    try:
        return _figure(node).drawn(format, _cache(app))
    except FigureFailed as error:
        _log.warning("%s", error, location=node, type="stepper")
        return None


def _html(translator: Any, node: nodes.Element) -> None:
    content = _drawn(translator, node, "svg")
    if content is not None:
        shown: set[str] = translator.__dict__.setdefault("stepper_figures", set())  # one translator is one page
        classes = " ".join(["stepper", *node["classes"]])
        translator.body.append(f'<div class="{classes}">{inline_svg(content, shown)}</div>\n')
    raise nodes.SkipNode


def _latex(translator: Any, node: nodes.Element) -> None:
    content = _drawn(translator, node, "pdf")
    if content is not None:
        name = f"stepper-{_figure(node).key('pdf')}"
        target = Path(translator.builder.outdir, f"{name}.pdf")
        OutputFile(target, figure_format("pdf").kind).write(content)
        around = "" if isinstance(node.parent, nodes.figure) else "\n\n\\noindent"
        translator.body.append(f"{around}\\sphinxincludegraphics{{{{{name}}}.pdf}}\n")
    raise nodes.SkipNode


def _text(translator: Any, node: nodes.Element) -> None:
    """Say what is drawn, where nothing can be shown."""
    if hasattr(translator, "add_text"):  # plain text
        translator.new_state()
        translator.add_text(f"[{node['description'] or node['model']}]")
        translator.end_state()
    else:
        translator.body.append(f"[{translator.escape(node['description']) if hasattr(translator, 'escape') else ''}]\n")
    raise nodes.SkipNode


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive to an application of Sphinx."""
    app.add_node(
        stepper_figure,
        html=(_html, None),
        epub=(_html, None),
        latex=(_latex, None),
        text=(_text, None),
        man=(_text, None),
        texinfo=(_text, None),
    )
    app.add_directive("stepper", StepperDirective)
    return {"version": stepper.__version__, "parallel_read_safe": True, "parallel_write_safe": True}
