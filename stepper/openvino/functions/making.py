"""The function of a model that is wanted, in this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from stepper.element_types import Array
from stepper.openvino.functions.compiled import CalledText, CompiledText
from stepper.openvino.functions.iterated import IteratedText
from stepper.openvino.functions.judged import JudgedText
from stepper.openvino.functions.kinds import FunctionKind
from stepper.openvino.runtime import Runtime
from stepper.openvino.texts.model_text import NativeText


def function_of(
    kind: FunctionKind, runtime: Runtime, text: NativeText, states: Mapping[str, Array], *, lends: bool = False
) -> Callable[..., tuple[Array, ...]]:
    """Return a function of this kind of a model's text; `lends`: arguments of its calls are nobody else's."""
    function = IteratedText(runtime, text, kind.stacked) if kind.stacked else CompiledText(runtime, text, states)
    if kind.judged:
        return JudgedText(function, kind.judged, kind.taken, lends=lends)
    if kind.calls is not None and isinstance(function, CompiledText):
        return CalledText(function, kind.calls, kind.joined)
    return function
