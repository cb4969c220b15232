"""Known faults of the runtime: each with its pass or kernel, and the signatures by which it is recognised."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from stepper.diagnosis.hunt.features import ModelFeature
from stepper.diagnosis.reduce.conditions import FaultKind, FoundFault


class ShownFacts(Struct, frozen=True):
    """Features of a reduced model, types of its operations, and the first pass that changes what it computes (empty:
    none).
    """

    types: frozenset[str] = frozenset()
    changed_by: str = ""
    features: frozenset[ModelFeature] = frozenset()


class FaultSignature(Struct, frozen=True):
    """Features of a reduced model and of the way it shows, all of a known fault; an empty one is not asked for.

    `kinds` are those of the disagreement, `what` is in its place in OpenVINO's sources, one of `says` in its message;
    `types` are operations that the model has, all of them, `one_of` some, and `features` further ones, all of them;
    `changed_by` is in the name of the first pass that changes what it computes.
    """

    kinds: tuple[FaultKind, ...]
    what: str = ""
    says: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    one_of: tuple[str, ...] = ()
    features: tuple[ModelFeature, ...] = ()
    changed_by: str = ""

    def fits(self, fault: FoundFault, shown: ShownFacts) -> bool:
        """True if a reduced model has all these features."""
        return (
            self.may_fit(fault)
            and shown.types.issuperset(self.types)
            and (not self.one_of or bool({*self.one_of} & shown.types))
            and shown.features.issuperset(self.features)
            and self.changed_by in shown.changed_by
        )

    def may_fit(self, fault: FoundFault) -> bool:
        """True if a disagreement shows in this way, whatever the model is."""
        # Where our engine fails, the runtime computes what it should have refused.
        program = "stepper" if fault.kind is FaultKind.ERROR else "OpenVINO"
        return (
            fault.kind in self.kinds
            and fault.program == program
            and self.what in fault.what
            and (not self.says or any(text in fault.message for text in self.says))
        )


class RuntimeFault(Struct, frozen=True):
    """A fault of the runtime: what is wrong, since which version it is known, where it is, and how it shows."""

    id: str
    what: str
    versions: str
    where: str
    signatures: tuple[FaultSignature, ...]


_VALUES: Final = (FaultKind.VALUES, FaultKind.SHAPES)
_BROKEN: Final = (FaultKind.REFUSED, FaultKind.ENDED)
_ALL: Final = (*_VALUES, *_BROKEN, FaultKind.ERROR)

_INDEX: Final = ("vector::_M_range_check",)
_COUNTER: Final = (*_INDEX, "CurrentIteration", "getDataType() == memory::data_type::s32")
_UNDEFINED: Final = (
    ModelFeature.CARRIED_OTHER_TYPE,
    ModelFeature.GATHERED_BEYOND,
    ModelFeature.INTEGERS_BY_ZERO,
    ModelFeature.OPEN_STATE_HIDDEN,
    ModelFeature.PIECES_BESIDE_STRIDE,
)
"""What the specification leaves open, or the runtime should refuse."""

FAULTS: Final = (
    RuntimeFault(
        "sliced-inputs-unread",
        "parts of a tensor that nothing needs: the input is left out, and with it the count of iterations of a "
        "TensorIterator, or the check that there are as many parts as iterations",
        "2026.4.1",
        "the passes EliminateLoopInputsOutputs and RemoveMultiSubGraphOpDanglingParamsResults",
        (
            FaultSignature((*_VALUES, FaultKind.ERROR), features=(ModelFeature.SLICES_UNNEEDED,)),
            FaultSignature((FaultKind.REFUSED,), what="shape_inference", features=(ModelFeature.SLICES_UNNEEDED,)),
        ),
    ),
    RuntimeFault(
        "square-constant-shared",
        "two MatMuls share a square Constant, one of them transposed: the second has the weights of the first",
        "2026.4.1",
        "the weights cache of the CPU plugin's FullyConnected",
        (FaultSignature((FaultKind.VALUES,), features=(ModelFeature.SQUARE_SHARED,)),),
    ),
    RuntimeFault(
        "aliased-back-edges",
        "a back edge carries a Parameter as it is, or through Reshape, Squeeze, Unsqueeze and what is computed in "
        "place: the state gets the value of the next iteration, such as its slice",
        "2026.4.1",
        "the back edges of the CPU plugin's TensorIterator node, which share memory with Parameters",
        (FaultSignature(_VALUES, features=(ModelFeature.CARRIED_IN_PLACE,)),),
    ),
    RuntimeFault(
        "abs-sunk-into-a-shared-constant",
        "Abs of a Concat in which one Constant stands twice, such as Abs(Concat(Concat(c, c), c)): wrong numbers",
        "2026.4.1",
        "the pass AbsSinking",
        (FaultSignature(_VALUES, changed_by="AbsSinking"),),
    ),
    RuntimeFault(
        "dangling-results",
        "a Result feeds several outputs of a loop, and nothing reads one of them: the Result is removed, "
        "with the others",
        "2026.4.1",
        "the pass RemoveMultiSubGraphOpDanglingParamsResults",
        (
            FaultSignature((*_VALUES, FaultKind.ENDED), features=(ModelFeature.HALF_READ_RESULT,)),
            FaultSignature((FaultKind.REFUSED,), says=_INDEX, features=(ModelFeature.HALF_READ_RESULT,)),
            FaultSignature(_VALUES, changed_by="RemoveMultiSubGraphOpDanglingParamsResults"),
        ),
    ),
    RuntimeFault(
        "product-reshaped-to-a-scalar",
        "a MatMul of one element, or what Tanh, Abs and others make of it, is reshaped to a scalar, in a loop or "
        "without one: OpenVINO crashes (SIGSEGV) while it compiles",
        "2026.4.1",
        "the compilation by the CPU plugin",
        (FaultSignature((FaultKind.ENDED,), what="compiling", features=(ModelFeature.SCALAR_PRODUCT,)),),
    ),
    RuntimeFault(
        "parts-beside-the-axis",
        "a TensorIterator whose parts do not fill the axis is refused",
        "2026.4.1",
        "src/plugins/intel_cpu/src/nodes/tensoriterator.cpp",
        (
            FaultSignature(
                (FaultKind.REFUSED,),
                what="intel_cpu/src/nodes/tensoriterator.cpp",
                says=('Invalid "start","stride","end" values',),
                types=("TensorIterator",),
                features=(ModelFeature.LONG_PARTS,),
            ),
        ),
    ),
    RuntimeFault(
        "dimension-out-of-range",
        "a loop that joins the scalars of its iterations along axis 0 is refused where its trip count is known",
        "2026.4.1",
        "src/core/src/shape_util.cpp, while the CPU plugin compiles the loop",
        (
            FaultSignature(
                (FaultKind.REFUSED,),
                what="shape_util.cpp",
                says=("Accessing out-of-range dimension",),
                features=(ModelFeature.SCALAR_JOINED,),
            ),
        ),
    ),
    RuntimeFault(
        "static-memory-undefined",
        "a Loop that may end by its condition joins what an operation computes of Constants alone, where constant "
        "folding leaves it, as Maximum of u8, an If, a loop, a recurrent cell: it is refused, as the memory of what "
        "the Loop gives has no shape",
        "2026.4.1",
        "src/plugins/intel_cpu/src/cpu_memory.cpp, StaticMemory",
        (
            FaultSignature(
                (FaultKind.REFUSED,),
                what="intel_cpu/src/cpu_memory.cpp",
                says=("StaticMemory",),
            ),
        ),
    ),
    RuntimeFault(
        "fused-data-size",
        "a body adds a Constant to a product of four axes along another axis than the last, such as [2,1,1] to "
        "[1,2,1,4]: the addition is fused as one for each channel, and compiling is refused: its data has another size "
        "than there are channels",
        "2026.4.1",
        "src/plugins/intel_cpu/src/dnnl_postops_composer.cpp",
        (
            FaultSignature(
                (FaultKind.REFUSED,), what="dnnl_postops_composer.cpp", says=("data size",), types=("MatMul", "Add")
            ),
        ),
    ),
    RuntimeFault(
        "sequence-in-a-tensor-iterator",
        "an LSTMSequence, GRUSequence or RNNSequence with clip, or with lengths below its steps, in the body of a "
        "TensorIterator is refused: it is taken apart into a TensorIterator, and one may not hold another",
        "2026.4.1",
        "the passes that take sequences apart, and src/core/src/op/tensor_iterator.cpp",
        (
            FaultSignature(
                (FaultKind.REFUSED,),
                what="core/src/op/tensor_iterator.cpp",
                types=("TensorIterator",),
                one_of=("LSTMSequence", "GRUSequence", "RNNSequence"),
            ),
        ),
    ),
    RuntimeFault(
        "folded-body-mismatch",
        "a loop whose inputs are all Constants, of which it cuts parts longer than 1, or whose state changes its "
        "shape, is refused: it is computed beforehand with parts of one element and states of one shape",
        "2026.4.1",
        "src/core/src/model.cpp, Model::evaluate",
        (
            FaultSignature(
                (FaultKind.REFUSED,),
                what="src/core/src/model.cpp",
                says=("Tensor input shape and Parameter op",),
            ),
        ),
    ),
    RuntimeFault(
        "constant-overwritten",
        "a body takes the Softmax of a Constant, or reads it through Reshape, Squeeze or Unsqueeze, and what is "
        "computed is written over the Constant, and over another of the same bytes: it has the result from then on",
        "2026.4.1",
        "operations in place in the CPU plugin: the memory of the Constant is shared with that of the result",
        (
            FaultSignature((FaultKind.VALUES,), features=(ModelFeature.VIEWED_CONSTANT,)),
            FaultSignature((FaultKind.VALUES,), features=(ModelFeature.CONSTANT_SOFTMAX,)),
        ),
    ),
    RuntimeFault(
        "invariant-overwritten",
        "a body takes the Softmax of an input that stays the same, or reads it through Reshape, Squeeze or Unsqueeze, "
        "and what is computed is written over the input: the second iteration computes with the result of the first",
        "2026.4.1",
        "operations in place in the CPU plugin: the memory of the input is shared with that of the result",
        (
            FaultSignature((FaultKind.VALUES,), features=(ModelFeature.VIEWED_INVARIANT,)),
            FaultSignature((FaultKind.VALUES,), features=(ModelFeature.INVARIANT_SOFTMAX,)),
        ),
    ),
    RuntimeFault(
        "transpose-sunk-into-a-reduction",
        "a reduction without keep_dims reads a Transpose, and its sum with a Constant has more axes than it: the sum "
        "loses the axes, and a cell or a Concat that needs them is refused",
        "2026.4.1",
        "the passes that move a Transpose behind a reduction",
        (
            FaultSignature(
                (FaultKind.REFUSED,),
                says=(
                    "Shape rank",
                    "out of the tensor rank range",
                    "Accessing out-of-range dimension",
                    "Shape mismatch",
                ),
                features=(ModelFeature.TRANSPOSE_REDUCED,),
            ),
            FaultSignature((FaultKind.SHAPES,), types=("Add",), features=(ModelFeature.TRANSPOSE_REDUCED,)),
        ),
    ),
    RuntimeFault(
        "unsqueeze-under-a-reduction",
        "a reduction reads an Unsqueeze, with a loop or without one: that is left out, and an axis counted from the "
        "end is beyond what is left, or the new axis stands elsewhere",
        "2026.4.1",
        "the passes that leave out an Unsqueeze before a reduction",
        (
            FaultSignature(
                (FaultKind.REFUSED,),
                says=("out of the tensor rank range",),
                types=("Unsqueeze",),
                features=(ModelFeature.UNSQUEEZE_REDUCED,),
            ),
            FaultSignature((FaultKind.SHAPES,), features=(ModelFeature.UNSQUEEZE_REDUCED,)),
        ),
    ),
    RuntimeFault(
        "counter-after-a-constant",
        "a Loop gets a Constant, whose Parameter stands before that of current_iteration: the Constant moves into the "
        "body, and another Parameter is taken for current_iteration",
        "2026.4.1",
        "the pass PushConstantToSubgraph",
        (
            FaultSignature((*_VALUES, FaultKind.ENDED), features=(ModelFeature.COUNTER_AFTER_CONSTANT,)),
            FaultSignature((FaultKind.REFUSED,), says=_COUNTER, features=(ModelFeature.COUNTER_AFTER_CONSTANT,)),
        ),
    ),
    RuntimeFault(
        "counter-after-an-unneeded-parameter",
        "a Parameter that nothing needs stands before that of current_iteration: it is removed, and another Parameter "
        "is taken for current_iteration",
        "2026.4.1",
        "the pass RemoveMultiSubGraphOpDanglingParamsResults",
        (
            FaultSignature((*_VALUES, FaultKind.ENDED), features=(ModelFeature.COUNTER_AFTER_UNNEEDED,)),
            FaultSignature((FaultKind.REFUSED,), says=_COUNTER, features=(ModelFeature.COUNTER_AFTER_UNNEEDED,)),
        ),
    ),
    RuntimeFault(
        "parameter-passed-to-two-outputs",
        "a Result passes a Parameter that stays the same on to two outputs of a loop: OpenVINO crashes (SIGSEGV), as "
        "one of the outputs is forgotten",
        "2026.4.1",
        "the pass EliminateLoopInputsOutputs",
        (FaultSignature((FaultKind.ENDED,), features=(ModelFeature.PASSED_TO_OUTPUTS,)),),
    ),
    RuntimeFault(
        "invariant-carried",
        "a back edge carries an input that stays the same to another Parameter: the Result is removed with the input, "
        "and the back edge that needs it throws",
        "2026.4.1",
        "the pass EliminateLoopInputsOutputs",
        (FaultSignature(_BROKEN, says=("EliminateLoopInputsOutputs",), features=(ModelFeature.INVARIANT_CARRIED,)),),
    ),
    RuntimeFault(
        "nested-constant-loops",
        "a constant loop in a constant loop whose body has an operation that cannot be computed beforehand, such as a "
        "recurrent cell: the outer is computed beforehand, and the inner refused",
        "2026.4.1",
        "the pass ConstantFolding: src/core/src/model.cpp, Model::evaluate",
        (
            FaultSignature(
                (FaultKind.REFUSED,),
                what="src/core/src/model.cpp",
                says=("Evaluation failed on",),
                features=(ModelFeature.NESTED,),
            ),
        ),
    ),
    RuntimeFault(
        "bounds-with-axes",
        "Maximum and Minimum with Constants of one element bound a value of fewer axes, such as Maximum(f32[], "
        "f32[1]): they become a Clamp, and what they give loses the axes",
        "2026.4.1",
        "the pass ClampFusion",
        (FaultSignature((FaultKind.SHAPES, *_BROKEN), features=(ModelFeature.BOUNDS_WITH_AXES,)),),
    ),
    RuntimeFault(
        "reversed-range",
        "a FakeQuantize whose input_low is not below its input_high gives output_low for what is above both, or NaN",
        "2026.4.1",
        "the CPU plugin's FakeQuantize",
        (FaultSignature((FaultKind.VALUES,), features=(ModelFeature.REVERSED_RANGE,)),),
    ),
    RuntimeFault(
        "dynamic-quantisation",
        "a MatMul with weights of 4 or 8 bits rounds the other side to 8 bits, in groups of 32 elements, unless "
        "DYNAMIC_QUANTIZATION_GROUP_SIZE is 0: results are off by about 0.3 %",
        "2026.4.1",
        "the CPU plugin's FullyConnected with compressed weights",
        (FaultSignature((FaultKind.VALUES,), features=(ModelFeature.COMPRESSED_WEIGHTS,)),),
    ),
    RuntimeFault(
        "part-size-beside-the-stride",
        "a loop cuts a tensor with a part_size that is not its stride: shapes are inferred by the one and parts cut by "
        "the other; it is not always refused, and computes with parts that are too long or too short",
        "2026.4.1",
        "src/core/src/op/util/sub_graph_base.cpp and src/plugins/intel_cpu/src/nodes/tensoriterator.cpp",
        (FaultSignature(_ALL, features=(ModelFeature.PARTS_BESIDE_STRIDE,)),),
    ),
)
"""The catalogue. The first whose signature fits is the name of a disagreement."""


def recognised(fault: FoundFault, shown: ShownFacts) -> RuntimeFault | None:
    """Return the known fault that a reduced model shows; None for a new one."""
    return next((known for known in FAULTS if any(one.fits(fault, shown) for one in known.signatures)), None)


def causes_of(fault: FoundFault) -> frozenset[ModelFeature]:
    """Return the features of known faults that show as a disagreement does: a model that gets one may show another."""
    signatures = [one for known in FAULTS for one in known.signatures if one.may_fit(fault)]
    return frozenset((*_UNDEFINED, *(feature for one in signatures for feature in one.features)))
