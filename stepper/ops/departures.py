"""Departures of OpenVINO's CPU plugin from the specification, operation by operation.

The kernels here follow the specification; these are measured facts (OpenVINO 2026.4, f32 hint) for the author of a
model who wonders why a runtime gives other numbers. What holds for whole element types stands in engine.arithmetic.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from stepper.element_types import Ints
from stepper.records import Record


class Departure(Record, order=True):
    """A fact about one operation type."""

    type: str
    text: str


class Use(NamedTuple):
    """An operation as a model uses it: attributes as in the file, declared types of its first input and its outputs."""

    type: str
    version: int | None
    attributes: Mapping[str, str]
    element_types: frozenset[str]


class _Fact(NamedTuple):
    """Holds for all uses of a type, or where one of the element types occurs, in these versions, with this attribute.

    `attribute` is a name and what its text must contain.
    """

    text: str
    element_types: frozenset[str] = frozenset()
    versions: Ints = ()
    attribute: tuple[str, str] | None = None

    def concerns(self, use: Use) -> bool:
        """Return True if it can show in this use; element types that are not declared do not rule it out."""
        if self.versions and use.version not in self.versions:
            return False
        if self.element_types and use.element_types and not self.element_types & use.element_types:
            return False
        return self.attribute is None or self.attribute[1] in use.attributes.get(self.attribute[0], "").lower()


_FLOATS = frozenset({"f16", "bf16", "f32", "f64"})
_BYTES = frozenset({"u8", "i8"})
_WIDE = frozenset({"i32", "u32", "i64", "u64"})

_THROUGH_F32 = _Fact("integers are computed in f32: beyond 2^24 they are not exact", _WIDE)
_SATURATES = _Fact("u8 and i8 saturate where they should wrap", _BYTES)
_TO_THE_RIGHT = _Fact(
    "auto_broadcast=pdpd aligns to the right as numpy does, or is refused", attribute=("auto_broadcast", "pdpd")
)
_TRUE_FOR_NAN = _Fact("it holds where either side is NaN", _FLOATS)
_SECOND_FOR_NAN = _Fact("where either input is NaN, the second one is returned", _FLOATS)
_OF_NOTHING = _Fact("without elements at Constant axes, the result is the extreme finite f32", frozenset({"f32"}))
_SIGNED = _Fact("u32 and u64 are compared as i32", frozenset({"u32", "u64"}))
_NAN_TO_ZERO = _Fact("NaN becomes 0", _FLOATS)
_IN_THE_ROW = _Fact("+inf or NaN in a row does not make the whole row NaN", _FLOATS)
_LENGTHS = _Fact("sequence_lengths are ignored where shapes are dynamic and W, R, B are Constants")
_HARDSIGMOID = _Fact("the activation hardsigmoid is refused", attribute=("activations", "hardsigmoid"))
_CELL = (_HARDSIGMOID,)
_SEQUENCE = (_LENGTHS, _HARDSIGMOID)
_REAL = _Fact("for integers, the f32 result is rounded to the nearest", _WIDE | _BYTES)
_BOXES_RANK = _Fact("a dynamic last dimension of its boxes is refused")
_NO_BOXES = _Fact("without max_output_boxes_per_class, valid_outputs is left unwritten", versions=(5, 9))
_AUTO_PAD = _Fact(
    "with dynamic shapes auto_pad=same_upper and same_lower pad nothing",
    versions=(8, 14),
    attribute=("auto_pad", "same"),
)
_CONSTANTS_ONLY = _Fact("alpha and the second parameter must be Constants")
_COMPARISON = (_THROUGH_F32, _TO_THE_RIGHT)
_TO_BYTES = _Fact("f32 to u8 or i8 wraps with static shapes, saturates with dynamic ones", _BYTES)
_TO_WIDE = _Fact("f32 goes to u32, i64 and u64 by way of i32", frozenset({"u32", "i64", "u64"}))
_TO_BF16 = _Fact("f32 to bf16 does not round ties to even where shapes are dynamic", frozenset({"bf16"}))
_TO_BOOLEAN = _Fact("NaN becomes false, and an integer counts by its low 32 bits", frozenset({"boolean"}))
_TO_NIBBLES = _Fact("a conversion to u4 or i4 in the middle of a graph is left out", frozenset({"u4", "i4"}))
_CONVERSION = (_TO_BYTES, _TO_WIDE, _TO_BF16, _TO_BOOLEAN, _TO_NIBBLES)
_WRAPPED_BOUNDS = _Fact("start and stop given at run time wrap to i32: 2^63-1 is then -1 and drops the last element")

FACTS: Final[dict[str, tuple[_Fact, ...]]] = {
    "Abs": (_Fact("-128 in i8 becomes 127", frozenset({"i8"})),),
    "AdaptiveMaxPool": (_Fact("index_element_type=i64, the default, is refused"),),
    "Add": (_SATURATES,),
    "AvgPool": (
        _Fact(
            "a window wholly in the padding (rounding_type=ceil) gives NaN with exclude-pad",
            attribute=("rounding_type", "ceil"),
        ),
    ),
    "Clamp": (_Fact("NaN becomes min", _FLOATS),),
    "Convert": _CONVERSION,
    "ConvertLike": _CONVERSION,
    "ConvolutionBackpropData": (_Fact("an output_shape that is not a Constant is refused where shapes are static"),),
    "Cos": (_REAL,),
    "Divide": (
        _Fact("integers are divided towards zero, whatever m_pythondiv says", _WIDE),
        _THROUGH_F32,
        _Fact("u8 and i8 are truncated with static shapes, rounded to the nearest with dynamic ones", _BYTES),
        _TO_THE_RIGHT,
    ),
    "Equal": _COMPARISON,
    "Erf": (_REAL,),
    "Exp": (_Fact("NaN becomes +inf", _FLOATS), _REAL),
    "ExperimentalDetectronPriorGridGenerator": (_Fact("h and w below the feature map's leave rows unwritten"),),
    "ExperimentalDetectronTopKROIs": (_Fact("max_rois beyond the number of rois leaves rows unwritten"),),
    "FakeQuantize": (
        _Fact("NaN becomes output_low", _FLOATS),
        _Fact("input_low = input_high gives NaN, input_low > input_high wrong values"),
    ),
    "FloorMod": (_Fact("computed as a - floor(a / b) b in f32: a large quotient leaves nothing exact"), _TO_THE_RIGHT),
    "Gather": (_Fact("negative indices give zeros", versions=(1, 7)),),
    "GatherTree": (_Fact("where max_seq_len is 0 the column is left unwritten"),),
    "Gelu": (_Fact("+inf gives NaN in the erf form", _FLOATS),),
    "Greater": (_TRUE_FOR_NAN, *_COMPARISON),
    "GreaterEqual": (_TRUE_FOR_NAN, *_COMPARISON),
    "GroupedMatMul": (_Fact("weights are [G, N, K] and must be Constants"),),
    "GRUCell": _CELL,
    "GRUSequence": _SEQUENCE,
    "HardSigmoid": (_CONSTANTS_ONLY,),
    "HSigmoid": (_NAN_TO_ZERO,),
    "Interpolate": (
        _Fact("linear downsampling with antialias gives other numbers", versions=(4, 11)),
        _Fact("the mode area is not supported", versions=(1,), attribute=("mode", "area")),
    ),
    "IRDFT": (
        _Fact("a spectrum too short for signal_size is not filled with zeros"),
        _Fact("axes given at run time end the process"),
    ),
    "Less": _COMPARISON,
    "LessEqual": _COMPARISON,
    "Log": (_REAL,),
    "LogicalAnd": (_TO_THE_RIGHT,),
    "LogicalOr": (_TO_THE_RIGHT,),
    "LogicalXor": (_TO_THE_RIGHT,),
    "LogSoftmax": (_IN_THE_ROW,),
    "LRN": (
        _Fact("bias is ignored: 1 is used"),
        _Fact("any axes but [1] count as the spatial ones, and an even size as the next smaller"),
    ),
    "LSTMCell": (_HARDSIGMOID, _Fact("weights_format, input_forget and the peepholes P are ignored", versions=(1,))),
    "LSTMSequence": _SEQUENCE,
    "MatMul": (_THROUGH_F32,),
    "Maximum": (_SECOND_FOR_NAN, _SIGNED),
    "MaxPool": (_AUTO_PAD,),
    "Minimum": (_SECOND_FOR_NAN, _SIGNED),
    "Mod": (_Fact("computed as a - trunc(a / b) b in f32: a large quotient leaves nothing exact"), _TO_THE_RIGHT),
    "Multiply": (_SATURATES,),
    "NonMaxSuppression": (_NO_BOXES, _BOXES_RANK),
    "NonZero": (_Fact("for a scalar 0 the result has the shape [1,0], not [0,0]"),),
    "NotEqual": _COMPARISON,
    "OneHot": (_Fact("on_value and off_value beyond i32 saturate", frozenset({"i64"})),),
    "Pad": (_Fact("a pad value that is not a Constant is ignored (0 is used) where shapes are static"),),
    "Power": (_THROUGH_F32,),
    "RandomUniform": (_Fact("i64 and f16 give numbers of another stream", frozenset({"i64", "f16"})),),
    "Range": (
        _Fact("a step that leads away from stop gives elements where there should be none"),
        _Fact("floating inputs with an integer output_type are computed in f32, each element rounded", versions=(4,)),
    ),
    "RDFT": (_Fact("axes given at run time end the process"), _Fact("signal_size beyond the dimension is refused")),
    "ReduceL1": (_SATURATES,),
    "ReduceMax": (_THROUGH_F32, _OF_NOTHING),
    "ReduceMin": (_OF_NOTHING,),
    "ReduceProd": (_SATURATES,),
    "ReduceSum": (_THROUGH_F32, _Fact("a sum beyond i32 becomes its lowest number", _WIDE)),
    "Relu": (_NAN_TO_ZERO, _THROUGH_F32),
    "RNNCell": _CELL,
    "RNNSequence": _SEQUENCE,
    "ROIAlign": (_BOXES_RANK,),
    "Roll": (_Fact("refuses one shift for several axes"),),
    "Round": (_Fact("half_away_from_zero rounds the f32 just below a half up", _FLOATS, (), ("mode", "away")),),
    "ScatterElementsUpdate": (_Fact("an integer mean is truncated towards zero", _WIDE | _BYTES, (12,)),),
    "ScatterUpdate": (_Fact("a scalar index and negative indices are refused"),),
    "Select": (_TO_THE_RIGHT,),
    "Selu": (_CONSTANTS_ONLY,),
    "Sin": (_REAL,),
    "Slice": (_WRAPPED_BOUNDS,),
    "SliceScatter": (_Fact("start, stop and step that are not Constants corrupt memory"),),
    "Softmax": (_IN_THE_ROW,),
    "SquaredDifference": (_Fact("u8 and i8 give wrong values with static shapes", _BYTES),),
    "Subtract": (_SATURATES, _TO_THE_RIGHT),
    "TopK": (_Fact("without stable=true, equal elements come in any order; k beyond the dimension is refused"),),
    "Xor": (_TO_THE_RIGHT,),
}


def departures(uses: Iterable[Use]) -> list[Departure]:
    """Return the departures that concern the operations of a model, each once, by type."""
    found = {
        Departure(use.type, fact.text): None for use in uses for fact in FACTS.get(use.type, ()) if fact.concerns(use)
    }
    return sorted(found, key=lambda departure: departure.type)
