"""The function of a model that is wanted, in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stepper.element_types import Array
from stepper.openvino.functions.compiled import CalledText, CompiledText
from stepper.openvino.functions.iterated import IteratedText
from stepper.openvino.functions.kinds import FunctionKind
from stepper.openvino.runtime import Runtime
from stepper.openvino.texts.native_text import NativeText


def function_of(
    kind: FunctionKind, runtime: Runtime, text: NativeText, states: Mapping[str, Array]
) -> Callable[..., tuple[Array, ...]]:
    """Return a function of this kind of a model's text."""
    if kind.stacked:
        return IteratedText(runtime, text, kind.stacked)
    compiled = CompiledText(runtime, text, states)
    return compiled if kind.calls is None else CalledText(compiled, kind.calls, kind.joined)
