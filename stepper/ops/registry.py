"""Register kernels: functions that compute operations, and the reading of their attributes.

A kernel is a plain function: the inputs are positional arguments in port order, the attributes keyword-only arguments.
Its signature is its description, and nothing is repeated:

* an attribute's annotation says how its text is read (`int`, `float`, `bool`, `str`, `tuple[int, ...]`, `Literal[...]`,
  `ElementType`, each also `| None`); a hyphen in the file is an underscore here; without a default it is mandatory;
* `**attributes`, under `@attributes_of(other)`, are the attributes of another kernel, or the fields of a record;
* an input with a default may be absent; `*inputs` takes any number;
* a return annotation of `tuple[...]` means several outputs, anything else exactly one.

`stepper.operation_types` lists the types, and the types that are alike. `TABLES` lists other facts by type. A new
operation is added there and to its file in `stepper/ops`; facts of its family in these tables hold for it, too.
"""

from __future__ import annotations

import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from importlib import import_module
from typing import Any, ClassVar, Final, Literal, TypeVar

from stepper import element_types
from stepper.element_types import ElementType
from stepper.errors import KernelError
from stepper.operation_types import DEFINITIONS, FAMILIES, FAMILY_OF
from stepper.records import Brief

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)
Result = TypeVar("Result")


class Kernel(Brief, eq=True, dict=True):
    """Kernel of one operation type in some of its definition versions.

    `direct` is a function of the inputs alone (a numpy ufunc, mostly) that may stand for `function` where no attribute
    differs from its default. `prepared` makes such a function out of all attributes, where more can be settled before
    the run than their values. `settled` makes a function of the first input alone, out of the others as constants and
    all attributes (None where these constants need the kernel itself); it gives and refuses what the kernel does.
    `floating` is a function that may stand for `direct` where all inputs are f32 or all are f64. A stateful kernel
    takes its state first (None at the start), returns (outputs, state). `without` are the inputs and attributes that
    these versions do not have.
    """

    unshown: ClassVar = ("function", "direct", "prepared", "floating", "settled")

    type: str
    versions: tuple[int, ...]
    function: Function
    direct: Function | None = None
    prepared: Callable[..., Function] | None = None
    stateful: bool = False
    floating: Function | None = None
    settled: Callable[..., Function | None] | None = None
    without: tuple[str, ...] = ()

    @cached_property
    def _parameters(self) -> list[inspect.Parameter]:
        parameters = inspect.signature(self.function).parameters.values()
        return [parameter for parameter in parameters if parameter.name not in self.without]

    @cached_property
    def annotations(self) -> dict[str, Any]:
        """The types of attributes and inputs by name."""
        return typing.get_type_hints(self.function)

    @cached_property
    def attributes(self) -> dict[str, inspect.Parameter]:
        """The keyword-only parameters by name."""
        return {parameter.name: parameter for parameter in self._parameters if parameter.kind is parameter.KEYWORD_ONLY}

    @cached_property
    def several_outputs(self) -> bool:
        """True if the function returns a tuple of outputs rather than one array."""
        annotation = self.annotations.get("return")
        if self.stateful:
            annotation = typing.get_args(annotation)[0]
        return typing.get_origin(annotation) is tuple

    def accepted_inputs(self) -> tuple[int, int | None]:
        """Return the least and the greatest number of inputs (None: any number)."""
        parameters = self._parameters[1 if self.stateful else 0 :]
        positional = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        least = sum(p.default is p.empty for p in positional)
        unbounded = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        return least, None if unbounded else len(positional)

    def bind(self, texts: Mapping[str, str]) -> Function:
        """Return the function with the attributes of one layer settled: inputs in, output(s) out.

        `texts` are the attributes as the file has them; unknown ones are ignored, as OpenVINO does.
        Raises KernelError for one that is missing or cannot be read.
        """
        if self.prepared is not None:
            return self.prepared(**self._arguments(texts))
        if changed := self.changed(texts):
            return partial(self.function, **changed)
        return self.direct or self.function

    def settle(self, texts: Mapping[str, str], constants: Sequence[Any]) -> Function | None:
        """Return a function of the first input alone, for a layer whose other inputs are these constants.

        None where the kernel has no such form.
        """
        if self.settled is None:
            return None
        return self.settled(*constants, **self._arguments(texts))

    def changed(self, texts: Mapping[str, str]) -> dict[str, Any]:
        """Return the attributes that differ from their defaults. Raises KernelError as `bind` does."""
        return {name: value for name, value in self._arguments(texts).items() if value != self.attributes[name].default}

    def _arguments(self, texts: Mapping[str, str]) -> dict[str, Any]:
        """Return the attributes that are given, read."""
        given = {name.replace("-", "_"): text for name, text in texts.items()}
        arguments = {}
        for name, parameter in self.attributes.items():
            if name in given:
                arguments[name] = read_attribute(name, given[name], self.annotations[name])
            elif parameter.default is parameter.empty:
                raise KernelError(f"the attribute '{name}' is missing, which {self.type} demands")
        return arguments


_ELSEWHERE = {
    "comparison": "elementwise",
    "bitwise": "elementwise",
    "unary": "elementwise",
    "quantize": "convert",
    "strings": "convert",
    "sequences": "recurrent",
    "sorting": "reduction",
    "activation": "elementwise",
    "normalization": "reduction",
    "space": "convolution",
    "nms": "roi",
}
"""The file of each family that does not have a file of its own name."""

STRUCTURAL = frozenset(FAMILIES["structural"])
"""Types that the engine carries out; they compute nothing of their own."""

FILE_OF = {type: _ELSEWHERE.get(family, family) for type, family in FAMILY_OF.items() if type not in STRUCTURAL}
"""The module below `stepper.ops` that has the kernel of each operation type."""

TABLES = {
    "contributions": "stepper.debug.provenance.dependence_rules:RULES.terms",
    "dependence": "stepper.debug.provenance.dependence_rules:RULES.depends",
    "shape": "stepper.debug.provenance.dependence_rules:RULES.extents",
    "NaN": "stepper.debug.causes.nan_origins:_ELEMENTWISE stepper.debug.causes.nan_origins:_SUMS",
    "rounding": "stepper.compare.rounding:_ARITHMETIC stepper.compare.rounding:SUMS stepper.compare.rounding:STABLE",
    "i32": "stepper.engine.arithmetic:THROUGH_F32",
    "numpy code": "stepper.export.numpy_code.emitters:EMITTERS",
    "formula": "stepper.export.figures.loop_facts:_FUNCTIONS stepper.export.figures.loop_facts:_SIGNS",
    "one element each": "stepper.recording.iterations:_OF_ELEMENTS",
    "departures": "stepper.ops.departures:FACTS",
    "either order": "stepper.compare.align:COMMUTATIVE",
    "keeps NaN": "stepper.sweep.judges:KEEPS_NAN stepper.sweep.judges:KEEPS_NON_FINITE",
    "attributes": "stepper.diagnosis.lint.operations:_DEMANDED stepper.diagnosis.lint.operations:_AXES",
    "decides shapes": "stepper.diagnosis.lint.subjects:DECIDING",
}
"""Facts about operations by type, and the tables that hold them: mappings or sets of types.

With `.name` behind a table, the fact holds for the types whose entry has this field.
"""

_KERNELS: Final[dict[tuple[str, int], Kernel]] = {}


def kernel(
    type: str,
    *versions: int,
    direct: Function | None = None,
    prepared: Callable[..., Function] | None = None,
    stateful: bool = False,
    floating: Function | None = None,
    settled: Callable[..., Function | None] | None = None,
    without: tuple[str, ...] = (),
) -> Callable[[F], F]:
    """Register the decorated function as the kernel of these versions; return it unchanged."""
    unknown = set(versions) - set(DEFINITIONS[type])
    assert versions and not unknown, f"{type} has no definition in opset {sorted(unknown)}"

    def enter(function: F) -> F:
        entry = Kernel(type, versions, function, direct, prepared, stateful, floating, settled, without)
        for version in versions:
            assert (type, version) not in _KERNELS, f"two kernels for {type}-{version}"
            _KERNELS[type, version] = entry
        return function

    return enter


def attributes_of(source: Function) -> Callable[[Callable[..., Result]], Callable[..., Result]]:
    """Declare what the `**attributes` of the decorated function are: the keyword-only arguments of `source`.

    They keep their types and defaults, and come after the function's own.
    """
    shared = [p for p in inspect.signature(source).parameters.values() if p.kind is p.KEYWORD_ONLY]
    hints = typing.get_type_hints(source)

    def declare(function: Callable[..., Result]) -> Callable[..., Result]:
        own = inspect.signature(function)
        first = [p for p in own.parameters.values() if p.kind is not p.VAR_KEYWORD]
        rest = [p for p in shared if p.name not in own.parameters]
        function.__signature__ = own.replace(parameters=[*first, *rest])  # type: ignore[attr-defined]
        function.__annotations__ = hints | typing.get_type_hints(function)
        return function

    return declare


def find(type: str, version: int) -> Kernel | None:
    """Return the kernel of the definition `version` (see operation_types.definition) of an operation type.

    Its file is imported when the first of its types is asked for: a model names a few dozen types at most, and
    importing every file takes longer than reading a small model.
    """
    if type in FILE_OF:
        import_module(f"stepper.ops.{FILE_OF[type]}")
    return _KERNELS.get((type, version))


def all_kernels() -> Mapping[tuple[str, int], Kernel]:
    """Return every (type, definition version) that has a kernel."""
    for file in dict.fromkeys(FILE_OF.values()):
        import_module(f"stepper.ops.{file}")
    return types.MappingProxyType(_KERNELS)


def read_attribute(name: str, text: str, annotation: Any) -> Any:
    """Return an attribute's value from its text in the file, as the annotation of the kernel's argument asks.

    Raises KernelError with the name, the text and what was expected.
    """
    annotation, optional = without_none(annotation)
    origin = typing.get_origin(annotation)
    try:
        if origin is tuple:
            item = typing.get_args(annotation)[0]
            parts = text.replace("[", "").replace("]", "").split(",")
            return tuple(_READERS[item](part.strip()) for part in parts if part.strip())
        if origin is Literal:
            return _choice(text, typing.get_args(annotation))
        if annotation is ElementType and optional and text.lower() in element_types.UNKNOWN_NAMES:
            return None
        return _READERS[annotation](text)
    except (ValueError, OverflowError):
        expected = _EXPECTED.get(annotation) or f"one of {', '.join(map(str, typing.get_args(annotation)))}"
        if origin is tuple:
            expected = f"a list whose elements are each {_EXPECTED[typing.get_args(annotation)[0]]}"
        raise KernelError(f"the attribute '{name}' is '{text}', expected {expected}") from None


def without_none(annotation: Any) -> tuple[Any, bool]:
    """Return an annotation without None, and whether None was in it."""
    if typing.get_origin(annotation) not in (types.UnionType, typing.Union):
        return annotation, False
    (rest,) = (part for part in typing.get_args(annotation) if part is not types.NoneType)
    return rest, True


def _boolean(text: str) -> bool:
    lower = text.strip().lower()
    if lower in ("true", "1"):
        return True
    if lower in ("false", "0"):
        return False
    raise ValueError(text)


def _choice(text: str, choices: tuple[str, ...]) -> str:
    lower = text.strip().lower()
    for choice in choices:
        if choice.lower() == lower:
            return choice
    raise ValueError(text)


def _integer(text: str) -> int:
    value = int(text)
    if not -(2**63) <= value < 2**64:
        raise OverflowError(text)
    return value


def _element_type(text: str) -> ElementType:
    found = element_types.by_name(text.strip()) or element_types.by_precision(text.strip())
    if found is None:
        raise ValueError(text)
    return found


_READERS: Final[dict[Any, Callable[[str], Any]]] = {
    int: _integer,
    float: float,
    bool: _boolean,
    str: str,
    ElementType: _element_type,
}
_EXPECTED: Final[dict[Any, str]] = {
    int: "an integer",
    float: "a number",
    bool: "true or false",
    str: "a text",
    ElementType: f"an element type ({', '.join(element_types.ELEMENT_TYPES)})",
}
