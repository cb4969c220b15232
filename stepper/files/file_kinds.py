"""Kinds of files: those of models, those that are written, and the table of the formats of figures.

The exporter, the command line, the screen and the documentation read the table. A new format is a line of it and a
module with its writer. Loads nothing heavy, so that `--help` answers at once.
"""

from __future__ import annotations

import errno
import re
import stat
from enum import StrEnum
from pathlib import Path, PurePath
from typing import NamedTuple

from stepper.errors import UsageError
from stepper.wording import none_of, printable

IR_SUFFIX = ".xml"

CONVERTED = {
    ".onnx": "ONNX",
    ".pb": "TensorFlow",
    ".tflite": "TensorFlow Lite",
    ".pdmodel": "PaddlePaddle",
}
"""Suffixes of the formats that OpenVINO converts, and what each is called."""

WEIGHTS_SUFFIX = ".bin"

WEIGHTS_BESIDE = (".data", ".onnx_data", ".weights", ".pdiparams")
"""Suffixes of files with the weights of models of other formats."""

MODEL_SUFFIXES = (IR_SUFFIX, WEIGHTS_SUFFIX, *CONVERTED, *WEIGHTS_BESIDE)
"""Suffixes of all files that belong to a model."""


_BEGINNING = 4096
_COMMENT = re.compile(rb"<!--.*?(-->|\Z)", re.DOTALL)
_FIRST_TAG = re.compile(rb"<([A-Za-z_][^\s/>]*)")


def is_model_path(word: str) -> bool:
    """Return True if a word of the command line names a model's file rather than a command or an option."""
    suffix = PurePath(word).suffix.lower()
    return not word.startswith("-") and (suffix == IR_SUFFIX or suffix in CONVERTED)


def is_ir(path: Path) -> bool:
    """Return True if a file is XML whose first tag marks an IR, however broken the rest is."""
    try:
        if not path.is_file():  # a pipe or a terminal would be waited for
            return False
        with path.open("rb") as file:
            beginning = file.read(_BEGINNING).replace(b"\0", b"")  # of UTF-16
    except (OSError, ValueError):
        return False
    first = _FIRST_TAG.search(_COMMENT.sub(b"", beginning))
    return first is not None and first[1] == b"net"


def ensure_no_pipe(path: str | Path) -> None:
    """Raise OSError for a pipe or a device, which would be waited for; not for a folder, and for what is not there."""
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):  # who opens it says why
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        kind = "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
        raise OSError(errno.EINVAL, f"it is {kind}, not a file", str(path))


CASE_MODEL = f"model{IR_SUFFIX}"
CASE_WEIGHTS = f"model{WEIGHTS_SUFFIX}"
CASE_INPUTS = "inputs.npz"
CASE_STATES = "states.npz"
CASE_OUTPUTS = "outputs.npz"
CASE_FACTS = "case.json"
CASE_CALLS = "calls"
"""Folder with the inputs of the last calls, an .npz each, in the order of their names."""
CASE_CALLS_STATES = "calls_states.npz"
CASE_CALLS_OUTPUTS = "calls_outputs.npz"
"""Files of a case: a folder with a model and what it was run on."""


def is_case(word: str | PurePath) -> bool:
    """Return True if a word of the command line names a folder that is a case."""
    try:
        folder = Path(word)
        return folder.is_dir() and any((folder / name).is_file() for name in (CASE_MODEL, CASE_FACTS))
    except (OSError, ValueError):
        return False


def folder_text(folder: Path) -> str:
    """Return a sentence on a folder that stands where the file of a model is expected."""
    if is_case(folder):
        return f"is a folder: name the model in it, {folder / CASE_MODEL}"
    try:
        inside = next((one for one in sorted(folder.iterdir()) if not one.name.startswith(".") and is_case(one)), None)
    except OSError:
        inside = None
    if inside is not None:
        one = printable(str(inside))
        return f"is a folder with cases, not one itself: name one, such as {one}; stepper cases {folder} lists them"
    return (
        f"is a folder without {CASE_MODEL}, so no case; put {CASE_MODEL}, model{WEIGHTS_SUFFIX} and, by name, the "
        f"inputs in {CASE_INPUTS} into it, as stepper capture and stepper reduce do"
    )


class FileKind(NamedTuple):
    """Name in messages, and the suffixes of such files (the first is the usual one)."""

    name: str
    suffixes: tuple[str, ...]


class FormatSubject(StrEnum):
    """Subject of a format: any figure, the trace of a loop's run, or the model itself."""

    FIGURE = "every view"
    RUN = "a run (`--view unrolled`)"
    MODEL = "a model"


class FigureFormat(NamedTuple):
    """Describe a format that `export` writes.

    `name` is the value of `--as`, `title` the name in messages; the first of the `suffixes` is the usual suffix.
    `writer` is the function in `stepper.export` that gives the content: a str or bytes of a `Picture`. If the subject
    is a model, it gives a `FileContent` of the model and the request. `iterations` and `values` are defaults of the
    options of these names. `most_shown` is the number of iterations in a format in which they follow each other in time
    (None: the format has no time).
    """

    name: str
    title: str
    suffixes: tuple[str, ...]
    writer: str
    description: str
    subject: FormatSubject = FormatSubject.FIGURE
    iterations: str | None = None
    values: str = "none"
    has_thumbnails: bool = False
    most_shown: int | None = None

    @property
    def is_drawing(self) -> bool:
        """True if it is a drawing of any figure, not a text from which another program makes one."""
        return self.subject is FormatSubject.FIGURE and self.has_thumbnails

    @property
    def kind(self) -> FileKind:
        """The kind of its files."""
        return FileKind(self.title, self.suffixes)


# fmt: off
_FORMATS = (
    FigureFormat("svg", "SVG", (".svg",), "writers.drawings.write_svg",
                 "laid out by the program itself, the same bytes on every machine", has_thumbnails=True),
    FigureFormat("html", "HTML", (".html", ".htm"), "writers.html.write",
                 "a file with all iterations, a slider and keys", FormatSubject.RUN, values="full",
                 has_thumbnails=True, most_shown=1000),
    FigureFormat("png", "PNG", (".png",), "writers.drawings.write_png", "pixels, `--scale 2` for twice as many",
                 has_thumbnails=True),
    FigureFormat("pdf", "PDF", (".pdf",), "writers.drawings.write_pdf", "a page of its own size, with the font in it",
                 has_thumbnails=True),
    FigureFormat("tikz", "TikZ", (".tikz", ".tex"), "writers.drawings.write_tikz",
                 "text for LaTeX, in the document's font", has_thumbnails=True),
    FigureFormat("dot", "DOT", (".dot", ".gv"), "writers.graph_texts.write_dot", "text for Graphviz"),
    FigureFormat("mermaid", "Mermaid", (".mmd", ".mermaid"), "writers.graph_texts.write_mermaid",
                 "a flowchart, as GitHub and GitLab draw it in Markdown"),
    FigureFormat("md", "Markdown", (".md", ".markdown"), "writers.graph_texts.write_markdown",
                 "a page of Markdown: flowchart and tables"),
    FigureFormat("json", "JSON", (".json",), "writers.graph_texts.write_json",
                 "the trace as data", FormatSubject.RUN, iterations=""),
    FigureFormat("csv", "CSV", (".csv",), "writers.graph_texts.write_csv",
                 "the trace as data, a row for each value", FormatSubject.RUN, iterations=""),
    FigureFormat("numpy", "Python", (".py",), "numpy_code.code_file.write",
                 "the model as Python code that needs numpy alone", FormatSubject.MODEL),
)
# fmt: on
FORMATS = {format.name: format for format in _FORMATS}
"""The formats that `export` writes, by name."""

IR = FileKind("a model", (IR_SUFFIX,))
IR_WEIGHTS = FileKind("weights", (WEIGHTS_SUFFIX,))
ARRAYS = FileKind("arrays", (".npz",))
SCRIPT = FileKind("a script", (".py",))
ARRAY = FileKind("one array", (".npy",))
COMMANDS = FileKind("commands", (".txt",))
RECORDING = FileKind("a recording", (".sqlite", ".sqlite3", ".db", ".trace"))
SESSION = FileKind("a session", (".session", *RECORDING.suffixes))
KEYS = FileKind("keys", (".toml",))
JUNIT = FileKind("JUnit XML", (IR_SUFFIX,))
SVG = FORMATS["svg"].kind
CSV = FORMATS["csv"].kind

_ALL = (ARRAYS, ARRAY, COMMANDS, RECORDING, SESSION, KEYS, *(format.kind for format in _FORMATS))
OWNERS = {
    **{suffix: kind.name for kind in reversed(_ALL) for suffix in kind.suffixes},
    **dict.fromkeys(MODEL_SUFFIXES, "a model"),
}
"""Every suffix that names a kind of file, and the name of that."""


def figure_format(name: str) -> FigureFormat:
    """Return the format of a name. Raise UsageError, with the names that there are, for another one."""
    if name not in FORMATS:
        raise UsageError(none_of(name, FORMATS))
    return FORMATS[name]


def format_of_suffix(suffix: str) -> FigureFormat:
    """Return the format of files with a suffix. Raise UsageError, with the suffixes that there are, for another one."""
    found = next((format for format in _FORMATS if suffix.lower() in format.suffixes), None)
    if found is None:
        known = ", ".join(suffix for format in _FORMATS for suffix in format.suffixes)
        raise UsageError(f"{suffix or 'a name without a suffix'} names no format; there are {known}")
    return found
