"""Figures that Graphviz lays out and draws, where it is installed."""

from __future__ import annotations

from typing import Final

from stepper.errors import UsageError
from stepper.export.figures.figure import Arrangement
from stepper.export.picture import Picture
from stepper.export.writers.dot import dot

INSTALL: Final = "install it with `apt install graphviz`, `brew install graphviz` or from graphviz.org"

MOST_AROUND: Final = 150
"""Nodes at positions round which Graphviz routes edges within a second; more take much longer."""


def laid_out_by_dot(picture: Picture, format: str) -> bytes:
    """Return the figure as Graphviz lays it out: svg, png or pdf. Raise UsageError where it is missing, or fails."""
    figure = picture.figure
    has_places = figure.arrangement is Arrangement.ITERATIONS and len(figure.nodes) <= MOST_AROUND
    return drawn(dot(figure, picture.request.theme), format, is_placed=has_places)


def drawn(text: str, format: str, *, is_placed: bool) -> bytes:
    """Return DOT text drawn as svg, png or pdf, with the positions in the text where it `is_placed`, else laid out.

    Raise UsageError where Graphviz is not installed, or fails.
    """
    import graphviz  # type: ignore[import-untyped]  # it has no types, and loads only where it is needed

    try:
        engine = {"engine": "neato", "neato_no_op": 2} if is_placed else {"engine": "dot"}
        made: bytes = graphviz.Source(text).pipe(format=format, quiet=True, **engine)
    except graphviz.ExecutableNotFound:
        raise UsageError(
            f"{format} is drawn by Graphviz, but its program `dot` is not installed; {INSTALL}. "
            "without `--layout dot` it is not needed"
        ) from None
    except graphviz.CalledProcessError as error:
        raise UsageError(f"Graphviz could not draw the figure: {str(error).splitlines()[0]}") from None
    return made
