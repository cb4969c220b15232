"""An operation as a call of the product's own kernel: what serves where nothing shorter says the same."""

from __future__ import annotations

import functools
import sys
import typing
from typing import Final

from stepper.errors import UsageError
from stepper.export.numpy_code.emit_context import EmitContext
from stepper.export.numpy_code.expressions import CodeExpression, call
from stepper.export.numpy_code.literals import attribute
from stepper.ir.model import Layer
from stepper.ops import registry
from stepper.ops.registry import FILE_OF, Kernel

PACKAGE: Final = "stepper.ops"


def kernel_of(layer: Layer) -> Kernel:
    """Return the kernel of a layer. UsageError where there is none."""
    found = None if layer.definition is None else registry.find(layer.type, layer.definition)
    if found is None:
        raise UsageError(
            f"{layer} has no kernel, so there is no numpy code for it; in a run a partner such as OpenVINO computes it"
        )
    return found


def kernel_call(context: EmitContext, kernel: Kernel, *state: str) -> CodeExpression:
    """Return the call, the attributes that differ from their defaults as keywords; `state` goes before the inputs."""
    module, name = _place(kernel)
    context.needs.add(f"{PACKAGE}.{module}")
    arguments = [context.argument(index).text if context.has(index) else "None" for index in range(len(context))]
    while arguments and arguments[-1] == "None":
        arguments.pop()
    keywords = {name: attribute(value) for name, value in kernel.changed(context.layer.attributes).items()}
    if any("ELEMENT_TYPES" in text for text in keywords.values()):
        context.needs.add("ELEMENT_TYPES")
    return call(f"{module}.{name}", *state, *arguments, **keywords)


def outputs_given(kernel: Kernel) -> int | None:
    """Return the number of outputs of the kernel; None where it is that of the layer."""
    hint = typing.get_type_hints(kernel.function)["return"]
    parts = typing.get_args(hint)
    return None if Ellipsis in parts or typing.get_origin(hint) is not tuple else len(parts)


def _place(kernel: Kernel) -> tuple[str, str]:
    """Return the module and the name by which the kernel's function can be called."""
    prefix = f"{PACKAGE}."
    return _places(tuple(sorted(name for name in sys.modules if name.startswith(prefix))))[id(kernel.function)]


@functools.lru_cache(maxsize=1)
def _places(loaded: tuple[str, ...]) -> dict[int, tuple[str, str]]:
    """Return module and name of each function in the loaded modules; families of kernels are loaded on first use."""
    found: dict[int, tuple[str, str]] = {}
    for name in loaded:
        for attribute_name, value in vars(sys.modules[name]).items():
            if callable(value) and not attribute_name.startswith("_"):
                own = getattr(value, "__module__", None) == name
                if own or id(value) not in found:
                    found[id(value)] = (name.removeprefix(f"{PACKAGE}."), attribute_name)
    return found


def module_names() -> list[str]:
    """Return the names by which modules with kernels are imported; no variable may have them."""
    return sorted(set(FILE_OF.values()))
