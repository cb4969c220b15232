"""Families of kernels, a file each, and operations without a kernel.

A family is imported when the first of its operation types is asked for.

A model names a few dozen types at most, and importing every family takes longer than reading a small model.
"""

from __future__ import annotations

from typing import Final

FAMILIES: Final = {
    "variables": "Assign ReadValue",
    "elementwise": "Add Divide FloorMod Maximum Minimum Mod Multiply Power Select SquaredDifference Subtract",
    "comparison": (
        "Equal Greater GreaterEqual IsFinite IsInf IsNaN Less LessEqual LogicalAnd LogicalNot LogicalOr "
        "LogicalXor NotEqual Xor"
    ),
    "bitwise": "BitwiseAnd BitwiseLeftShift BitwiseNot BitwiseOr BitwiseRightShift BitwiseXor",
    "unary": (
        "Abs Acos Acosh Asin Asinh Atan Atanh Ceiling Cos Cosh Exp Floor Log Negative Round Sign Sin Sinh Sqrt Tan Tanh"
    ),
    "error_function": "Erf Erfinv",
    "activation": (
        "Clamp Elu Gelu HSigmoid HSwish HardSigmoid Identity LogSoftmax Mish PRelu Relu Selu Sigmoid "
        "SoftPlus SoftSign Softmax Swish"
    ),
    "reduction": (
        "CumSum ReduceL1 ReduceL2 ReduceLogicalAnd ReduceLogicalOr ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum"
    ),
    "normalization": "BatchNormInference GRN GroupNormalization LRN MVN NormalizeL2",
    "convert": "Convert ConvertLike ConvertPromoteTypes",
    "quantize": "FakeConvert FakeQuantize",
    "random_numbers": "Multinomial RandomUniform",
    "matmul": "Einsum GroupedMatMul Inverse MatMul",
    "attention": "ScaledDotProductAttention",
    "recurrent": "GRUCell LSTMCell RNNCell",
    "sequences": "GRUSequence LSTMSequence RNNSequence",
    "convolution": (
        "BinaryConvolution Convolution ConvolutionBackpropData GroupConvolution GroupConvolutionBackpropData"
    ),
    "deformable": "DeformableConvolution",
    "interpolation": "GridSample Interpolate",
    "pooling": "AdaptiveAvgPool AdaptiveMaxPool AvgPool MaxPool",
    "nms": "NMSRotated NonMaxSuppression",
    "multiclass_nms": "MatrixNms MulticlassNms",
    "roi": "ROIAlign ROIAlignRotated ROIPooling",
    "position_sensitive_roi": "DeformablePSROIPooling PSROIPooling",
    "signal": "DFT IDFT IRDFT ISTFT RDFT STFT",
    "color": "I420toBGR I420toRGB NV12toBGR NV12toRGB",
    "ctc": "CTCGreedyDecoder CTCGreedyDecoderSeqLen CTCLoss",
    "proposals": "ExperimentalDetectronGenerateProposalsSingleImage GenerateProposals Proposal",
    "prior_boxes": "ExperimentalDetectronPriorGridGenerator PriorBox PriorBoxClustered",
    "detection": "DetectionOutput RegionYolo",
    "detectron": (
        "ExperimentalDetectronDetectionOutput ExperimentalDetectronROIFeatureExtractor ExperimentalDetectronTopKROIs"
    ),
    "shape": "Eye Range Reshape ShapeOf Squeeze Transpose Unsqueeze",
    "slicing": "Slice SliceScatter StridedSlice",
    "movement": "Broadcast Concat OneHot Pad Reverse ReverseSequence Roll Split Tile VariadicSplit",
    "gather_scatter": "Gather GatherElements GatherND GatherTree ScatterElementsUpdate ScatterNDUpdate ScatterUpdate",
    "space": (
        "BatchToSpace Col2Im DepthToSpace ExtractImagePatches ReorgYolo ShuffleChannels SpaceToBatch SpaceToDepth"
    ),
    "sorting": "Bucketize NonZero SearchSorted TopK Unique",
    "segments": (
        "EmbeddingBagOffsets EmbeddingBagOffsetsSum EmbeddingBagPacked EmbeddingBagPackedSum "
        "EmbeddingSegmentsSum SegmentMax SparseFillEmptyRows"
    ),
    "strings": "StringTensorPack StringTensorUnpack",
}
"""Each family, and the operation types whose kernels are in its file."""

FAMILY_OF: Final = {type: family for family, types in FAMILIES.items() for type in types.split()}
"""The family of each operation type that has a kernel."""

STRUCTURAL: Final = frozenset({"Parameter", "Constant", "Result", "If", "Loop", "TensorIterator"})
"""Types that the engine carries out; they compute nothing of their own."""
