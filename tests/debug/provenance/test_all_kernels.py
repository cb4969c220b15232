"""Every kernel: what an element, or an extent, is said to depend on is all that it depends on."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from stepper.debug.causes.cause import LinkForm
from stepper.debug.provenance.dependence_rules import (
    changes_of,
    contributions,
    dependences,
    extent_contributions,
    extent_parts,
    same_values,
)
from stepper.debug.provenance.operation_at import Dependences, Method, OperationAt
from stepper.engine.program import Operation, OpKind
from stepper.errors import KernelError, StepperError
from stepper.ir.model import Layer
from stepper.operation_types import definition
from stepper.ops import registry
from tests.ops.recording import Case, cases, families
from tests.ops.test_coverage import TESTED_ELSEWHERE
from tests.tables import each_row

MOST_RUNS = 2
"""Kernel runs for one answer here: groups that are left then count as a whole."""
OTHER_EXTENTS = {"AvgPool", "MaxPool", "Split", "VariadicSplit"}
"""Operations of which an extent follows from one extent of an input, and is another one."""


def operation_of(case: Case) -> tuple[Operation, Any]:
    """The operation of a case with its kernel, and what it gives."""
    version = definition(case.type, case.version)
    assert version is not None
    kernel = registry.find(case.type, version)
    assert kernel is not None
    function = kernel.bind(case.attributes)
    layer = Layer(1, "made", case.type, f"opset{case.version}", version, dict(case.attributes), (), (), (), 1)
    slots = tuple(range(len(case.inputs)))
    with np.errstate(all="ignore"):
        found = function(*case.inputs)
    results = tuple(map(np.asarray, found if kernel.several_outputs else (found,)))
    outputs = tuple(range(len(slots), len(slots) + len(results)))
    return Operation(layer, OpKind.KERNEL, slots, outputs, function, kernel.several_outputs), results


def elements(result: Any) -> Iterator[tuple[int, ...]]:
    """The first element, and one in the middle."""
    for place in sorted({0, result.size // 2})[: result.size]:
        yield tuple(int(at) for at in np.unravel_index(place, result.shape)) if result.ndim else ()


def changed_beside(operation: Operation, inputs: Any, found: Dependences) -> Iterator[Any]:
    """What the kernel gives when all elements of an input that are not named are other numbers."""
    masks = {one.input: one.mask for one in found.found}
    for index, value in enumerate(inputs):
        places = np.flatnonzero(~masks.get(index, np.zeros(value.shape, bool)))
        for other in changes_of(np.asarray(value), places, compared=())[:4] if places.size else ():
            given = [*inputs[:index], other.reshape(value.shape), *inputs[index + 1 :]]
            try:
                with np.errstate(all="ignore"):
                    results = operation.function(*given) if operation.function is not None else ()
            except (StepperError, KernelError):  # an index beyond the shape, say
                continue
            yield tuple(map(np.asarray, results if operation.several_outputs else (results,)))


def wrong_elements(case: Case) -> Iterator[str]:
    """What is wrong with the answers about elements of a case."""
    operation, results = operation_of(case)
    arrays = tuple(np.asarray(value) for value in case.inputs)
    for output, result in enumerate(results):
        for element in elements(result) if result.dtype.kind in "biuf" else ():
            mask = np.zeros(result.shape, bool)
            mask[element] = True
            at = OperationAt(operation, arrays, results, output)
            found = dependences(at, mask, MOST_RUNS)
            if found.method is not Method.RULE:
                if found.method is not Method.PERTURBED:
                    yield f"{case.name}: {found.method}"
                continue
            for others in changed_beside(operation, arrays, found):
                other = others[output]
                if other.shape != result.shape or not same_values(other[element], result[element]):
                    yield f"{case.name} {output}{list(element)}: not all that matters is named"
                    break
            made = contributions(at, element)
            if made.terms is not None and result.dtype in (np.float32, np.int64):
                near = np.isclose(float(made.terms.sum()), float(result[element]), rtol=1e-3, atol=1e-3)
                if not (near or case.type.startswith("Reduce")):  # the terms of ReduceL1 are magnitudes
                    yield f"{case.name} {output}{list(element)}: the terms make {made.terms.sum()}"
            if made.form is LinkForm.WHOLE or made.total < len(made.parts):
                yield f"{case.name}: made of whole tensors"


def wrong_extents(case: Case) -> Iterator[str]:
    """What is wrong with the answers about extents of a case: what is handed on or said is that number."""
    operation, results = operation_of(case)
    arrays = tuple(np.asarray(value) for value in case.inputs)
    for output, result in enumerate(results):
        for axis, extent in enumerate(result.shape):
            at = OperationAt(operation, arrays, results, output)
            said = extent_parts(at, axis)
            own = [part for part in said.parts if not part.is_index]
            extent_contributions(at, axis)
            if said.has_rule and len(own) == 1 and case.type not in OTHER_EXTENTS:
                (part,) = own
                value = arrays[part.input]
                one = value.shape[part.element[0]] if part.is_shape else int(value[part.element])
                if one != extent:
                    yield f"{case.name}: axis {axis} is {extent}, not {one}"


@each_row("family", families())
def test_what_is_not_named_does_not_matter(family: str) -> None:
    problems = [
        problem for case in cases(family) for wrong in (wrong_elements, wrong_extents) for problem in wrong(case)
    ]
    assert not problems, "\n".join(problems)


def test_each_kernel_is_asked() -> None:
    asked = {(case.type, definition(case.type, case.version)) for family in families() for case in cases(family)}
    assert registry.all_kernels().keys() - asked == TESTED_ELSEWHERE.keys()  # state, chance, texts and bits
