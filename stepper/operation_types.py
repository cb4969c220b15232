"""Every operation type of opset1 to the latest, and the opsets in which its definition was written anew.

Source: the operation sets of OpenVINO 2026.4. An IR names a type and an opset; what counts is the newest definition
that is not newer than that opset (`version="opset5"` of an Add means Add-1).
"""

from __future__ import annotations

import re
from typing import Final

DEFINITIONS: Final[dict[str, tuple[int, ...]]] = {
    "Abs": (1,),
    "Acos": (1,),
    "Acosh": (4,),
    "AdaptiveAvgPool": (8,),
    "AdaptiveMaxPool": (8,),
    "Add": (1,),
    "Asin": (1,),
    "Asinh": (4,),
    "Assign": (3, 6),
    "Atan": (1,),
    "Atanh": (4,),
    "AvgPool": (1, 14, 16),
    "BatchNormInference": (1, 5),
    "BatchToSpace": (2,),
    "BinaryConvolution": (1,),
    "BitwiseAnd": (13,),
    "BitwiseLeftShift": (15,),
    "BitwiseNot": (13,),
    "BitwiseOr": (13,),
    "BitwiseRightShift": (15,),
    "BitwiseXor": (13,),
    "Broadcast": (1, 3),
    "Bucketize": (3,),
    "CTCGreedyDecoder": (1,),
    "CTCGreedyDecoderSeqLen": (6,),
    "CTCLoss": (4,),
    "Ceiling": (1,),
    "Clamp": (1,),
    "Col2Im": (15,),
    "Concat": (1,),
    "Constant": (1,),
    "Convert": (1,),
    "ConvertLike": (1,),
    "ConvertPromoteTypes": (14,),
    "Convolution": (1,),
    "ConvolutionBackpropData": (1,),
    "Cos": (1,),
    "Cosh": (1,),
    "CumSum": (3,),
    "DFT": (7,),
    "DeformableConvolution": (1, 8),
    "DeformablePSROIPooling": (1,),
    "DepthToSpace": (1,),
    "DetectionOutput": (1, 8),
    "Divide": (1,),
    "Einsum": (7,),
    "Elu": (1,),
    "EmbeddingBagOffsets": (15,),
    "EmbeddingBagOffsetsSum": (3,),
    "EmbeddingBagPacked": (15,),
    "EmbeddingBagPackedSum": (3,),
    "EmbeddingSegmentsSum": (3,),
    "Equal": (1,),
    "Erf": (1,),
    "Erfinv": (17,),
    "Exp": (1,),
    "ExperimentalDetectronDetectionOutput": (6,),
    "ExperimentalDetectronGenerateProposalsSingleImage": (6,),
    "ExperimentalDetectronPriorGridGenerator": (6,),
    "ExperimentalDetectronROIFeatureExtractor": (6,),
    "ExperimentalDetectronTopKROIs": (6,),
    "ExtractImagePatches": (3,),
    "Eye": (9,),
    "FakeConvert": (13,),
    "FakeQuantize": (1,),
    "Floor": (1,),
    "FloorMod": (1,),
    "GRN": (1,),
    "GRUCell": (3,),
    "GRUSequence": (5,),
    "Gather": (1, 7, 8),
    "GatherElements": (6,),
    "GatherND": (5, 8),
    "GatherTree": (1,),
    "Gelu": (2, 7),
    "GenerateProposals": (9,),
    "Greater": (1,),
    "GreaterEqual": (1,),
    "GridSample": (9,),
    "GroupConvolution": (1,),
    "GroupConvolutionBackpropData": (1,),
    "GroupNormalization": (12,),
    "GroupedMatMul": (17,),
    "HSigmoid": (5,),
    "HSwish": (4,),
    "HardSigmoid": (1,),
    "I420toBGR": (8,),
    "I420toRGB": (8,),
    "IDFT": (7,),
    "IRDFT": (9,),
    "ISTFT": (16,),
    "Identity": (16,),
    "If": (8,),
    "Interpolate": (1, 4, 11),
    "Inverse": (14,),
    "IsFinite": (10,),
    "IsInf": (10,),
    "IsNaN": (10,),
    "LRN": (1,),
    "LSTMCell": (1, 4),
    "LSTMSequence": (5,),
    "Less": (1,),
    "LessEqual": (1,),
    "Log": (1,),
    "LogSoftmax": (5,),
    "LogicalAnd": (1,),
    "LogicalNot": (1,),
    "LogicalOr": (1,),
    "LogicalXor": (1, 2),
    "Loop": (5,),
    "MVN": (2, 6),
    "MatMul": (1,),
    "MatrixNms": (8,),
    "MaxPool": (1, 8, 14),
    "Maximum": (1,),
    "Minimum": (1,),
    "Mish": (4,),
    "Mod": (1,),
    "MulticlassNms": (8, 9),
    "Multinomial": (13,),
    "Multiply": (1,),
    "NMSRotated": (13,),
    "NV12toBGR": (8,),
    "NV12toRGB": (8,),
    "Negative": (1,),
    "NonMaxSuppression": (1, 3, 4, 5, 9),
    "NonZero": (3,),
    "NormalizeL2": (1,),
    "NotEqual": (1,),
    "OneHot": (1, 16),
    "PRelu": (1,),
    "PSROIPooling": (1,),
    "Pad": (1, 12),
    "Parameter": (1,),
    "Power": (1,),
    "PriorBox": (1, 8),
    "PriorBoxClustered": (1,),
    "Proposal": (1, 4),
    "RDFT": (9,),
    "RNNCell": (3,),
    "RNNSequence": (5,),
    "ROIAlign": (3, 9),
    "ROIAlignRotated": (15,),
    "ROIPooling": (2,),
    "RandomUniform": (8,),
    "Range": (1, 4),
    "ReadValue": (3, 6),
    "ReduceL1": (4,),
    "ReduceL2": (4,),
    "ReduceLogicalAnd": (1,),
    "ReduceLogicalOr": (1,),
    "ReduceMax": (1,),
    "ReduceMean": (1,),
    "ReduceMin": (1,),
    "ReduceProd": (1,),
    "ReduceSum": (1,),
    "RegionYolo": (1,),
    "Relu": (1,),
    "ReorgYolo": (2,),
    "Reshape": (1,),
    "Result": (1,),
    "Reverse": (1,),
    "ReverseSequence": (1,),
    "Roll": (7,),
    "Round": (5,),
    "STFT": (15,),
    "ScaledDotProductAttention": (13,),
    "ScatterElementsUpdate": (3, 12),
    "ScatterNDUpdate": (4, 15),
    "ScatterUpdate": (3,),
    "SearchSorted": (15,),
    "SegmentMax": (16,),
    "Select": (1,),
    "Selu": (1,),
    "ShapeOf": (1, 3),
    "ShuffleChannels": (1, 3),
    "Sigmoid": (1,),
    "Sign": (1,),
    "Sin": (1,),
    "Sinh": (1,),
    "Slice": (8,),
    "SliceScatter": (15,),
    "SoftPlus": (4,),
    "SoftSign": (9,),
    "Softmax": (1, 8),
    "SpaceToBatch": (2,),
    "SpaceToDepth": (1,),
    "SparseFillEmptyRows": (16,),
    "Split": (1,),
    "Sqrt": (1,),
    "SquaredDifference": (1,),
    "Squeeze": (1, 15),
    "StridedSlice": (1,),
    "StringTensorPack": (15,),
    "StringTensorUnpack": (15,),
    "Subtract": (1,),
    "Swish": (4,),
    "Tan": (1,),
    "Tanh": (1,),
    "TensorIterator": (1,),
    "Tile": (1,),
    "TopK": (1, 3, 11),
    "Transpose": (1,),
    "Unique": (10,),
    "Unsqueeze": (1,),
    "VariadicSplit": (1,),
    "Xor": (1,),
}

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
