"""A whole model as readable numpy code: the loops of the model are Python loops, each operation is a statement.

    code = numpy_code(model)
    Path("model.py").write_text(code.text)             # np.savez("model.npz", **code.constants) beside it, if not empty

The file has one function, `python model.py inputs.npz outputs.npz` calls it. It follows the specification's rules, as
`stepper run` does by default, and needs numpy alone as long as it calls none of this product's kernels.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct, field

from stepper import __version__
from stepper.element_types import Array, is_of_numpy, name_of
from stepper.engine.compiler import compile_model
from stepper.engine.program import CompiledModel, Operation, OpKind, Program
from stepper.engine.rules import Rules
from stepper.engine.run import output_names
from stepper.errors import StepperError, UsageError
from stepper.export.numpy_code.calls import PACKAGE
from stepper.export.numpy_code.graph_writer import FunctionWriter, GraphWriter
from stepper.export.numpy_code.identifiers import Identifiers, described, identifier, name_for
from stepper.export.numpy_code.literals import dtype_text, text
from stepper.export.numpy_code.loop_writer import write_loop
from stepper.export.picture import FigureRequest, FileContent
from stepper.ir.model import Layer, Model, parameter_shape, parameter_type
from stepper.ops.operands import shape_text
from stepper.plain_values import storable
from stepper.query.short_names import is_automatic
from stepper.wording import excerpt

_ABOUT: Final = """Written by stepper {version} from {file}, by the rules of the specification (--rules spec).
An index out of range, the maximum of nothing and the like are what numpy makes of them.
As a script: python THIS_FILE inputs.npz outputs.npz"""
_SOFTMAX: Final = """
def softmax(x, axis):
    e = np.exp(x - np.max(x, axis, keepdims=True))
    return e / np.sum(e, axis, keepdims=True)
"""
_ITERATIONS: Final = """
def iterations(trip_count):
    return range(trip_count.item()) if trip_count >= 0 else itertools.count()
"""
_JOINED: Final = """
def joined_calls(pieces):  # where they cannot be joined it is what the last call gave
    shapes = {np.shape(piece)[1:] for piece in pieces}
    return np.concatenate(pieces) if len(shapes) == 1 else pieces[-1]
"""
_SIGMOID: Final = """
def sigmoid(x):
    return 1 / (1 + np.exp(-x))
"""


class NumpyCode(Struct, frozen=True):
    """The text of a Python file, and the tensors that it reads from the .npz of the same name beside it."""

    text: str
    constants: dict[str, Array] = field(default_factory=dict)


def write(model: Model, request: FigureRequest) -> FileContent:
    """Return the code of the model, or of one loop of it, and the constants for the .npz beside it."""
    others = Counter(request.content.elsewhere.values())
    if others:
        whose = ", ".join(f"{count} by {who}" for who, count in others.items())
        request.warn(f"the code has numpy alone; of these operations the run has {whose}")
    code = numpy_code(model, rules=request.rules, loop=request.loop)
    return FileContent(code.text.encode(), code.constants)


def numpy_code(model: Model, *, rules: Rules = Rules.SPEC, loop: str | None = None) -> NumpyCode:
    """Return the model as Python code; with `loop` that loop alone, by its name or id, a function of what goes into it.

    Raises UsageError for an operation without a kernel, for loops nested too deep for Python, for a loop that is not
    there, and for other rules than the specification's.
    """
    if rules is not Rules.SPEC:
        raise UsageError("numpy code follows the rules of the specification; leave --rules out")
    file = _File(compile_model(model))
    try:
        return file.whole() if loop is None else file.of_loop(*_found(file.compiled, loop))
    except StepperError:
        raise
    except (ArithmeticError, IndexError, SyntaxError, ValueError) as error:
        # A model that no run would get through either: an axis of no tensor, a condition without an element.
        raise UsageError(f"{model.path}: has no form as numpy code: {excerpt(str(error))}") from error


def _found(compiled: CompiledModel, wanted: str) -> tuple[Program, Operation]:
    """Return the loop of this name or id, and the program that it is in."""
    everything = [(program, op) for program in compiled.programs for op in program.operations if op.kind is OpKind.LOOP]
    found = [pair for pair in everything if pair[1].layer.name == wanted]
    found = found or [pair for pair in everything if str(pair[1].layer.id) == wanted]
    if len(found) == 1:
        return found[0]
    names = ", ".join(described(operation.layer) for _program, operation in found or everything)
    if found:
        raise UsageError(f"there are {len(found)} loops '{excerpt(wanted)}': {names}")
    raise UsageError(f"there is no loop '{excerpt(wanted)}'; " + (f"there are {names}" if names else "there is none"))


class _Argument(Struct, frozen=True):
    """An argument of the function: its name, that of its array in the .npz, its type, and what a comment says of it."""

    name: str
    array: str
    dtype: np.dtype[Any] | None
    note: str


class _File:
    """One file under construction."""

    def __init__(self, compiled: CompiledModel) -> None:
        self.compiled, self.model = compiled, compiled.model
        self.writer = FunctionWriter(write_loop)
        self.title = f"The model {_quoted(self.model.name or self.model.path.stem)} as numpy code."
        self.arguments: list[_Argument] = []
        self.outputs: list[str] = []
        self.function = ""

    def whole(self) -> NumpyCode:
        """Return the code of the whole model."""
        main = self.compiled.main
        self._name_function(self.model.name or self.model.path.stem)
        scope = GraphWriter(self.writer, main)
        for parameter, slot in zip(main.graph.parameters, main.parameters, strict=True):
            self._add_input(scope, parameter, slot)
        scope.write()
        self.outputs = output_names(self.model)
        return self._written(scope, main.results)

    def of_loop(self, program: Program, operation: Operation) -> NumpyCode:
        """Return the code of one loop."""
        layer = operation.layer
        model = _quoted(self.model.name or self.model.path.stem)
        self.title = f"The loop {_quoted(layer.name)} (id {layer.id}) of the model {model} as numpy code."
        self._name_function(name_for(layer))
        scope = GraphWriter(self.writer, program)
        for slot in dict.fromkeys(operation.inputs):
            if slot >= 0 and program.template[slot] is None:
                operand = scope.declared(slot)
                name = self.writer.names.new(operand.wanted_name)
                scope.bind_name(slot, name)
                dims = shape_text(operand.dims).replace("-1", "?")
                shape = "" if operand.dtype is None else f"{name_of(operand.dtype)}{dims}"
                self.arguments.append(_Argument(name, name, operand.dtype, shape))
        write_loop(scope, operation)
        results = [slot for slot in operation.outputs if scope.is_read(slot)]
        self.outputs = [scope.text(slot) for slot in results]
        return self._written(scope, results)

    def _name_function(self, wanted: str) -> None:
        self.function = self.writer.names.new(identifier(wanted, "model").lower())

    def _add_input(self, scope: GraphWriter, parameter: Layer, slot: int) -> None:
        name = self.writer.names.new("x" if is_automatic(parameter) else name_for(parameter))
        scope.bind_name(slot, name)
        declared = parameter_type(parameter)
        shape = f"{declared or ''}{excerpt(str(parameter_shape(parameter)))}"
        note = shape if parameter.name == name else f"'{excerpt(parameter.name)}', {shape}"
        self.arguments.append(_Argument(name, parameter.name, None if declared is None else declared.dtype, note))

    def _written(self, scope: GraphWriter, results: Sequence[int]) -> NumpyCode:
        types = [scope.operand(slot).dtype for slot in results]
        if any(dtype is None or not is_of_numpy(dtype) for dtype in types):
            self.writer.needs.add("storable")  # .npz has no such types
        texts = [scope.text(slot) for slot in results]
        self.writer.lines.append("")
        self.writer.line(f"return {', '.join(texts)}" if len(texts) > 1 else f"return ({''.join(texts)},)")
        function = self._function()
        content = "\n".join([*self._head(), *function, *self._script(), ""])
        compile(content, "<numpy code>", "exec")
        constants = {name: storable(value) for name, (value, _note) in self.writer.constants.items()}
        return NumpyCode(content, constants)

    def _function(self) -> list[str]:
        has_state = "state" in self.writer.needs
        names = [argument.name for argument in self.arguments] + ["state=None"] * has_state
        lines = ['@np.errstate(all="ignore")', f"def {self.function}({', '.join(names)}):"]
        if has_state:
            lines.append("    state = {} if state is None else state  # what lasts from one call to the next")
        for argument in self.arguments:
            kind = "" if argument.dtype is None else f", {self._kind(argument.dtype)}"
            lines.append(f"    {argument.name} = np.asarray({argument.name}{kind})  # {argument.note}".rstrip(" #"))
        return [*lines, *self.writer.lines]

    def _kind(self, dtype: np.dtype[Any]) -> str:
        text = dtype_text(dtype)
        if "ml_dtypes" in text:
            self.writer.needs.add("ml_dtypes")
        return text

    # --- around it -----------------------------------------------------------------------------------------------

    def _head(self) -> list[str]:
        needs = self.writer.needs
        modules = sorted(need.removeprefix(f"{PACKAGE}.") for need in needs if need.startswith(f"{PACKAGE}."))
        lines = [
            f'"""{self.title}',
            "",
            *_ABOUT.format(version=__version__, file=_quoted(self.model.path.name)).split("\n"),
            '"""',
            "",
        ]
        lines += ["import itertools"] if "itertools" in needs else []
        lines += ["import sys"]
        lines += ["from pathlib import Path"] if self.writer.constants else []
        lines += ["", "import ml_dtypes"] if "ml_dtypes" in needs else [""]
        lines += ["import numpy as np"]
        lines += [""] if modules or needs & {"ELEMENT_TYPES", "storable"} else []
        lines += ["from stepper.element_types import ELEMENT_TYPES"] if "ELEMENT_TYPES" in needs else []
        lines += ["from stepper.plain_values import storable"] if "storable" in needs else []
        lines += [f"from {PACKAGE} import {', '.join(modules)}"] if modules else []
        return [*lines, *self._constants(), *self._helpers(), "", ""]

    def _constants(self) -> list[str]:
        lines: list[str] = [""] if self.writer.literals or self.writer.constants else []
        lines += [f"{name} = {text}  # {note}" for name, (text, note) in self.writer.literals.items()]
        if self.writer.constants:
            lines.append('with np.load(Path(__file__).with_suffix(".npz"), allow_pickle=False) as constants:')
        for name, (value, note) in self.writer.constants.items():
            lines.append(f'    {name} = constants["{name}"]{_restored(value)}  # {note}')
        return lines

    def _helpers(self) -> list[str]:
        helpers = {"iterations": _ITERATIONS, "joined_calls": _JOINED, "sigmoid": _SIGMOID, "softmax": _SOFTMAX}
        wanted = [text for name, text in helpers.items() if name in self.writer.needs]
        return [line for text in wanted for line in ["", *text.rstrip().split("\n")]]

    def _script(self) -> list[str]:
        inputs = [argument.array for argument in self.arguments]
        return [
            "",
            "",
            f"INPUTS = {_list_text(_array_names(inputs))}",
            f"OUTPUTS = {_list_text(_array_names(self.outputs))}",
            "",
            'if __name__ == "__main__":',
            "    with np.load(sys.argv[1], allow_pickle=False) as given:",
            f"        outputs = {self.function}(*(given[name] for name in INPUTS))",
            *(["    outputs = [storable(value) for value in outputs]"] if "storable" in self.writer.needs else []),
            "    np.savez(sys.argv[2], **dict(zip(OUTPUTS, outputs)))",
        ]


def _array_names(names: list[str]) -> list[str]:
    """Return names for arrays of an .npz: each once, and none that numpy reserves."""
    unique = Identifiers(("file", "allow_pickle"))
    return [
        name if names.count(name) == 1 and name not in ("file", "allow_pickle") else unique.new(identifier(name))
        for name in names
    ]


def _list_text(names: list[str]) -> str:
    return f"[{', '.join(text(name) for name in names)}]"


def _restored(value: Array) -> str:
    """Return the conversion from the type in which an .npz keeps a tensor to its own."""
    if value.dtype.names:
        return f".view({dtype_text(value.dtype)})"
    return "" if is_of_numpy(value.dtype) else f".astype({dtype_text(value.dtype)})"


def _quoted(text: str) -> str:
    """Return a name for the first lines of the file: it can neither end them nor say anything else."""
    return "'" + excerpt(text).translate({ord(sign): " " for sign in "\\\"'{}"}) + "'"
