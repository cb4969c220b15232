"""Known faults of the runtime: each with its pass or kernel, and the signature by which it is recognised."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from stepper.diagnosis.reduce.conditions import FaultKind, FoundFault


class ShownFacts(Struct, frozen=True):
    """Features of a reduced model: names of the lint rules that speak of it, types of its operations, the first pass
    that changes what it computes (empty: none), and if a body reads a Constant through Reshape, Squeeze or Unsqueeze.
    """

    rules: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    changed_by: str = ""
    views_a_constant: bool = False


class FaultSignature(Struct, frozen=True):
    """Features of a reduced model by which a fault is recognised; an empty one is not asked for.

    `kinds` are those of the disagreement, `what` is in its place in OpenVINO's sources, `rules` are names of lint
    rules one of which speaks of the model, `types` operations that it has, all of them, `one_of` some; `changed_by` is
    in the name of the first pass that changes what it computes.
    """

    kinds: tuple[FaultKind, ...] = ()
    what: str = ""
    rules: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()
    changed_by: str = ""
    views_a_constant: bool = False

    def fits(self, fault: FoundFault, shown: ShownFacts) -> bool:
        """True if a reduced model has all these features."""
        return (
            (not self.kinds or fault.kind in self.kinds)
            and self.what in fault.what
            and (not self.rules or bool({*self.rules} & shown.rules))
            and shown.types.issuperset(self.types)
            and (not self.one_of or bool({*self.one_of} & shown.types))
            and self.changed_by in shown.changed_by
            and (not self.views_a_constant or shown.views_a_constant)
        )


class RuntimeFault(Struct, frozen=True):
    """A fault of the runtime: what is wrong, since which version it is known, and where it is."""

    id: str
    what: str
    versions: str
    where: str
    signature: FaultSignature


_VALUES: Final = (FaultKind.VALUES, FaultKind.SHAPES)

FAULTS: Final = (
    RuntimeFault(
        "sliced-inputs-unread",
        "a TensorIterator none of whose slices is read: the inputs are left out, and the count of iterations with them",
        "2026.4.1",
        "the pass EliminateLoopInputsOutputs",
        FaultSignature(_VALUES, rules=("sliced-inputs-unread",)),
    ),
    RuntimeFault(
        "square-constant-shared",
        "two MatMuls share a square Constant, one of them transposed: the second has the weights of the first",
        "2026.4.1",
        "the weights cache of the CPU plugin's FullyConnected",
        FaultSignature((FaultKind.VALUES,), rules=("square-constant-shared",)),
    ),
    RuntimeFault(
        "aliased-back-edges",
        "a Result passes a Parameter on as it is, and a back edge carries it to another: it gets the new value",
        "2026.4.1",
        "the back edges of the CPU plugin's TensorIterator node, which share memory",
        FaultSignature(_VALUES, rules=("aliased-back-edges",)),
    ),
    RuntimeFault(
        "abs-sunk-into-a-shared-constant",
        "Abs of a Concat in which one Constant stands twice, such as Abs(Concat(Concat(c, c), c)): wrong numbers",
        "2026.4.1",
        "the pass AbsSinking",
        FaultSignature(_VALUES, changed_by="AbsSinking"),
    ),
    RuntimeFault(
        "dangling-results",
        "a loop has an output that nothing reads: removing it mixes up the outputs, or the count of iterations",
        "2026.4.1",
        "the pass RemoveMultiSubGraphOpDanglingParamsResults",
        FaultSignature(_VALUES, changed_by="RemoveMultiSubGraphOpDanglingParamsResults"),
    ),
    RuntimeFault(
        "product-reshaped-to-a-scalar",
        "a body reshapes a MatMul of one element to a scalar: OpenVINO crashes (SIGSEGV) while it compiles",
        "2026.4.1",
        "the compilation of the body by the CPU plugin",
        FaultSignature((FaultKind.ENDED,), what="compiling", types=("MatMul", "Reshape")),
    ),
    RuntimeFault(
        "parts-beside-the-axis",
        "a TensorIterator whose parts do not fill the axis is refused",
        "2026.4.1",
        "src/plugins/intel_cpu/src/nodes/tensoriterator.cpp",
        FaultSignature((FaultKind.REFUSED,), what="intel_cpu/src/nodes/tensoriterator.cpp"),
    ),
    RuntimeFault(
        "dimension-out-of-range",
        'compiling a loop is refused: "Accessing out-of-range dimension" (the cause is not known)',
        "2026.4.1",
        "src/core/src/shape_util.cpp, while the CPU plugin compiles the loop",
        FaultSignature((FaultKind.REFUSED,), what="shape_util.cpp"),
    ),
    RuntimeFault(
        "static-memory-undefined",
        "compiling is refused over the memory of a loop or an If: its descriptor is undefined, or may not be modified",
        "2026.4.1",
        "src/plugins/intel_cpu/src/cpu_memory.cpp, StaticMemory",
        FaultSignature((FaultKind.REFUSED,), what="intel_cpu/src/cpu_memory.cpp"),
    ),
    RuntimeFault(
        "snippet-layout-rank",
        'compiling is refused: "Layout rank can\'t be larger than tensor rank" (the cause is not known)',
        "2026.4.1",
        "the snippets of the CPU plugin (src/common/snippets)",
        FaultSignature((FaultKind.REFUSED,), what="snippets/src/utils/utils.cpp"),
    ),
    RuntimeFault(
        "fused-data-size",
        "a body adds a Constant to a product along another axis than the last, such as [2,1,1] to [3,2,1,4]: the "
        "addition is fused as one for each channel, and compiling is refused: its data has another size than there are "
        "channels",
        "2026.4.1",
        "src/plugins/intel_cpu/src/dnnl_postops_composer.cpp",
        FaultSignature((FaultKind.REFUSED,), what="dnnl_postops_composer.cpp", types=("MatMul", "Add")),
    ),
    RuntimeFault(
        "sequence-in-a-tensor-iterator",
        "an LSTMSequence, GRUSequence or RNNSequence with clip, or with lengths below its steps, in the body of a "
        "TensorIterator is refused: it is taken apart into a TensorIterator, and one may not hold another",
        "2026.4.1",
        "the passes that take sequences apart, and src/core/src/op/tensor_iterator.cpp",
        FaultSignature(
            (FaultKind.REFUSED,),
            what="core/src/op/tensor_iterator.cpp",
            types=("TensorIterator",),
            one_of=("LSTMSequence", "GRUSequence", "RNNSequence"),
        ),
    ),
    RuntimeFault(
        "folded-body-mismatch",
        "compiling is refused where a loop is evaluated beforehand: its body cannot be, or gets another shape",
        "2026.4.1",
        "src/core/src/model.cpp, Model::evaluate",
        FaultSignature((FaultKind.REFUSED,), what="src/core/src/model.cpp"),
    ),
    RuntimeFault(
        "constant-overwritten",
        "a body reads a Constant through Reshape, Squeeze or Unsqueeze, and what is computed of it is written over the "
        "Constant: the second iteration computes with the result of the first",
        "2026.4.1",
        "operations in place in the CPU plugin: the memory of the Constant is shared with that of the result",
        FaultSignature((FaultKind.VALUES,), views_a_constant=True),
    ),
)
"""The catalogue. The first whose signature fits is the name of a disagreement."""


def recognised(fault: FoundFault, shown: ShownFacts) -> RuntimeFault | None:
    """Return the known fault that a reduced model shows; None for a new one."""
    return next((known for known in FAULTS if known.signature.fits(fault, shown)), None)
