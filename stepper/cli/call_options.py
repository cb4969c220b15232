"""The options `--calls` and `--carry`: many calls of a model, which become a loop around it."""

from __future__ import annotations

import re
from argparse import Namespace
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from stepper.engine.array_files import read_archive
from stepper.engine.inputs import file_of, is_filler, plain_key, position_of, value_of
from stepper.engine.run import PartsOfCalls, output_position, over_calls
from stepper.errors import InputError, UsageError
from stepper.files.output import ProtectedFiles
from stepper.ir.model import MOST_CALLS, Model, parameter_shape

_MOST_FILES = 100_000
_ALONG = re.compile(r"(.+?):axis([0-9]{1,2})(?::([0-9]{1,18}))?", re.DOTALL)
_DIGITS = re.compile(r"([0-9]+)")
_WANTED = "expected their number, FILE.npz, a folder or pattern of .npz files, or INPUT=SPEC[:axisN[:LENGTH]]"


def put_calls(model: Model, options: Namespace, *, some: bool = False) -> Model:
    """Return the model as the options have it called; itself where they say nothing of calls.

    The values of its inputs that are parts of calls are then the `call_inputs` of the options. With `some`, of a model
    beside another one, names that it does not have are left out.
    """
    specs, carry = getattr(options, "calls", []), getattr(options, "carry", [])
    if not specs and not carry:
        return model
    given = _Given(model, some=some)
    for text in specs:
        given.add(text)
    pairs = [_carried(text) for text in carry]
    if some:
        pairs = [(output, input) for output, input in pairs if _has(model, output, input)]
    try:
        found, arrays = over_calls(model, given.parts(), pairs, given.count)
    except (UsageError, InputError) as error:
        if not _is_of_case(options):
            raise
        raise InputError(f"{options.case.folder}: its calls do not fit {model.path}: {error}") from None
    options.call_inputs = arrays
    return found


def check_carried(models: Iterable[Model], options: Namespace) -> None:
    """Raise UsageError for a pair of --carry that none of these models has."""
    for text in getattr(options, "carry", []):
        output, input = _carried(text)
        if not any(_has(model, output, input) for model in models):
            reason = f"none of the models has an output '{output}' and an input '{input}'"
            if isinstance(text, tuple):
                raise InputError(f"{options.case.folder}: its calls carry '{output}' to '{input}': {reason}")
            raise UsageError(f"--carry {text}: {reason}")


def files_of_calls(options: Namespace) -> ProtectedFiles:
    """Return the files from which calls are read."""
    found = ProtectedFiles()
    for text in getattr(options, "calls", []):
        name, equals, spec = _parted(text)
        paths = [file_of(_along(spec)[0])] if equals else [] if name.isdecimal() else _files(name)
        for path in paths:
            if path is not None:
                found += ProtectedFiles.of_file(path, "a file of --calls")
    return found


def _is_of_case(options: Namespace) -> bool:
    """Return True if no word of the calls was given by the user: they are those of a case."""
    case = getattr(options, "case", None)
    if case is None:
        return False
    return options.calls == [str(case.calls)] and all(isinstance(one, tuple) for one in options.carry)


def _has(model: Model, output: str, input: str) -> bool:
    try:
        output_position(model, output)
        position_of(model.graph.parameters, input)
    except UsageError:
        return False
    return True


def _carried(text: str | tuple[str, str]) -> tuple[str, str]:
    """Return an output and the input that it becomes, of the words of an option, or as a case has them."""
    if isinstance(text, tuple):
        return text
    output, equals, input = text.rpartition("=")
    if not equals or not output or not input:
        raise UsageError(f"--carry {text}: OUTPUT=INPUT is expected, such as stateN=state")
    return output, input


def _parted(text: str) -> tuple[str, str, str]:
    """Return the input, `=` and the SPEC of a word of --calls; a file or folder that is there is all of its name."""
    if "=" not in text or Path(text).exists():
        return text, "", ""
    return text.partition("=") if text.count("=") < 2 else text.rpartition("=")


def _along(spec: str) -> tuple[str, int | None, int | None]:
    """Return a SPEC, and along which axis the parts lie, and how long each is, as far as that is said."""
    match = _ALONG.fullmatch(spec)
    if match is None:
        return spec, None, None
    return match[1], int(match[2]), None if match[3] is None else int(match[3])


def _files(text: str) -> list[Path]:
    """Return the .npz of a word: a file, those of a folder, or those that fit a pattern; numbers in their order."""
    path = Path(text)
    if path.is_dir():
        found: Iterable[Path] = path.glob("*.npz")
    elif any(mark in text for mark in "*?["):
        found = Path(path.anchor).glob(str(path.relative_to(path.anchor)))
    else:
        return [path]
    files = sorted((one for one in found if one.is_file()), key=_natural)
    if not files:
        raise InputError(f"--calls {text}: there are no .npz files")
    if len(files) > _MOST_FILES:
        raise InputError(f"--calls {text}: there are {len(files):,} files, more than {_MOST_FILES:,}")
    return files


def _natural(path: Path) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in _DIGITS.split(str(path)) if part]


class _Given:
    """Collects what the options say of the calls of a model."""

    def __init__(self, model: Model, *, some: bool) -> None:
        self._parameters, self._some = model.graph.parameters, some
        self.count: int | None = None
        self._parts: dict[int, Callable[[], PartsOfCalls]] = {}

    def add(self, text: str) -> None:
        """Take one word of `--calls`."""
        name, equals, spec = _parted(text)
        if not equals and name.isdecimal() and len(name) < 10:
            if not 1 <= int(name) <= MOST_CALLS or self.count is not None:
                raise UsageError(f"--calls {text}: the number of calls, once, from 1 to {MOST_CALLS:,}")
            self.count = int(name)
        elif equals and name and spec:
            self._put(name, lambda position: lambda: self._of_spec(position, spec))
        elif not equals and (name.endswith(".npz") or Path(name).is_dir()):
            self._archives(text, _files(name))
        else:
            raise UsageError(f"--calls {text}: {_WANTED}")

    def parts(self) -> Mapping[int, PartsOfCalls]:
        """Return what calls get, by position of the input; reads the files."""
        return {position: make() for position, make in self._parts.items()}

    def _put(self, name: str, make: Callable[[int], Callable[[], PartsOfCalls]]) -> None:
        try:
            position = position_of(self._parameters, name)
        except UsageError:
            if self._some:
                return
            raise
        if position in self._parts:
            raise UsageError(f"--calls gives input '{name}' twice")
        self._parts[position] = make(position)

    def _of_spec(self, position: int, spec: str) -> PartsOfCalls:
        text, axis, length = _along(spec)
        parameter = self._parameters[position]
        if not is_filler(text):
            return PartsOfCalls(value_of(parameter, text), axis, length)
        shape = parameter_shape(parameter).static
        if self.count is None or shape is None or axis is not None:
            raise UsageError(
                f"--calls {parameter.name}={spec}: zeros, ones and rand fill calls of a known shape; say how many "
                "there are, such as --calls 20"
            )
        return PartsOfCalls(value_of(parameter, text, (self.count, *shape)))

    def _archives(self, word: str, paths: list[Path]) -> None:
        archives = [read_archive(path) for path in paths]
        keys = list(archives[0])
        for path, archive in zip(paths, archives, strict=True):
            if set(archive) != set(keys):
                raise InputError(f"--calls {word}: {path} has {', '.join(archive)}, {paths[0]} has {', '.join(keys)}")
        is_one = len(paths) == 1 and Path(word) == paths[0]
        if not is_one:
            self.count = len(paths) if self.count is None else self.count

        def parts(key: str) -> PartsOfCalls:
            return PartsOfCalls(archives[0][key] if is_one else [archive[key] for archive in archives])

        for key in keys:
            self._put(plain_key(self._parameters, key), lambda _position, key=key: lambda: parts(key))  # type: ignore[misc]
