"""The extension of Sphinx: its directive `stepper` draws figures of models and of runs.

A project names it in its `conf.py`: `extensions = ["stepper.integrations.sphinx"]`.
"""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx

from stepper import __version__
from stepper.integrations.sphinx import directive
from stepper.integrations.sphinx.directive import PictureNode, PlacedImages, StepperDirective, visit_html


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive: figures are part of the page in HTML, and files elsewhere."""
    app.add_directive("stepper", StepperDirective)
    app.add_node(PictureNode, html=(visit_html, None))
    app.add_post_transform(PlacedImages)
    app.connect("env-get-outdated", directive.outdated)
    app.connect("env-purge-doc", directive.purge)
    app.connect("env-merge-info", directive.merge)
    return {"version": __version__, "env_version": __version__, "parallel_read_safe": True, "parallel_write_safe": True}
