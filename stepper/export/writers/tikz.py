"""TikZ: a figure as text for LaTeX, `\\input` into a document that loads the package tikz; its font is the document's.

Each line of text is scaled to the width that the layout gave it where the document's font is wider.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from stepper.export.drawing.composing import drawn
from stepper.export.drawing.styles import (
    POINTS,
    Disc,
    Group,
    PageDrawing,
    Palette,
    Path,
    Rectangle,
    Shape,
    TextLine,
    palette,
    properties_of,
)
from stepper.export.fonts import advance
from stepper.export.picture import Picture

_ESCAPED: Final = {
    **{letter: f"\\{letter}" for letter in "#$%&_{}"},
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\ensuremath{<}",
    ">": r"\ensuremath{>}",
    "|": r"\ensuremath{|}",
    "←": r"\ensuremath{\leftarrow}",
    "→": r"\ensuremath{\rightarrow}",
    "×": r"\ensuremath{\times}",
    "·": r"\ensuremath{\cdot}",
    "⋯": r"\ensuremath{\cdots}",
    "…": r"\ldots{}",
    "≤": r"\ensuremath{\le}",
    "≥": r"\ensuremath{\ge}",
    "≠": r"\ensuremath{\ne}",
    "−": r"\ensuremath{-}",
    "∞": r"\ensuremath{\infty}",
    "√": r"\ensuremath{\surd}",
    "±": r"\ensuremath{\pm}",
    "–": r"\textendash{}",
    "›": r"\ensuremath{\rangle}",
    "▼": r"\ensuremath{\bigtriangledown}",
    "ᵀ": r"\textsuperscript{T}",
    "¹": r"\textsuperscript{1}",
    "²": r"\textsuperscript{2}",
    "³": r"\textsuperscript{3}",
    "µ": r"\ensuremath{\mu}",
    "'": r"\textquotesingle{}",
    '"': r"\textquotedbl{}",
    "-": "{-}",
}
_GREEK: Final = {
    "α": "alpha",
    "β": "beta",
    "γ": "gamma",
    "δ": "delta",
    "ε": "varepsilon",
    "ζ": "zeta",
    "η": "eta",
    "θ": "theta",
    "ι": "iota",
    "κ": "kappa",
    "λ": "lambda",
    "μ": "mu",
    "ν": "nu",
    "ξ": "xi",
    "π": "pi",
    "ρ": "rho",
    "ς": "varsigma",
    "σ": "sigma",
    "τ": "tau",
    "υ": "upsilon",
    "φ": "varphi",
    "χ": "chi",
    "ψ": "psi",
    "ω": "omega",
    "Γ": "Gamma",
    "Δ": "Delta",
    "Θ": "Theta",
    "Λ": "Lambda",
    "Ξ": "Xi",
    "Π": "Pi",
    "Σ": "Sigma",
    "Υ": "Upsilon",
    "Φ": "Phi",
    "Ψ": "Psi",
    "Ω": "Omega",
}
_LATIN: Final = frozenset("ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝßàáâãäåæçèéêëìíîïñòóôõöøùúûüýÿ")
"""Letters of the encoding T1 that LaTeX knows in UTF-8."""
_ANCHORS: Final = {"start": "base west", "middle": "base", "end": "base east"}
_CAPS: Final = {"square": "rect"}


def write(picture: Picture) -> str:
    """Return the figure as a `tikzpicture`, for light pages where the theme is auto."""
    request = picture.request
    drawing = drawn(picture)
    scale = drawing.points
    if request.width is not None:
        scale *= min(1.0, request.width / (drawing.width * drawing.points / POINTS))
    return tikz(drawing, palette(request.theme), scale)


def tikz(drawing: PageDrawing, colours: Palette, scale: float = POINTS) -> str:
    """Return a drawing as a `tikzpicture`; `scale` is points a pixel."""
    lines = [
        "% \\usepackage{tikz,textcomp} in the preamble",
        f"% {_comment(drawing.title)}",
        f"% {_comment(drawing.description)}",
        *(rf"\definecolor{{stepper-{name}}}{{HTML}}{{{value[1:].upper()}}}" for name, value in colours.items()),
        rf"\begin{{tikzpicture}}[x={scale:.4g}bp,y=-{scale:.4g}bp,inner sep=0pt,outer sep=0pt,font=\sffamily]",
        *_Painter(colours, scale).shapes(drawing.items),
        r"\end{tikzpicture}",
        "",
    ]
    return "\n".join(lines)


class _Painter:
    def __init__(self, colours: Palette, scale: float) -> None:
        self._names: Mapping[str, str] = {name: f"stepper-{name}" for name in colours}
        self._scale = scale

    def shapes(self, shapes: Iterable[Shape], groups: str = "") -> Iterator[str]:
        """Yield the commands for shapes that stand in a group of classes."""
        for shape in shapes:
            if isinstance(shape, Group):
                yield from self.shapes(shape.items, shape.classes)
            elif isinstance(shape, TextLine):
                yield from self._words(shape, properties_of(shape.style, groups, self._names))
            else:
                yield self._outline(shape, properties_of(shape.style, groups, self._names))

    def _outline(self, shape: Rectangle | Path | Disc, properties: Mapping[str, str]) -> str:
        options = [
            f"{word}={properties[key]}" for word, key in (("fill", "fill"), ("draw", "stroke")) if key in properties
        ]
        options = [option for option in options if not option.endswith("=none")]
        if properties.get("stroke", "none") != "none":
            options.append(f"line width={float(properties.get('stroke-width', 1)) * self._scale:.3g}bp")
            cap = properties.get("stroke-linecap", "butt")
            options += [f"line cap={_CAPS.get(cap, cap)}", f"line join={properties.get('stroke-linejoin', 'miter')}"]
            options += self._dashes(properties)
        if isinstance(shape, Disc):
            radius = f"radius={shape.radius * self._scale:.3g}bp"
            return rf"\path[{','.join(options)}] {_at(shape.x, shape.y)} circle[{radius}];"
        if isinstance(shape, Rectangle):
            corner = min(shape.corner, shape.height / 2, shape.width / 2)
            options += [f"rounded corners={corner * self._scale:.3g}bp"] if corner else []
            options += [] if shape.opacity is None else [f"fill opacity={shape.opacity:.2f}"]
            far = _at(shape.x + shape.width, shape.y + shape.height)
            return rf"\path[{','.join(options)}] {_at(shape.x, shape.y)} rectangle {far};"
        parts = (
            " -- ".join(_at(x, y) for x, y in part) + (" -- cycle" if shape.closed else "") for part in shape.parts
        )
        return rf"\path[{','.join(options)}] {' '.join(parts)};"

    def _dashes(self, properties: Mapping[str, str]) -> list[str]:
        lengths = [float(part) * self._scale for part in properties.get("stroke-dasharray", "").split()]
        if not lengths:
            return []
        pattern = " ".join(f"{'off' if index % 2 else 'on'} {length:.3g}bp" for index, length in enumerate(lengths))
        return [
            f"dash pattern={pattern}",
            f"dash phase={float(properties.get('stroke-dashoffset', 0)) * self._scale:.3g}bp",
        ]

    def _words(self, words: TextLine, properties: Mapping[str, str]) -> Iterator[str]:
        if not words.text:
            return
        bold = properties.get("font-weight") == "bold"
        pixels = float(properties["font-size"].removesuffix("px"))
        width = advance(words.text, pixels, bold=bold) * self._scale
        size = pixels * self._scale
        text = "".join(map(_letter, words.text))
        font = rf"\fontsize{{{size:.3g}bp}}{{{size * 1.2:.3g}bp}}\selectfont" + (r"\bfseries" if bold else "")
        options = f"anchor={_ANCHORS[words.anchor]},text={properties['fill']}"
        if "stroke" in properties:  # a ground below the words that follow
            options += f",fill={properties['fill']},inner xsep=1.5bp,text opacity=0"
        fitted = rf"\ifdim\wd0>{width:.4g}bp\resizebox{{{width:.4g}bp}}{{\height}}{{\unhbox0}}\else\unhbox0\fi"
        yield rf"\node[{options}] at {_at(words.x, words.y)} {{{font}\setbox0\hbox{{{text}}}{fitted}}};"


def _letter(letter: str) -> str:
    """Return a letter as LaTeX reads it; one that its usual fonts do not have is a question mark."""
    if letter in _GREEK:
        return rf"\ensuremath{{\{_GREEK[letter]}}}"
    return _ESCAPED.get(letter) or (letter if letter.isascii() or letter in _LATIN else "?")


def _at(x: float, y: float) -> str:
    return f"({x:.1f},{y:.1f})"


def _comment(text: str) -> str:
    return " ".join(text.split())
