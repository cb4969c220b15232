"""A figure of a page: from what the page says to what is drawn for a kind of document."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from stepper import __version__
from stepper.cli.arguments import page_width
from stepper.cli.commands.figures import export_options, names_a_path, words_of
from stepper.cli.parser import parsed
from stepper.cli.specs import protected_files
from stepper.errors import OutputError, StepperError, UsageError
from stepper.files.allowed import ALLOWED, SettingsFile
from stepper.files.file_kinds import FileKind
from stepper.files.output import OutputFile
from stepper.processes.starting import python_command
from stepper.records import Record

_GIT = ".gitignore"
_IGNORED = FileKind("what git passes over", ())
_KEPT = 30 * 24 * 3600
"""Seconds for which a figure that no build asks for is kept."""


class FigureCache:
    """A folder of figures. Several processes may fill it: a file is there whole, or not at all."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def get(self, name: str, make: Callable[[Path], None]) -> Path:
        """Return the file of a name, which `make` writes in one go where there is none.

        Raise OutputError where the folder cannot be written, and what `make` raises.
        """
        kept = self.folder / name
        with contextlib.suppress(OSError):
            os.utime(kept)
            return kept
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._forget()
        except OSError as error:
            raise OutputError(f"{self.folder}: figures cannot be kept there: {error.strerror}") from None
        ignored = self.folder / _GIT
        if not ignored.exists():
            OutputFile(ignored, _IGNORED).write(b"*\n")
        make(kept)
        return kept

    def _forget(self) -> None:
        """Remove what was not asked for since long; what other processes are about to write is younger."""
        before = time.time() - _KEPT
        for path in self.folder.iterdir():
            with contextlib.suppress(OSError):
                if path.stat().st_mtime < before and path.name != _GIT:
                    path.unlink()


_SECONDS = 300.0
"""How long the drawing of a figure may take."""
_LONGEST = 4000
"""Letters of a message."""
_PROGRAM = "from stepper.cli import main; sys.exit(main())"


class FigureFailed(StepperError):
    """Report a document's figure that could not be drawn, with the message of `stepper export`."""


def draw(words: Sequence[str], folder: Path, target: Path, seconds: float = _SECONDS) -> None:
    """Carry out `stepper export WORDS -o TARGET` in a folder. Raise FigureFailed."""
    command = python_command(_PROGRAM, "export", *words, "-o", str(target), folder=folder)
    group: dict[str, Any] = {"process_group": 0} if os.name == "posix" else {}
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8"}
    with tempfile.TemporaryFile() as messages:
        try:
            process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=messages,
                stderr=messages,
                **group,
            )
        except (OSError, ValueError) as error:
            raise FigureFailed(f"{folder}: nothing can be drawn there: {error}") from None
        try:
            code = process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise FigureFailed(f"the figure was not drawn within {seconds:g} s; one of less is drawn sooner") from None
        finally:
            _end(process)
        messages.seek(0)
        said = messages.read().decode("utf-8", "replace").strip()[-_LONGEST:]
    if code:
        raise FigureFailed(said.removeprefix("stepper: ") or f"stepper export ended with {code}")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and those that it started."""
    if process.poll() is None:
        if os.name == "posix":
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()


OWN = ("alt", "caption")
"""Keys of a page's figure that are no options of export."""
_PRINTED = "160mm"
"""Width that a page of LaTeX has room for."""
_YES = ("", "true", "yes", "on")


def keys() -> tuple[str, ...]:
    """Return all that a page can say of a figure beside the model."""
    return tuple(dict.fromkeys((*OWN, *ALLOWED[SettingsFile.PAGE])))


class DocumentKind(StrEnum):
    """Kind of document, by the format of its figures."""

    SCREEN = "svg"
    PRINT = "pdf"
    PICTURE = "png"


class DocumentFigure(Record):
    """A figure as a page asks for it.

    Paths of its words begin at `folder`; `options` are pairs of a name of export and its words. `alt` is for readers
    who do not see it, and `caption` stands below.
    """

    model: str
    folder: Path
    options: tuple[tuple[str, tuple[str, ...]], ...] = ()
    alt: str = ""
    caption: str = ""
    width: int | None = None

    def words(self, kind: DocumentKind) -> tuple[str, ...]:
        """Return the words of export that draw it, without the file to write."""
        said = dict(self.options)
        if kind is not DocumentKind.SCREEN:
            said.pop("animate", None)
            said.pop("pace", None)
        said.setdefault("theme", ("--theme=page" if kind is DocumentKind.SCREEN else "--theme=print",))
        said.setdefault("preset", ("--preset=docs",))
        if kind is DocumentKind.PRINT and said["preset"] == ("--preset=docs",):
            said["preset"] = ("--preset=paper",)
            if self.width is None or self.width > page_width(_PRINTED):
                said["width"] = (f"--width={_PRINTED}",)
        if kind is DocumentKind.PICTURE:
            said.setdefault("scale", ("--scale=2",))
        told = (f"--caption={self.alt}",) if self.alt else ()
        return (self.model, "--quiet", *told, *(word for words in said.values() for word in words))

    def files(self) -> tuple[Path, ...]:
        """Return the files that it is made from, also those that are not there. Raise StepperError, as `asked` does."""
        with _in_folder(self.folder):
            options = parsed(["export", *self.words(DocumentKind.SCREEN)])
            found = protected_files(options).files
        return tuple(dict.fromkeys(self.folder / one.path for one in found))

    def drawn(self, kind: DocumentKind, cache: FigureCache) -> Path:
        """Return the file of the drawing. Raise StepperError where it cannot be drawn."""
        words = self.words(kind)
        read = [(os.path.relpath(path, self.folder), _digest(path)) for path in self.files()]
        made_from = json.dumps([__version__, words, read]).encode("utf-8", "surrogateescape")
        name = f"stepper-{hashlib.sha256(made_from).hexdigest()[:32]}.{kind}"
        return cache.get(name, lambda target: draw(words, self.folder, target))


def asked(model: str, options: Mapping[str, str], folder: Path, root: Path) -> DocumentFigure:
    """Return the figure that a page in `folder` asks for, in documents that begin at `root`.

    A path that begins with `/` begins there, if there is such a file. An option without a value is "" or `true`; one
    that may be given several times has a value on each line. Raise StepperError, with what is wrong in words, for what
    export would refuse.
    """
    if not model or model.startswith("-"):
        raise UsageError("a figure needs a model: the path of an .xml, of a recording or of a case")
    own = {key: value.strip() for key, value in options.items() if key in OWN}
    found = DocumentFigure(
        model=_path(model, folder, root),
        folder=folder,
        options=tuple(
            (key, tuple(_words(key, value.strip(), folder, root))) for key, value in options.items() if key not in OWN
        ),
        alt=" ".join(own.get("alt", "").split()),
        caption=" ".join(own.get("caption", "").split()),
    )
    with _in_folder(folder):
        said = parsed(["export", *found.words(DocumentKind.SCREEN)])
    return replace(found, width=said.width)


def _words(key: str, text: str, folder: Path, root: Path) -> Iterator[str]:
    action = export_options().get(key)
    value: object = text
    if action is not None and action.nargs == 0 and text.lower() in _YES:
        value = True
    elif isinstance(getattr(action, "default", None), list):
        lines = [line.strip() for line in text.splitlines() if line.strip()]
        value = [_path(line, folder, root) for line in lines] if action and names_a_path(action) else lines
    elif text == "" and key != "title":
        raise UsageError(f"options: {key} needs a value")
    elif action is not None and names_a_path(action):
        value = _path(text, folder, root)
    yield from words_of(key, value, "options", OWN, SettingsFile.PAGE)


def _path(text: str, folder: Path, root: Path) -> str:
    """Return a path as seen from the folder of the page, so that it is the same on every machine."""
    inside = root / text.lstrip("/")
    try:
        return Path(os.path.relpath(inside, folder)).as_posix() if text.startswith("/") and inside.exists() else text
    except (OSError, ValueError):  # no name of a file, as export says
        return text


@contextlib.contextmanager
def _in_folder(folder: Path) -> Iterator[None]:
    """Read words in a folder, as a shell would. Raise UsageError for words that are no paths at all."""
    try:
        with contextlib.chdir(folder):
            yield
    except StepperError:
        raise
    except (OSError, ValueError) as error:
        raise UsageError(str(error)) from None


def _digest(path: Path) -> str | None:
    """Return what tells the content of a file from another; None where there is none."""
    try:
        status = path.stat()
        return _digest_of(path, status.st_mtime_ns, status.st_size)
    except (OSError, ValueError):
        return None


@lru_cache(maxsize=1024)
def _digest_of(path: Path, _time: int, _size: int) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


_NAME = re.compile(r'<svg [^>]*class="stepper (s[0-9a-f]{8})"')
_FITTING = 'style="max-width:100%;height:auto" '


class InlineFigures:
    """The figures of one page: their ids differ, also where one figure stands there twice."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def svg(self, file: Path) -> str:
        """Return the text of a drawing, which takes no more room than the page has."""
        text = file.read_text(encoding="utf-8").strip()
        text = text.replace("<svg ", f"<svg {_FITTING}", 1)
        match = _NAME.search(text)
        if match is None:  # Graphviz has no ids of ours
            return text
        name = match[1]
        self._seen[name] = count = self._seen.get(name, 0) + 1
        return text if count == 1 else text.replace(name, f"{name}_{count}")
