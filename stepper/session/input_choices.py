"""Choices for the inputs of a model before it runs: where the value comes from, and whether it fits.

Nothing is invented: an input without a choice is not ready. The words are those of the command line
(engine.inputs.specs).
"""

from __future__ import annotations

import difflib
import math
import os
import shlex
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cached_property
from pathlib import Path

from msgspec import Struct, field

from stepper import element_types
from stepper.debug.debugger import Debugger
from stepper.element_types import Array, Shape
from stepper.engine.array_files import ReadingStopped, ReadProgress, header_of, read_archive
from stepper.engine.inputs import converted, ensure_shape, file_of, value_of
from stepper.errors import InputError, StepperError, UsageError
from stepper.files.output import ProtectedFile, ProtectedFiles
from stepper.ir.model import Layer, Model, parameter_shape, parameter_type
from stepper.ops.operands import HasForm, form_text
from stepper.records import Record

# The value of a chosen input, made at once where it is small; else in a thread, one after another, so that the screen
# goes on. A large value can be stopped on the way, and of two for the same input only the newer one is made.

SMALL = 2**20
"""Bytes of a file, or elements to fill, that do not keep anybody waiting."""
_MOST_COMPARED = 10**6
STOPPED = "stopped; Enter, Enter reads it"


class LoadOutcome(Record, eq=False):
    """Value of a chosen input: the tensor and its least and greatest value, or why there is none.

    The least and greatest are None if not looked for. The reason is empty if nothing was chosen yet. `loading` is there
    while the tensor is being made. `is_missing`: the file is not there.
    """

    array: Array | None
    problem: str = ""
    span: tuple[float, float] | None = None
    loading: Load | None = None
    is_missing: bool = False


class Load(Struct, eq=False):
    """A value to be made: of the input at a position, as the words say, in a shape where that is to be filled."""

    position: int
    parameter: Layer
    spec: str
    shape: Shape | None
    reading: ReadProgress = field(default_factory=ReadProgress)

    @property
    def is_small(self) -> bool:
        """True if it is made at once."""
        if ".np" not in self.spec:
            shape = parameter_shape(self.parameter).static if self.shape is None else self.shape
            return shape is None or math.prod(shape) <= SMALL
        return all(_size(path) <= SMALL for path in (Path(self.spec), Path(self.spec.rpartition(":")[0])))

    def outcome(self) -> LoadOutcome:
        """Make the value, however long that takes, and return it."""
        parameter, reading = self.parameter, self.reading
        reading.check = lambda shape: ensure_shape(parameter, shape)
        try:
            reading.heed(0)
            array = value_of(parameter, self.spec, self.shape, reading)
            element_type = parameter_type(parameter)
            if element_type is not None and array.dtype != element_type.dtype:
                reading.begin(array.shape, array.nbytes)  # converting makes copies of all of it
            array = converted(parameter, array)
            return LoadOutcome(array, span=_span(array))
        except ReadingStopped:
            return LoadOutcome(None, STOPPED)
        except MemoryError:
            return LoadOutcome(None, "there is not enough memory")
        except StepperError as error:
            problem = str(error).splitlines()[0].removeprefix(f"input '{parameter.name}'").lstrip(": ")
        return LoadOutcome(None, problem)  # without what stands beside it anyway


class Loader:
    """Makes values in a thread; `tell` is called there with each load and what came of it."""

    def __init__(self, tell: Callable[[Load, LoadOutcome], object]) -> None:
        self._tell = tell
        self._loads: deque[Load] = deque()
        self._lock = threading.Lock()
        self._works = False

    def begin(self, load: Load) -> None:
        """Make it when those before are made."""
        with self._lock:
            self._loads.append(load)
            if self._works:
                return
            self._works = True
        threading.Thread(target=self._work, name="inputs", daemon=True).start()

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._loads:
                    self._works = False
                    return
                load = self._loads.popleft()
            try:
                outcome = load.outcome()
            except Exception as error:  # a fault must not leave an input that loads for ever
                outcome = LoadOutcome(None, f"a fault in the program: {error!r}")
            self._tell(load, outcome)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except (OSError, ValueError):
        return 0


def _span(array: Array) -> tuple[float, float] | None:
    if array.dtype.kind not in "fiub" or not 0 < array.size <= _MOST_COMPARED:
        return None
    return float(array.min()), float(array.max())


# Values near to what was typed: files in the folder that the path names, and a literal in more brackets.
#
# Of a file only the header is read. At most so many files are looked at; whatever is damaged is left out.

_MOST_ENTRIES = 500
_MOST_FILES = 24
_MOST_MEMBERS = 50
_MOST_NEAR = 8


class Near(Record):
    """Something that may be meant: the words for it, type and shape, bytes (0: not known), and how it fits.

    `swapped` are two axes which, swapped, have the shape of the input.
    """

    spec: str
    type: str
    bytes: int
    verdict: str
    fits: bool = False
    swapped: tuple[int, int] | None = None


def near_files(parameter: Layer, text: str, model_folder: Path) -> list[Near]:
    """Arrays that may be meant, those that fit first, then by how alike the names are."""
    found = [near for path in _paths(text, model_folder) for near in _arrays(parameter, path)]
    plain = text.strip()
    alike = {
        near.spec: difflib.SequenceMatcher(None, plain, near.spec, autojunk=False).ratio()
        + (1.0 if plain and near.spec.startswith(plain) else 0.0)
        + (0.4 if near.spec.endswith(f":{parameter.name}") else 0.0)
        for near in found
    }
    return sorted(found, key=lambda near: (not near.fits, -alike[near.spec], near.spec))[:_MOST_NEAR]


def fitting_values(parameters: Sequence[Layer], model_folder: Path) -> dict[int, str]:
    """Return a value for each input, by position, all of one .npz beside the model; empty where none has them all.

    By name; in a file that is called inputs or the like an input may be the only array left that fits.
    """
    archives = [path for path in _paths(f"{model_folder}{os.sep}", model_folder) if path.suffix == ".npz"]
    for path in sorted(archives, key=lambda path: ("input" not in path.stem, path.name)):
        if found := _values_of(parameters, path, by_name="input" not in path.stem):
            return found
    return {}


def _values_of(parameters: Sequence[Layer], path: Path, *, by_name: bool) -> dict[int, str]:
    fitting = [[near.spec for near in _arrays(one, path) if near.fits] for one in parameters]
    named = [f"{path}:{one.name}" for one in parameters]
    found = {position: spec for position, spec in enumerate(named) if spec in fitting[position]}
    for position, specs in enumerate(fitting):
        if position not in found:
            left = [spec for spec in specs if spec not in found.values()]
            if by_name or len(left) != 1:
                return {}
            found[position] = left[0]
    return found


def near_literals(parameter: Layer, text: str) -> list[Near]:
    """Return the same literal in more brackets, where that fits."""
    dimensions = parameter_shape(parameter).dimensions
    for more in range(1, len(dimensions or ()) + 1):
        spec = f"{'[' * more}{text.strip()}{']' * more}"
        try:
            array = converted(parameter, value_of(parameter, spec))
        except StepperError:
            continue
        return [Near(spec, form_text(array), 0, "fits")]
    return []


def _paths(text: str, model_folder: Path) -> list[Path]:
    """Return the files of the folder that the text names; without one, here and beside the model."""
    head = Path(text.strip().partition(".npz:")[0] or ".")
    named = head if text.endswith(("/", os.sep)) else head.parent
    folders = [named] if str(named) != "." else [Path(), model_folder]
    found: dict[Path, Path] = {}
    for folder in folders:
        try:
            with os.scandir(folder) as entries:
                for _, entry in zip(range(_MOST_ENTRIES), entries, strict=False):
                    if entry.name.endswith((".npy", ".npz")) and entry.is_file():
                        path = folder / entry.name
                        found.setdefault(path.resolve(), path)
        except OSError:
            continue
    wanted = head.name
    ranked = sorted(found.values(), key=lambda path: -difflib.SequenceMatcher(None, wanted, path.name).ratio())
    return ranked[:_MOST_FILES]


def _arrays(parameter: Layer, path: Path) -> Iterator[Near]:
    try:
        if path.suffix == ".npy":
            with path.open("rb") as file:
                header = header_of(file)
            yield _near(str(path), header.bytes, parameter, header)
            return
        for key, array in list(read_archive(path).items())[:_MOST_MEMBERS]:
            yield _near(f"{path}:{key}", array.nbytes, parameter, array)
    except (OSError, ValueError, InputError):
        return


def _near(spec: str, size: int, parameter: Layer, form: HasForm) -> Near:
    declared, type, shape = parameter_shape(parameter), form_text(form), form.shape
    if not declared.accepts(shape):
        for axis in range(len(shape) - 1):
            turned = (*shape[:axis], shape[axis + 1], shape[axis], *shape[axis + 2 :])
            if declared.accepts(turned):
                verdict = f"axes {axis} and {axis + 1} swapped?"
                return Near(spec, type, size, verdict, swapped=(axis, axis + 1))
        return Near(spec, type, size, "another shape")
    kind = parameter_type(parameter)
    fits = kind is None or kind.dtype == form.dtype
    return Near(spec, type, size, "fits" if fits else f"is {element_types.name_of(form.dtype)}", fits)


class InputSource(StrEnum):
    """Where a value comes from."""

    FILE = "file"
    LITERAL = "literal"
    RANDOM = "random"
    ZEROS = "zeros"
    ONES = "ones"

    @property
    def is_filled(self) -> bool:
        """True if it makes a tensor of whatever shape is asked for."""
        return self in (InputSource.RANDOM, InputSource.ZEROS, InputSource.ONES)

    @property
    def is_typed(self) -> bool:
        """True if something is to be typed for it."""
        return self not in (InputSource.ZEROS, InputSource.ONES)


_LETTERS = "TSRQPNMLKJHGFEDCBA"


class OpenDimension(Struct):
    """A dimension that the file leaves open; `size` is the typed size (None: nothing typed)."""

    letter: str
    position: int
    axis: int
    least: int
    most: int | None
    size: int | None = None


class Choice(Struct):
    """Choice for one input; `texts` keeps what was typed for each source."""

    parameter: Layer
    source: InputSource | None = None
    texts: dict[InputSource, str] = field(default_factory=lambda: {InputSource.RANDOM: "0"})

    @property
    def text(self) -> str:
        """The text for the present source."""
        return "" if self.source is None else self.texts.get(self.source, "")

    @property
    def spec(self) -> str:
        """The words of the command line for it; empty for none."""
        if self.source is None:
            return ""
        if self.source is InputSource.RANDOM:
            return f"rand:{self.text}"
        return self.text if self.source.is_typed else str(self.source)


class Opening(Record, eq=False):
    """A model whose inputs are to be chosen: what was given already, and how a debugger is made of it.

    `values` are those of the texts that are there already.
    """

    model: Model
    texts: Mapping[int, str]
    shapes: Mapping[int, Shape]
    make: Callable[[Mapping[int, Array]], Debugger]
    values: Mapping[int, Array] = field(default_factory=dict)


class InputChoices:
    """All inputs of a model and what was chosen for them; `loader` makes large values (None: all are made here)."""

    def __init__(self, opening: Opening, loader: Loader | None = None) -> None:
        self.opening = opening
        self._loader = loader
        self.choices = [Choice(parameter) for parameter in opening.model.graph.parameters]
        self.dimensions = list(_open_dimensions(self.choices))
        self._outcomes: dict[int, tuple[tuple[str, Shape | None], LoadOutcome]] = {}
        for position, text in opening.texts.items():
            self.put(position, text)
        for position, shape in opening.shapes.items():
            for dimension in self.of(position):
                dimension.size = shape[dimension.axis] if dimension.axis < len(shape) else None
        for position, value in opening.values.items():
            self._outcomes[position] = (self.choices[position].spec, self._to_fill(position)[0]), LoadOutcome(value)

    # --- choosing ------------------------------------------------------------------------------------------------

    def put(self, position: int, spec: str) -> None:
        """Choose by the words of the command line."""
        choice, text = self.choices[position], spec.strip()
        self._again(position)
        word, _, rest = text.partition(":")
        if text in (InputSource.ZEROS, InputSource.ONES):
            choice.source = InputSource(text)
        elif word in ("rand", "random"):
            choice.source = InputSource.RANDOM
            choice.texts[InputSource.RANDOM] = rest or "0"
        else:
            choice.source = InputSource.FILE if ".np" in text else InputSource.LITERAL
            choice.texts[choice.source] = text

    @cached_property
    def beside(self) -> dict[int, str]:
        """Return values for all inputs from one file beside the model; empty where none has all."""
        return fitting_values([one.parameter for one in self.choices], self.opening.model.path.parent)

    @property
    def proposed(self) -> dict[int, str]:
        """Return those of `beside` for the inputs without a choice."""
        return {
            position: self.beside[position]
            for position, choice in enumerate(self.choices)
            if choice.source is None and position in self.beside
        }

    def turn(self, position: int, by: int) -> None:
        """The next source, or the one before."""
        sources, choice = list(InputSource), self.choices[position]
        at = -1 if choice.source is None and by > 0 else 0 if choice.source is None else sources.index(choice.source)
        choice.source = sources[(at + by) % len(sources)]

    def type(self, position: int, text: str) -> None:
        """Set the text for the present source; of an input without one, that which the text looks like."""
        choice = self.choices[position]
        if choice.source is None or not choice.source.is_typed:
            choice.source = InputSource.LITERAL
        choice.texts[choice.source] = text
        self._again(position)

    def _again(self, position: int) -> None:
        """Forget that the value was not to be loaded."""
        known = self._outcomes.get(position)
        if known is not None and known[1].problem == STOPPED:
            del self._outcomes[position]

    def of(self, position: int) -> list[OpenDimension]:
        """Return the open dimensions of an input."""
        return [dimension for dimension in self.dimensions if dimension.position == position]

    def set_size(self, letter: str, text: str) -> None:
        """A size for an open dimension, * for all that have none. UsageError for what is none."""
        if letter == "*":
            wanted = [dimension for dimension in self.dimensions if dimension.size is None]
        else:
            wanted = [dimension for dimension in self.dimensions if dimension.letter == letter]
        if not wanted:
            known = ", ".join(dimension.letter for dimension in self.dimensions) or "none"
            raise UsageError(f"there is no open dimension '{letter}'; there are {known}")
        if not text.isdecimal() or len(text) > 12:
            raise UsageError(f"'{text}' is not a size; type a number such as 8")
        for dimension in wanted:
            size = int(text)
            if size < dimension.least or (dimension.most is not None and size > dimension.most):
                raise UsageError(f"{dimension.letter} may be {bounds(dimension)}, not {size}")
            dimension.size = size

    # --- what comes of it ----------------------------------------------------------------------------------------

    def outcome(self, position: int) -> LoadOutcome:
        """Return the value of an input, or why there is none; made once for each choice."""
        choice = self.choices[position]
        if choice.source is None:
            return LoadOutcome(None)
        shape, problem = self._to_fill(position)
        if problem:
            return LoadOutcome(None, problem)
        key = choice.spec, shape
        known = self._outcomes.get(position)
        if known is None or known[0] != key:
            if known is not None and known[1].loading is not None:
                known[1].loading.reading.stopped = True
            known = self._outcomes[position] = key, self._made(position, shape)
        return known[1]

    def _to_fill(self, position: int) -> tuple[Shape | None, str]:
        """Return the shape that a choice fills which makes a tensor of any."""
        source = self.choices[position].source
        return self._shape(position) if source is not None and source.is_filled else (None, "")

    def _made(self, position: int, shape: Shape | None) -> LoadOutcome:
        choice = self.choices[position]
        if not choice.spec:
            return LoadOutcome(None, f"type a {'path' if choice.source is InputSource.FILE else choice.source}")
        if choice.source is InputSource.FILE and not is_file(choice.spec):
            return LoadOutcome(None, "no such file", is_missing=True)
        load = Load(position, choice.parameter, choice.spec, shape)
        if self._loader is None or load.is_small:
            return load.outcome()
        self._loader.begin(load)
        return LoadOutcome(None, loading=load)

    def take(self, load: Load, outcome: LoadOutcome) -> None:
        """A value is made; it counts if nothing else was chosen since."""
        known = self._outcomes.get(load.position)
        if known is not None and known[1].loading is load:
            self._outcomes[load.position] = known[0], outcome

    @property
    def loads(self) -> list[Load]:
        """The values that are being loaded."""
        return [known.loading for _key, known in self._outcomes.values() if known.loading is not None]

    def stop_loading(self) -> bool:
        """Stop all that is being loaded; False if there is nothing."""
        loads = self.loads
        for load in loads:
            load.reading.stopped = True
            self.take(load, LoadOutcome(None, STOPPED))
        return bool(loads)

    def _shape(self, position: int) -> tuple[Shape | None, str]:
        """Return the shape to fill, where the file leaves any of it open; or what is missing for it."""
        dimensions = parameter_shape(self.choices[position].parameter).dimensions
        if dimensions is None:
            return self.opening.shapes.get(position), (
                "" if position in self.opening.shapes else "any rank: type a literal"
            )
        mine = {dimension.axis: dimension for dimension in self.of(position)}
        unset = [dimension.letter for dimension in mine.values() if dimension.size is None]
        if unset:
            return None, f"size of {', '.join(unset)}?"
        if not mine:
            return None, ""
        sizes = [mine[axis].size if axis in mine else one.least for axis, one in enumerate(dimensions)]
        return tuple(size or 0 for size in sizes), ""

    def size_of(self, dimension: OpenDimension) -> tuple[int | None, str]:
        """Return the size of an open dimension, and its origin: typed, or as the value has it."""
        choice = self.choices[dimension.position]
        if choice.source is not None and not choice.source.is_filled:
            array = self.outcome(dimension.position).array
            size = None if array is None or dimension.axis >= array.ndim else array.shape[dimension.axis]
            return size, f"by {choice.source}"
        return dimension.size, "typed" if dimension.size is not None else "Enter types"

    @property
    def files(self) -> ProtectedFiles:
        """The files from which values come."""
        read = ((one.parameter.name, file_of(one.spec)) for one in self.choices)
        return ProtectedFiles(tuple(ProtectedFile(file, f"input '{name}'") for name, file in read if file is not None))

    @property
    def ready(self) -> int:
        """How many inputs have a value that fits."""
        return len(self.choices) - len(self.missing)

    @property
    def missing(self) -> tuple[str, ...]:
        """The names of the inputs that have no value yet, or none that fits."""
        return tuple(
            choice.parameter.name for place, choice in enumerate(self.choices) if self.outcome(place).array is None
        )

    def arrays(self) -> dict[int, Array]:
        """Return all values by position. UsageError where one is missing."""
        found = {position: self.outcome(position).array for position in range(len(self.choices))}
        loading = {load.position for load in self.loads}
        missing = [
            self.choices[position].parameter.name + " (still loading)" * (position in loading)
            for position, one in found.items()
            if one is None
        ]
        if missing:
            raise UsageError(f"not ready: {', '.join(missing[:8])}{' ...' if len(missing) > 8 else ''}")
        return {position: array for position, array in found.items() if array is not None}

    def position_of(self, name: str) -> list[int]:
        """Return the inputs that a name means; * are those without a choice. UsageError for an unknown one."""
        if name == "*":
            return [position for position, choice in enumerate(self.choices) if choice.source is None]
        found = [position for position, choice in enumerate(self.choices) if choice.parameter.name == name]
        if not found:
            known = ", ".join(choice.parameter.name for choice in self.choices[:20])
            raise UsageError(f"the model has no input '{name}'; its inputs are {known}")
        return found

    def command_line(self) -> list[str]:
        """Return the same as options of the command line, one or two an input."""
        options = []
        for position, choice in enumerate(self.choices):
            if choice.source is None or not choice.spec:
                continue
            name = choice.parameter.name
            options.append(f"--input {shlex.quote(f'{name}={choice.spec}')}")
            if choice.source.is_filled and (shape := self._shape(position)[0]) is not None:
                sizes = ",".join(map(str, shape))
                options.append(f"--shape {shlex.quote(f'{name}={sizes}')}")
        return options

    def type_text(self, position: int) -> str:
        """Type and shape of an input, a letter for each open dimension."""
        parameter = self.choices[position].parameter
        kind = parameter_type(parameter)
        shape = parameter_shape(parameter)
        if shape.dimensions is None:
            return f"{kind or 'any'}[...]"
        letters = {dimension.axis: dimension.letter for dimension in self.of(position)}
        sizes = (letters.get(axis, str(size)) for axis, size in enumerate(shape.dimensions))
        return f"{kind or 'any'}[{','.join(sizes)}]"


def _open_dimensions(choices: Iterable[Choice]) -> Iterable[OpenDimension]:
    number = 0
    for position, choice in enumerate(choices):
        for axis, one in enumerate(parameter_shape(choice.parameter).dimensions or ()):
            if one.least != one.most:
                turn, place = divmod(number, len(_LETTERS))
                yield OpenDimension(f"{_LETTERS[place]}{turn or ''}", position, axis, one.least, one.most)
                number += 1


def is_file(spec: str) -> bool:
    """True if the file of a SPEC is there."""
    try:
        return Path(spec).is_file() or Path(spec.rpartition(":")[0]).is_file()
    except (OSError, ValueError):
        return False


def bounds(dimension: OpenDimension) -> str:
    """Return the sizes that an open dimension may have, in words."""
    if dimension.most is None:
        return f"{dimension.least} or more" if dimension.least else "any size"
    return f"{dimension.least} to {dimension.most}"
