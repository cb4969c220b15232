"""Figures in documents: what a directive or a fence asks for, drawn by `stepper export` and kept by content.

    figure = DocumentFigure("models/gru.xml", {"view": ("rolled",)}, folder=source_folder)
    drawn = figure.drawn("svg", cache_folder)

The options are those of `stepper export`, which says itself what is wrong with one. It draws in a process of its own:
builds with several processes share nothing, and one that is interrupted leaves nothing half written.
"""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Final

from msgspec import Struct

import stepper
from stepper.errors import StepperError, UsageError
from stepper.files.kinds import figure_format
from stepper.files.output import OutputFile

SECONDS: Final = 300
"""Time that a figure may take."""
OF_DOCUMENTS: Final = ("caption", "alt")
"""Options that are the document's: the text below a figure, and that for readers who do not see it."""
_DENIED: Final = ("as", "output", "check", "frames", "embed", "help", "quiet")
"""Options of export that say what is written, which is the document's affair."""
_OF_ANIMATION: Final = ("animate", "pace")
_NAME: Final = re.compile(r"[a-z][a-z-]*")
_MOST_FILES: Final = 1_000

Options = Mapping[str, Sequence[str]]
"""Values by option, without dashes; a flag has none, what may be repeated has several."""


class FigureFailed(StepperError):
    """A figure of a document that could not be drawn; the message is that of `stepper export`."""


class DocumentFigure(Struct, frozen=True, eq=False):
    """A figure that a document asks for. Paths are relative to `folder`, `description` is for who does not see it.

    UsageError for an option that a document cannot have.
    """

    model: str
    options: Options
    folder: Path
    description: str = ""

    def __post_init__(self) -> None:
        if not self.model or self.model.startswith("-"):
            raise UsageError("a figure needs a model: the path of an .xml or of a recording")
        for name in self.options:
            if name in _DENIED or not _NAME.fullmatch(name):
                raise UsageError(
                    f"'{name[:60]}' is no option of a figure in a document; they are those of stepper export"
                )

    @property
    def files(self) -> list[Path]:
        """Return the files that it is drawn from, as far as its model and options name them: those that exist."""
        return list(dict.fromkeys(self._found()))

    def drawn(self, format: str, cache: Path) -> bytes:
        """Return the figure as a file of this format; from the cache where nothing that it is made of has changed.

        FigureFailed where it cannot be drawn.
        """
        target = cache / f"{self.key(format)}.{format}"
        try:
            return target.read_bytes()
        except OSError:
            content = self._made(format)
        cache.mkdir(parents=True, exist_ok=True)
        OutputFile(target, figure_format(format).kind).write(content)
        return content

    def key(self, format: str) -> str:
        """Return what stands for all that the figure is made of: files by content, options, the version drawing it."""
        digest = hashlib.sha256(repr((stepper.__version__, self._words(format))).encode())
        for path in self.files:
            with path.open("rb") as file:
                digest.update(hashlib.file_digest(file, "sha256").digest())
        return digest.hexdigest()[:24]

    def _words(self, format: str) -> list[str]:
        words = ["export", self.model, f"--as={format}", "--quiet"]
        if self.description:
            words.append(f"--caption={self.description}")
        if "theme" not in self.options and format != "svg":
            words.append("--theme=print")
        for name, values in self.options.items():
            if name not in _OF_ANIMATION or format == "svg":
                words += [f"--{name}={value}" for value in values] or [f"--{name}"]
        return words

    def _made(self, format: str) -> bytes:
        command = [sys.executable, "-P", "-m", "stepper", *self._words(format)]
        path = [str(Path(stepper.__file__).parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path), "PYTHONIOENCODING": "utf-8"}
        try:
            ended = subprocess.run(
                command,
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise FigureFailed(f"{self.model}: the figure was not drawn within {SECONDS} seconds") from None
        except OSError as error:
            raise FigureFailed(f"{self.folder}: {error.strerror}") from None
        if ended.returncode:
            said = ended.stderr.decode(errors="replace").strip().removeprefix("stepper: ")
            raise FigureFailed(said or f"{self.model}: stepper export ended with {ended.returncode}")
        return ended.stdout

    def _found(self) -> Iterator[Path]:
        values = [self.model, *(value for values in self.options.values() for value in values)]
        for value in values:
            for text in {value, value.partition("=")[2]}:
                yield from self._named(text) if text else ()

    def _named(self, text: str) -> Iterator[Path]:
        """Yield the files that a value names: itself, the weights beside it, those of a folder."""
        try:
            path = self.folder / text
            if path.is_dir():
                yield from sorted(one for one in path.iterdir() if one.is_file())[:_MOST_FILES]
            elif path.is_file():
                yield path
                weights = path.with_suffix(".bin")
                if path.suffix == ".xml" and weights.is_file():
                    yield weights
        except (OSError, ValueError):  # too long for a name, or not for us to read: export says so
            return


def figure_of_text(text: str, folder: Path) -> tuple[DocumentFigure, str]:
    """Return the figure that lines ask for, and its caption: a model, then `option: value` or a flag in each line.

    UsageError for a line that is neither.
    """
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    options: dict[str, list[str]] = {}
    for line in lines[1:]:
        name, colon, value = (part.strip() for part in line.partition(":"))
        if not _NAME.fullmatch(name):
            raise UsageError(f"'{line[:60]}' is no option; write one in each line, such as view: rolled")
        options.setdefault(name, [])
        if colon and value:
            options[name].append(value)
    caption, description = (" ".join(options.pop(name, ())) for name in OF_DOCUMENTS)
    return DocumentFigure(lines[0] if lines else "", options, folder, description or caption), caption


def inline_svg(content: bytes, shown: set[str]) -> str:
    """Return an SVG file as an element of a page; `shown` are the identifiers of those that the page has already.

    It is as wide as it is, and no wider than the column.
    """
    svg = content.decode()
    svg = svg[svg.index("<svg") :].rstrip()
    found = re.search(r'class="stepper (\w+)"', svg)
    if found is not None:
        own = name = found[1]
        number = 1
        while name in shown:
            number += 1
            name = f"{own}-{number}"
        shown.add(name)
        svg = svg if name == own else svg.replace(own, name)
    return svg.replace("<svg ", '<svg style="max-width: 100%; height: auto" ', 1)


def page_figure(svg: str, caption: str, css_class: str = "stepper") -> str:
    """Return a figure of a page, with its caption."""
    below = f"<figcaption>{escape(caption)}</figcaption>" if caption else ""
    return f'<figure class="{escape(css_class)}">{svg}{below}</figure>'
