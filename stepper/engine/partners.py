"""The seam to another runtime: who computes an operation that no kernel serves, or that the user gives away.

The engine knows a partner by this protocol alone. A loop, a branch, a variable and a random stream are never given
away: they are what can be stepped through, gone back in and resumed, which only state in a machine can.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from stepper.element_types import Array
    from stepper.engine.program import CompiledModel, Operation, Program
    from stepper.ir.model import Layer

Function = Callable[..., tuple[Any, ...]]
"""From the values of a layer's inputs, in port order, to those of its outputs."""


class Partner(Protocol):
    """Provider of single operations. It may keep what it has compiled; it keeps nothing of a run."""

    @property
    def description(self) -> str:
        """The providers of operations in words; two runs of equal descriptions compute alike. A recording keeps it."""

    def computes(self, layer: Layer, *, has_kernel: bool) -> bool:
        """Return True if this layer is the partner's."""

    def bind(self, layer: Layer, constants: Sequence[Array | None]) -> tuple[Function, str]:
        """Return the function that computes a layer, and the provider's description for the screen.

        `constants` are the inputs that never change (None: one that does). Nothing is compiled before the first call.
        The function raises KernelError where the partner refuses the layer, UnsupportedOperation where none can.
        """


_MARKS: Final = {"OpenVINO": "ov"}

Elsewhere = Mapping[tuple[int, int], str]
"""Who computes a layer, in words, by the id of its graph as an object and the layer's own; numpy's are not there."""


def mark_of(computed_by: str) -> str:
    """Return the mark of an operation that a partner computes, on every screen and figure: two letters, empty for none.

    `computed_by` is the words that the partner is known by.
    """
    name = computed_by.partition(" ")[0]
    return _MARKS.get(name, name[:2].lower())


def legend(computed_by: str) -> str:
    """Return the meaning of a mark: `ov: computed by OpenVINO (CPU, f32)`."""
    return f"{mark_of(computed_by)}: computed by {computed_by}"


_default: list[Partner] = []


def set_default_partner(partner: Partner) -> None:
    """Set the provider of operations without a kernel, where a run names none; the package's public names do."""
    _default[:] = [partner]


def default_partner() -> Partner | None:
    """Return the partner of a run that does not name one; None: an operation without a kernel ends the run."""
    return _default[0] if _default else None


def no_kernel(layer: Layer) -> str:
    """Return the sentence that nothing here computes this layer, with its version and its line in the file."""
    version = f"{layer.type}-{layer.definition}" if layer.definition else f"{layer.type} of {layer.version}"
    return f"there is no kernel for {version} (line {layer.line} of the model)"


def operations_elsewhere(compiled: CompiledModel) -> Iterator[tuple[Program, Operation]]:
    """Yield the operations that a partner computes, with the graphs that they are in; those never run included."""
    for program in compiled.programs:
        for operation in (*program.operations, *program.folded):
            if operation.computed_by:
                yield program, operation


def computed_elsewhere(compiled: CompiledModel) -> dict[str, Counter[str]]:
    """Return the number of operations of each type that a partner computes, by its description."""
    found: dict[str, Counter[str]] = {}
    for _program, operation in operations_elsewhere(compiled):
        found.setdefault(operation.computed_by, Counter())[operation.layer.type] += 1
    return found
