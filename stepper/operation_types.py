"""Every operation type of opset1 to the latest, and the opsets in which its definition was written anew.

Source: the operation sets of OpenVINO 2026.4. An IR names a type and an opset; what counts is the newest definition
that is not newer than that opset (`version="opset5"` of an Add means Add-1).
"""

from __future__ import annotations

import re
from typing import Final

NO_OPERATIONS: Final = ("Parameter", "Result", "Constant")
"""Types of layers that compute nothing: no operations, wherever operations are counted."""

VIEWS: Final = ("Squeeze", "Unsqueeze", "Reshape")
"""Operations that give their first input in another shape."""

CELLS: Final = ("LSTMCell", "GRUCell", "RNNCell")
"""Recurrent cells."""

VARIABLES: Final = ("ReadValue", "Assign")
"""Operations on a variable, which keeps its value from one call of the model to the next."""

STATEFUL: Final = (*VARIABLES, "RandomUniform", "Multinomial")
"""Operations that may give another value for the same inputs."""

COMPARISON_SIGNS: Final = {
    "Equal": "=", "NotEqual": "≠", "Less": "<", "LessEqual": "≤", "Greater": ">", "GreaterEqual": "≥",
}  # fmt: skip
"""Signs of comparisons, by type."""

_DEFINED_IN: Final = {
    1: (
        "Abs Acos Add Asin Atan AvgPool BatchNormInference BinaryConvolution Broadcast CTCGreedyDecoder Ceiling "
        "Clamp Concat Constant Convert ConvertLike Convolution ConvolutionBackpropData Cos Cosh "
        "DeformableConvolution DeformablePSROIPooling DepthToSpace DetectionOutput Divide Elu Equal Erf Exp "
        "FakeQuantize Floor FloorMod GRN Gather GatherTree Greater GreaterEqual GroupConvolution "
        "GroupConvolutionBackpropData HardSigmoid Interpolate LRN LSTMCell Less LessEqual Log LogicalAnd "
        "LogicalNot LogicalOr LogicalXor MatMul MaxPool Maximum Minimum Mod Multiply Negative NonMaxSuppression "
        "NormalizeL2 NotEqual OneHot PRelu PSROIPooling Pad Parameter Power PriorBox PriorBoxClustered Proposal "
        "Range ReduceLogicalAnd ReduceLogicalOr ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum RegionYolo "
        "Relu Reshape Result Reverse ReverseSequence Select Selu ShapeOf ShuffleChannels Sigmoid Sign Sin Sinh "
        "Softmax SpaceToDepth Split Sqrt SquaredDifference Squeeze StridedSlice Subtract Tan Tanh TensorIterator "
        "Tile TopK Transpose Unsqueeze VariadicSplit Xor"
    ),
    2: "BatchToSpace Gelu LogicalXor MVN ROIPooling ReorgYolo SpaceToBatch",
    3: (
        "Assign Broadcast Bucketize CumSum EmbeddingBagOffsetsSum EmbeddingBagPackedSum EmbeddingSegmentsSum "
        "ExtractImagePatches GRUCell NonMaxSuppression NonZero RNNCell ROIAlign ReadValue ScatterElementsUpdate "
        "ScatterUpdate ShapeOf ShuffleChannels TopK"
    ),
    4: (
        "Acosh Asinh Atanh CTCLoss HSwish Interpolate LSTMCell Mish NonMaxSuppression Proposal Range ReduceL1 "
        "ReduceL2 ScatterNDUpdate SoftPlus Swish"
    ),
    5: (
        "BatchNormInference GRUSequence GatherND HSigmoid LSTMSequence LogSoftmax Loop NonMaxSuppression "
        "RNNSequence Round"
    ),
    6: (
        "Assign CTCGreedyDecoderSeqLen ExperimentalDetectronDetectionOutput "
        "ExperimentalDetectronGenerateProposalsSingleImage ExperimentalDetectronPriorGridGenerator "
        "ExperimentalDetectronROIFeatureExtractor ExperimentalDetectronTopKROIs GatherElements MVN ReadValue"
    ),
    7: "DFT Einsum Gather Gelu IDFT Roll",
    8: (
        "AdaptiveAvgPool AdaptiveMaxPool DeformableConvolution DetectionOutput Gather GatherND I420toBGR "
        "I420toRGB If MatrixNms MaxPool MulticlassNms NV12toBGR NV12toRGB PriorBox RandomUniform Slice Softmax"
    ),
    9: "Eye GenerateProposals GridSample IRDFT MulticlassNms NonMaxSuppression RDFT ROIAlign SoftSign",
    10: "IsFinite IsInf IsNaN Unique",
    11: "Interpolate TopK",
    12: "GroupNormalization Pad ScatterElementsUpdate",
    13: "BitwiseAnd BitwiseNot BitwiseOr BitwiseXor FakeConvert Multinomial NMSRotated ScaledDotProductAttention",
    14: "AvgPool ConvertPromoteTypes Inverse MaxPool",
    15: (
        "BitwiseLeftShift BitwiseRightShift Col2Im EmbeddingBagOffsets EmbeddingBagPacked ROIAlignRotated STFT "
        "ScatterNDUpdate SearchSorted SliceScatter Squeeze StringTensorPack StringTensorUnpack"
    ),
    16: "AvgPool ISTFT Identity OneHot SegmentMax SparseFillEmptyRows",
    17: "Erfinv GroupedMatMul",
}
"""The operation types that each opset defines, for the first time or anew."""

DEFINITIONS: Final[dict[str, tuple[int, ...]]] = {}
"""Each operation type, and the opsets in which it was defined, in ascending order."""

for _opset, _types in _DEFINED_IN.items():
    for _type in _types.split():
        DEFINITIONS[_type] = (*DEFINITIONS.get(_type, ()), _opset)

NEWEST_OPSET: Final = max(version for versions in DEFINITIONS.values() for version in versions)
"""The newest operation set of which all operations are known."""

_ALIASES: Final = {"const": "Constant"}
_BY_LOWER: Final = {name.lower(): name for name in DEFINITIONS} | _ALIASES
_READ_EARLIER: Final = frozenset({"MVN", "ROIPooling", "ReorgYolo", "RNNCell"})
_OPSET: Final = re.compile(r"opset([1-9][0-9]{0,3})")


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
