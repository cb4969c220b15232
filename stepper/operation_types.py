"""List all operation types since opset1: their families, and the opsets that redefine them.

Source: the operation sets of OpenVINO 2026.4. An IR names a type and an opset. The newest definition that is not newer
than this opset counts (`version="opset5"` of an Add means Add-1).
"""

from __future__ import annotations

import re
from typing import Final

NO_OPERATIONS = ("Parameter", "Result", "Constant")
"""Types of layers that compute nothing: no operations, wherever operations are counted."""

VIEWS = ("Squeeze", "Unsqueeze", "Reshape")
"""Operations that give their first input in another shape."""

CELLS = ("LSTMCell", "GRUCell", "RNNCell")
"""Recurrent cells."""

VARIABLES = ("ReadValue", "Assign")
"""Operations on a variable, which keeps its value from one call of the model to the next."""

CONTROL_INPUTS = {"Loop": 2, "If": 1}
"""How many first inputs of an operation are a trip count or a condition, none of its bodies'."""

STATEFUL = (*VARIABLES, "RandomUniform", "Multinomial")
"""Operations that may give another value for the same inputs."""

COMPARISON_SIGNS = {
    "Equal": "=", "NotEqual": "≠", "Less": "<", "LessEqual": "≤", "Greater": ">", "GreaterEqual": "≥",
}  # fmt: skip
"""Signs of comparisons, by type."""

_DEFINED = {
    "structural": "Constant:1 If:8 Loop:5 Parameter:1 Result:1 TensorIterator:1",
    "elementwise": (
        "Add:1 Divide:1 FloorMod:1 Maximum:1 Minimum:1 Mod:1 Multiply:1 Power:1 Select:1 SquaredDifference:1 Subtract:1"
    ),
    "comparison": (
        "Equal:1 Greater:1 GreaterEqual:1 IsFinite:10 IsInf:10 IsNaN:10 Less:1 LessEqual:1 LogicalAnd:1 "
        "LogicalNot:1 LogicalOr:1 LogicalXor:1,2 NotEqual:1 Xor:1"
    ),
    "bitwise": "BitwiseAnd:13 BitwiseLeftShift:15 BitwiseNot:13 BitwiseOr:13 BitwiseRightShift:15 BitwiseXor:13",
    "unary": (
        "Abs:1 Acos:1 Acosh:4 Asin:1 Asinh:4 Atan:1 Atanh:4 Ceiling:1 Cos:1 Cosh:1 Erf:1 Erfinv:17 Exp:1 Floor:1 "
        "Log:1 Negative:1 Round:5 Sign:1 Sin:1 Sinh:1 Sqrt:1 Tan:1 Tanh:1"
    ),
    "activation": (
        "Clamp:1 Elu:1 Gelu:2,7 HSigmoid:5 HSwish:4 HardSigmoid:1 Identity:16 LogSoftmax:5 Mish:4 PRelu:1 Relu:1 "
        "Selu:1 Sigmoid:1 SoftPlus:4 SoftSign:9 Softmax:1,8 Swish:4"
    ),
    "reduction": (
        "CumSum:3 ReduceL1:4 ReduceL2:4 ReduceLogicalAnd:1 ReduceLogicalOr:1 ReduceMax:1 ReduceMean:1 ReduceMin:1 "
        "ReduceProd:1 ReduceSum:1"
    ),
    "normalization": "BatchNormInference:1,5 GRN:1 GroupNormalization:12 LRN:1 MVN:2,6 NormalizeL2:1",
    "convert": "Convert:1 ConvertLike:1 ConvertPromoteTypes:14",
    "quantize": "FakeConvert:13 FakeQuantize:1",
    "matmul": "Einsum:7 GroupedMatMul:17 Inverse:14 MatMul:1 ScaledDotProductAttention:13",
    "recurrent": "GRUCell:3 LSTMCell:1,4 RNNCell:3",
    "sequences": "CTCGreedyDecoder:1 CTCGreedyDecoderSeqLen:6 CTCLoss:4 GRUSequence:5 LSTMSequence:5 RNNSequence:5",
    "convolution": (
        "AdaptiveAvgPool:8 AdaptiveMaxPool:8 AvgPool:1,14,16 BinaryConvolution:1 Convolution:1 "
        "ConvolutionBackpropData:1 DeformableConvolution:1,8 GroupConvolution:1 GroupConvolutionBackpropData:1 "
        "MaxPool:1,8,14"
    ),
    "nms": "MatrixNms:8 MulticlassNms:8,9 NMSRotated:13 NonMaxSuppression:1,3,4,5,9",
    "roi": "DeformablePSROIPooling:1 PSROIPooling:1 ROIAlign:3,9 ROIAlignRotated:15 ROIPooling:2",
    "signal": "DFT:7 IDFT:7 IRDFT:9 ISTFT:16 RDFT:9 STFT:15",
    "detection": (
        "DetectionOutput:1,8 ExperimentalDetectronDetectionOutput:6 "
        "ExperimentalDetectronGenerateProposalsSingleImage:6 ExperimentalDetectronPriorGridGenerator:6 "
        "ExperimentalDetectronROIFeatureExtractor:6 ExperimentalDetectronTopKROIs:6 GenerateProposals:9 "
        "PriorBox:1,8 PriorBoxClustered:1 Proposal:1,4 RegionYolo:1"
    ),
    "shape": "Eye:9 Range:1,4 Reshape:1 ShapeOf:1,3 Squeeze:1,15 Transpose:1 Unsqueeze:1",
    "movement": (
        "Broadcast:1,3 Concat:1 OneHot:1,16 Pad:1,12 Reverse:1 ReverseSequence:1 Roll:7 Slice:8 SliceScatter:15 "
        "Split:1 StridedSlice:1 Tile:1 VariadicSplit:1"
    ),
    "gather_scatter": (
        "EmbeddingBagOffsets:15 EmbeddingBagOffsetsSum:3 EmbeddingBagPacked:15 EmbeddingBagPackedSum:3 "
        "EmbeddingSegmentsSum:3 Gather:1,7,8 GatherElements:6 GatherND:5,8 GatherTree:1 "
        "ScatterElementsUpdate:3,12 ScatterNDUpdate:4,15 ScatterUpdate:3 SegmentMax:16 SparseFillEmptyRows:16"
    ),
    "space": (
        "BatchToSpace:2 Col2Im:15 DepthToSpace:1 ExtractImagePatches:3 ReorgYolo:2 ShuffleChannels:1,3 "
        "SpaceToBatch:2 SpaceToDepth:1"
    ),
    "sorting": "Bucketize:3 NonZero:3 SearchSorted:15 TopK:1,3,11 Unique:10",
    "strings": "StringTensorPack:15 StringTensorUnpack:15",
    "images": "GridSample:9 I420toBGR:8 I420toRGB:8 Interpolate:1,4,11 NV12toBGR:8 NV12toRGB:8",
    "stateful": "Assign:3,6 Multinomial:13 RandomUniform:8 ReadValue:3,6",
}
"""By family: its operation types, each with the opsets that define it, for the first time or anew."""

_OPSETS = {
    family: {type: tuple(map(int, opsets.split(","))) for type, opsets in (one.split(":") for one in types.split())}
    for family, types in _DEFINED.items()
}

FAMILIES = {family: tuple(types) for family, types in _OPSETS.items()}
"""The types of each family; those of the family `structural` are carried out by the engine."""

FAMILY_OF = {type: family for family, types in FAMILIES.items() for type in types}

DEFINITIONS: Final[dict[str, tuple[int, ...]]] = dict(
    sorted(
        ((type, opsets) for types in _OPSETS.values() for type, opsets in types.items()),
        key=lambda one: (one[1][0], one[0]),
    )
)
"""Each operation type, and the opsets in which it was defined, in ascending order."""

NEWEST_OPSET = max(version for versions in DEFINITIONS.values() for version in versions)
"""Newest operation set whose operations are all known."""

_ALIASES = {"const": "Constant"}
_BY_LOWER = {name.lower(): name for name in DEFINITIONS} | _ALIASES
_READ_EARLIER = frozenset({"MVN", "ROIPooling", "ReorgYolo", "RNNCell"})
_OPSET = re.compile(r"opset([1-9][0-9]{0,3})")


def canonical_type(name: str) -> str:
    """Return the type's name as its specification spells it (the file's case does not count, `Const` is `Constant`)."""
    return _BY_LOWER.get(name.lower(), name)


def opset_number(version: str) -> int | None:
    """Return the number of `opsetN`; None for the name of an extension."""
    match = _OPSET.fullmatch(version)
    return int(match[1]) if match else None


def definition(name: str, opset: int) -> int | None:
    """Return the opset of the definition that `opset` means for this type; None where it has none yet (or ever).

    Four types are written with an opset before their first, as OpenVINO writes and reads them.
    """
    versions = DEFINITIONS.get(name, ())
    if name in _READ_EARLIER:
        opset = max(opset, versions[0])
    return max((version for version in versions if version <= opset), default=None)


def similar_types(name: str) -> list[str]:
    """Known types whose names look like `name`, the likeliest first."""
    import difflib

    lower = difflib.get_close_matches(name.lower(), _BY_LOWER, n=3, cutoff=0.6)
    return [_BY_LOWER[match] for match in lower]
