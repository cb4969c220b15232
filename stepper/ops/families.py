"""Families of operations, the files of their kernels, and operations without a kernel.

A file is imported when the first of its operation types is asked for.

A model names a few dozen types at most, and importing every file takes longer than reading a small model.
"""

from __future__ import annotations

from typing import Final

FAMILIES: Final = {
    "elementwise": "Add Divide FloorMod Maximum Minimum Mod Multiply Power Select SquaredDifference Subtract",
    "comparison": (
        "Equal Greater GreaterEqual IsFinite IsInf IsNaN Less LessEqual LogicalAnd LogicalNot LogicalOr "
        "LogicalXor NotEqual Xor"
    ),
    "bitwise": "BitwiseAnd BitwiseLeftShift BitwiseNot BitwiseOr BitwiseRightShift BitwiseXor",
    "unary": (
        "Abs Acos Acosh Asin Asinh Atan Atanh Ceiling Cos Cosh Erf Erfinv Exp Floor Log Negative Round Sign Sin "
        "Sinh Sqrt Tan Tanh"
    ),
    "activation": (
        "Clamp Elu Gelu HSigmoid HSwish HardSigmoid Identity LogSoftmax Mish PRelu Relu Selu Sigmoid SoftPlus "
        "SoftSign Softmax Swish"
    ),
    "reduction": (
        "CumSum ReduceL1 ReduceL2 ReduceLogicalAnd ReduceLogicalOr ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum"
    ),
    "normalization": "BatchNormInference GRN GroupNormalization LRN MVN NormalizeL2",
    "convert": "Convert ConvertLike ConvertPromoteTypes",
    "quantize": "FakeConvert FakeQuantize",
    "matmul": "Einsum GroupedMatMul Inverse MatMul ScaledDotProductAttention",
    "recurrent": "GRUCell LSTMCell RNNCell",
    "sequences": "CTCGreedyDecoder CTCGreedyDecoderSeqLen CTCLoss GRUSequence LSTMSequence RNNSequence",
    "convolution": (
        "AdaptiveAvgPool AdaptiveMaxPool AvgPool BinaryConvolution Convolution ConvolutionBackpropData "
        "DeformableConvolution GroupConvolution GroupConvolutionBackpropData MaxPool"
    ),
    "nms": "MatrixNms MulticlassNms NMSRotated NonMaxSuppression",
    "roi": "DeformablePSROIPooling PSROIPooling ROIAlign ROIAlignRotated ROIPooling",
    "signal": "DFT IDFT IRDFT ISTFT RDFT STFT",
    "detection": (
        "DetectionOutput ExperimentalDetectronDetectionOutput ExperimentalDetectronGenerateProposalsSingleImage "
        "ExperimentalDetectronPriorGridGenerator ExperimentalDetectronROIFeatureExtractor "
        "ExperimentalDetectronTopKROIs GenerateProposals PriorBox PriorBoxClustered Proposal RegionYolo"
    ),
    "shape": "Eye Range Reshape ShapeOf Squeeze Transpose Unsqueeze",
    "movement": (
        "Broadcast Concat OneHot Pad Reverse ReverseSequence Roll Slice SliceScatter Split StridedSlice Tile "
        "VariadicSplit"
    ),
    "gather_scatter": (
        "EmbeddingBagOffsets EmbeddingBagOffsetsSum EmbeddingBagPacked EmbeddingBagPackedSum EmbeddingSegmentsSum "
        "Gather GatherElements GatherND GatherTree ScatterElementsUpdate ScatterNDUpdate ScatterUpdate SegmentMax "
        "SparseFillEmptyRows"
    ),
    "space": (
        "BatchToSpace Col2Im DepthToSpace ExtractImagePatches ReorgYolo ShuffleChannels SpaceToBatch SpaceToDepth"
    ),
    "sorting": "Bucketize NonZero SearchSorted TopK Unique",
    "strings": "StringTensorPack StringTensorUnpack",
    "images": "GridSample I420toBGR I420toRGB Interpolate NV12toBGR NV12toRGB",
    "stateful": "Assign Multinomial RandomUniform ReadValue",
}
"""Families of operation types that have a kernel."""

_ELSEWHERE: Final = {
    "comparison": "elementwise",
    "bitwise": "elementwise",
    "unary": "elementwise",
    "quantize": "convert",
    "strings": "convert",
    "sequences": "recurrent",
    "sorting": "reduction",
}
"""The file of each family that does not have a file of its own name."""

FAMILY_OF: Final = {type: family for family, types in FAMILIES.items() for type in types.split()}
"""The family of each operation type that has a kernel."""

FILE_OF: Final = {type: _ELSEWHERE.get(family, family) for type, family in FAMILY_OF.items()}
"""The module below `stepper.ops` that has the kernel of each operation type."""

STRUCTURAL: Final = frozenset({"Parameter", "Constant", "Result", "If", "Loop", "TensorIterator"})
"""Types that the engine carries out; they compute nothing of their own."""
