"""Known faults of the runtime: each with its pass or kernel, and the signature by which it is recognised."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct

from stepper.diagnosis.reduce.conditions import FaultKind, FoundFault


class ModelFeature(StrEnum):
    """Feature of a reduced model that no type of an operation tells."""

    VIEWED_CONSTANT = "a body reads a Constant through Reshape, Squeeze or Unsqueeze"
    VIEWED_INVARIANT = "a body reads an input that stays the same through Reshape, Squeeze or Unsqueeze"
    SCALAR_PRODUCT = "a MatMul is reshaped to a scalar"
    SCALAR_JOINED = "a loop joins the scalars of its iterations"
    LONG_PARTS = "a loop cuts or joins parts that are longer than 1, or with a stride"
    CONSTANT_LOOP = "all that goes into a loop is constant"
    NESTED = "a loop, an If or a recurrent cell is in a body"
    TRANSPOSE_REDUCED = "a reduction reads a Transpose"
    UNSQUEEZE_REDUCED = "a reduction reads an Unsqueeze"


class ShownFacts(Struct, frozen=True):
    """Features of a reduced model: names of the lint rules that speak of it, types of its operations, the first pass
    that changes what it computes (empty: none), and further ones.
    """

    rules: frozenset[str] = frozenset()
    types: frozenset[str] = frozenset()
    changed_by: str = ""
    features: frozenset[ModelFeature] = frozenset()


class FaultSignature(Struct, frozen=True):
    """Features of a reduced model and of the way it shows, all of a known fault; an empty one is not asked for.

    `kinds` are those of the disagreement, `what` is in its place in OpenVINO's sources, one of `says` in its message;
    `rules` are names of lint rules one of which speaks of the model, `types` operations that it has, all of them,
    `one_of` some, and `features` further ones, all of them; `changed_by` is in the name of the first pass that changes
    what it computes.
    """

    kinds: tuple[FaultKind, ...]
    what: str = ""
    says: tuple[str, ...] = ()
    rules: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()
    features: tuple[ModelFeature, ...] = ()
    changed_by: str = ""

    def fits(self, fault: FoundFault, shown: ShownFacts) -> bool:
        """True if a reduced model has all these features."""
        return (
            fault.kind in self.kinds
            and fault.program == "OpenVINO"
            and self.what in fault.what
            and (not self.says or any(text in fault.message for text in self.says))
            and (not self.rules or bool({*self.rules} & shown.rules))
            and shown.types.issuperset(self.types)
            and (not self.one_of or bool({*self.one_of} & shown.types))
            and shown.features.issuperset(self.features)
            and self.changed_by in shown.changed_by
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
        FaultSignature(_VALUES, rules=("sliced-inputs-unread",), changed_by="EliminateLoopInputsOutputs"),
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
        "a MatMul of one element is reshaped to a scalar, in a loop or without one: OpenVINO crashes (SIGSEGV) while "
        "it compiles",
        "2026.4.1",
        "the compilation by the CPU plugin",
        FaultSignature((FaultKind.ENDED,), what="compiling", features=(ModelFeature.SCALAR_PRODUCT,)),
    ),
    RuntimeFault(
        "parts-beside-the-axis",
        "a TensorIterator whose parts do not fill the axis is refused",
        "2026.4.1",
        "src/plugins/intel_cpu/src/nodes/tensoriterator.cpp",
        FaultSignature(
            (FaultKind.REFUSED,),
            what="intel_cpu/src/nodes/tensoriterator.cpp",
            says=('Invalid "start","stride","end" values',),
            types=("TensorIterator",),
            features=(ModelFeature.LONG_PARTS,),
        ),
    ),
    RuntimeFault(
        "dimension-out-of-range",
        "a loop that joins the scalars of its iterations along axis 0 is refused where its trip count is known",
        "2026.4.1",
        "src/core/src/shape_util.cpp, while the CPU plugin compiles the loop",
        FaultSignature(
            (FaultKind.REFUSED,),
            what="shape_util.cpp",
            says=("Accessing out-of-range dimension",),
            features=(ModelFeature.SCALAR_JOINED,),
        ),
    ),
    RuntimeFault(
        "static-memory-undefined",
        "a Loop that may end by its condition and has an If, a loop or a recurrent cell in its body is refused: the "
        "memory of what it gives has no shape, or may not get one",
        "2026.4.1",
        "src/plugins/intel_cpu/src/cpu_memory.cpp, StaticMemory",
        FaultSignature(
            (FaultKind.REFUSED,),
            what="intel_cpu/src/cpu_memory.cpp",
            says=("StaticMemory",),
            features=(ModelFeature.NESTED,),
        ),
    ),
    RuntimeFault(
        "fused-data-size",
        "a body adds a Constant to a product along another axis than the last, such as [2,1,1] to [3,2,1,4]: the "
        "addition is fused as one for each channel, and compiling is refused: its data has another size than there are "
        "channels",
        "2026.4.1",
        "src/plugins/intel_cpu/src/dnnl_postops_composer.cpp",
        FaultSignature(
            (FaultKind.REFUSED,), what="dnnl_postops_composer.cpp", says=("data size",), types=("MatMul", "Add")
        ),
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
        "a loop whose inputs are all Constants, of which it cuts parts longer than 1, or whose state changes its "
        "shape, is refused: it is computed beforehand with parts of one element and states of one shape",
        "2026.4.1",
        "src/core/src/model.cpp, Model::evaluate",
        FaultSignature(
            (FaultKind.REFUSED,),
            what="src/core/src/model.cpp",
            says=("Tensor input shape and Parameter op",),
            features=(ModelFeature.CONSTANT_LOOP,),
        ),
    ),
    RuntimeFault(
        "constant-overwritten",
        "a body reads a Constant through Reshape, Squeeze or Unsqueeze, and what is computed of it is written over the "
        "Constant: the second iteration computes with the result of the first",
        "2026.4.1",
        "operations in place in the CPU plugin: the memory of the Constant is shared with that of the result",
        FaultSignature((FaultKind.VALUES,), features=(ModelFeature.VIEWED_CONSTANT,)),
    ),
    RuntimeFault(
        "invariant-overwritten",
        "a body reads an input that stays the same through Reshape, Squeeze or Unsqueeze, and what is computed of it "
        "is written over the input: the second iteration computes with the result of the first",
        "2026.4.1",
        "operations in place in the CPU plugin: the memory of the input is shared with that of the result",
        FaultSignature((FaultKind.VALUES,), features=(ModelFeature.VIEWED_INVARIANT,)),
    ),
    RuntimeFault(
        "transpose-sunk-into-a-reduction",
        "a reduction without keep_dims reads a Transpose, and its sum with a Constant has more axes than it: the sum "
        "loses the axes, and a cell or a Concat that needs them is refused",
        "2026.4.1",
        "the passes that move a Transpose behind a reduction",
        FaultSignature(
            (FaultKind.REFUSED,),
            says=("Shape rank", "out of the tensor rank range", "Accessing out-of-range dimension"),
            features=(ModelFeature.TRANSPOSE_REDUCED,),
        ),
    ),
    RuntimeFault(
        "unsqueeze-under-a-reduction",
        "a reduction with keep_dims counts its axis from the end of an Unsqueeze: that is left out, the axis stays",
        "2026.4.1",
        "the passes that leave out an Unsqueeze before a reduction",
        FaultSignature(
            (FaultKind.REFUSED,),
            says=("out of the tensor rank range",),
            types=("Unsqueeze",),
            features=(ModelFeature.UNSQUEEZE_REDUCED,),
        ),
    ),
)
"""The catalogue. The first whose signature fits is the name of a disagreement."""


def recognised(fault: FoundFault, shown: ShownFacts) -> RuntimeFault | None:
    """Return the known fault that a reduced model shows; None for a new one."""
    return next((known for known in FAULTS if known.signature.fits(fault, shown)), None)
