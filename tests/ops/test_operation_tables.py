"""Tables by operation type: those of the registry name types that exist, and lack the types listed here."""

from __future__ import annotations

from importlib import import_module

from stepper.operation_types import DEFINITIONS
from stepper.ops.registry import STRUCTURAL, TABLES

NOT_OF_OPSETS = {
    "formula": {"FloorDivide"},
    "rounding": {"AUGRUCell", "AUGRUSequence", "ReduceLogSumExp"},
}
"""Types of other sets of operations that a table names."""

LACKING = {
    "contributions": (
        "AdaptiveMaxPool Assign BatchNormInference BinaryConvolution Bucketize CTCGreedyDecoder "
        "CTCGreedyDecoderSeqLen CTCLoss Col2Im DFT DeformableConvolution DeformablePSROIPooling DetectionOutput "
        "EmbeddingBagOffsets EmbeddingBagPacked ExperimentalDetectronDetectionOutput "
        "ExperimentalDetectronGenerateProposalsSingleImage ExperimentalDetectronPriorGridGenerator "
        "ExperimentalDetectronROIFeatureExtractor ExperimentalDetectronTopKROIs ExtractImagePatches Eye GRN GRUCell "
        "GRUSequence GatherTree GenerateProposals GridSample GroupNormalization GroupedMatMul I420toBGR I420toRGB "
        "IDFT IRDFT ISTFT Interpolate Inverse LRN LSTMCell LSTMSequence MVN MatrixNms MaxPool MulticlassNms "
        "Multinomial NMSRotated NV12toBGR NV12toRGB NonMaxSuppression NonZero NormalizeL2 OneHot PSROIPooling "
        "PriorBox PriorBoxClustered Proposal RDFT RNNCell RNNSequence ROIAlign ROIAlignRotated ROIPooling "
        "RandomUniform Range ReadValue ReduceL2 RegionYolo ReorgYolo STFT ScaledDotProductAttention SearchSorted "
        "SegmentMax SparseFillEmptyRows StringTensorPack StringTensorUnpack Unique"
    ),
    "dependence": (
        "AdaptiveAvgPool AdaptiveMaxPool Assign BinaryConvolution CTCGreedyDecoder CTCGreedyDecoderSeqLen CTCLoss "
        "Col2Im DFT DeformableConvolution DeformablePSROIPooling DetectionOutput Einsum EmbeddingBagOffsets "
        "EmbeddingBagOffsetsSum EmbeddingBagPacked EmbeddingBagPackedSum EmbeddingSegmentsSum "
        "ExperimentalDetectronDetectionOutput ExperimentalDetectronGenerateProposalsSingleImage "
        "ExperimentalDetectronPriorGridGenerator ExperimentalDetectronROIFeatureExtractor "
        "ExperimentalDetectronTopKROIs ExtractImagePatches Eye FakeConvert GRN GatherTree GenerateProposals "
        "GridSample GroupConvolutionBackpropData GroupedMatMul I420toBGR I420toRGB IDFT IRDFT ISTFT Inverse LRN "
        "MatrixNms MulticlassNms Multinomial NMSRotated NV12toBGR NV12toRGB NonMaxSuppression NonZero PSROIPooling "
        "PriorBox PriorBoxClustered Proposal RDFT ROIAlign ROIAlignRotated ROIPooling RandomUniform Range ReadValue "
        "RegionYolo ReorgYolo STFT ScaledDotProductAttention SearchSorted SegmentMax SparseFillEmptyRows "
        "StringTensorPack StringTensorUnpack Unique"
    ),
    "shape": (
        "AdaptiveAvgPool AdaptiveMaxPool Assign BatchToSpace BinaryConvolution CTCGreedyDecoder "
        "CTCGreedyDecoderSeqLen CTCLoss Col2Im ConvertPromoteTypes DFT DeformableConvolution DeformablePSROIPooling "
        "DepthToSpace DetectionOutput Einsum EmbeddingBagOffsets EmbeddingBagOffsetsSum EmbeddingBagPacked "
        "EmbeddingBagPackedSum EmbeddingSegmentsSum ExperimentalDetectronDetectionOutput "
        "ExperimentalDetectronGenerateProposalsSingleImage ExperimentalDetectronPriorGridGenerator "
        "ExperimentalDetectronROIFeatureExtractor ExperimentalDetectronTopKROIs ExtractImagePatches Eye GRN "
        "GRUSequence GatherND GatherTree GenerateProposals GridSample GroupedMatMul I420toBGR I420toRGB IDFT IRDFT "
        "ISTFT Interpolate Inverse LRN LSTMSequence MatrixNms MulticlassNms Multinomial NMSRotated NV12toBGR "
        "NV12toRGB NonMaxSuppression PSROIPooling PriorBox PriorBoxClustered Proposal RDFT RNNSequence ROIAlign "
        "ROIAlignRotated ROIPooling RandomUniform ReadValue RegionYolo ReorgYolo STFT ScaledDotProductAttention "
        "SearchSorted SegmentMax ShuffleChannels SpaceToBatch SpaceToDepth SparseFillEmptyRows StringTensorPack "
        "StringTensorUnpack Unique"
    ),
    "numpy code": (
        "AdaptiveAvgPool AdaptiveMaxPool Assign AvgPool BatchNormInference BatchToSpace BinaryConvolution "
        "BitwiseLeftShift BitwiseRightShift Bucketize CTCGreedyDecoder CTCGreedyDecoderSeqLen CTCLoss Col2Im "
        "ConvertPromoteTypes Convolution ConvolutionBackpropData DFT DeformableConvolution DeformablePSROIPooling "
        "DepthToSpace DetectionOutput Einsum Elu EmbeddingBagOffsets EmbeddingBagOffsetsSum EmbeddingBagPacked "
        "EmbeddingBagPackedSum EmbeddingSegmentsSum Erf Erfinv ExperimentalDetectronDetectionOutput "
        "ExperimentalDetectronGenerateProposalsSingleImage ExperimentalDetectronPriorGridGenerator "
        "ExperimentalDetectronROIFeatureExtractor ExperimentalDetectronTopKROIs ExtractImagePatches Eye FakeConvert "
        "FakeQuantize GRN GRUSequence GatherND GatherTree Gelu GenerateProposals GridSample GroupConvolution "
        "GroupConvolutionBackpropData GroupNormalization GroupedMatMul HSigmoid HSwish HardSigmoid I420toBGR "
        "I420toRGB IDFT IRDFT ISTFT Interpolate Inverse IsInf LRN LSTMSequence LogSoftmax MVN MatrixNms MaxPool "
        "Mish MulticlassNms Multinomial NMSRotated NV12toBGR NV12toRGB NonMaxSuppression NonZero NormalizeL2 OneHot "
        "PRelu PSROIPooling PriorBox PriorBoxClustered Proposal RDFT RNNSequence ROIAlign ROIAlignRotated "
        "ROIPooling RandomUniform ReadValue RegionYolo ReorgYolo Reverse ReverseSequence Roll STFT "
        "ScaledDotProductAttention ScatterElementsUpdate ScatterNDUpdate SearchSorted SegmentMax Selu "
        "ShuffleChannels SliceScatter SoftPlus SoftSign SpaceToBatch SpaceToDepth SparseFillEmptyRows "
        "StringTensorPack StringTensorUnpack Unique Xor"
    ),
    "rounding": (
        "Acos Acosh AdaptiveMaxPool Asin Asinh Assign Atan Atanh BatchToSpace BinaryConvolution BitwiseAnd "
        "BitwiseLeftShift BitwiseNot BitwiseOr BitwiseRightShift BitwiseXor Broadcast Bucketize CTCGreedyDecoder "
        "CTCGreedyDecoderSeqLen CTCLoss Ceiling Col2Im Concat ConvertLike ConvertPromoteTypes Cos Cosh "
        "DeformablePSROIPooling DepthToSpace DetectionOutput Equal Erf Erfinv ExperimentalDetectronDetectionOutput "
        "ExperimentalDetectronGenerateProposalsSingleImage ExperimentalDetectronPriorGridGenerator "
        "ExperimentalDetectronROIFeatureExtractor ExperimentalDetectronTopKROIs ExtractImagePatches Eye FakeConvert "
        "FakeQuantize Floor FloorMod Gather GatherElements GatherND GatherTree Gelu GenerateProposals Greater "
        "GreaterEqual HSigmoid HSwish I420toBGR I420toRGB Identity IsFinite IsInf IsNaN Less LessEqual Log "
        "LogicalAnd LogicalNot LogicalOr LogicalXor MatrixNms MaxPool Mish Mod MulticlassNms Multinomial NMSRotated "
        "NV12toBGR NV12toRGB NonMaxSuppression NonZero NotEqual OneHot PRelu PSROIPooling Pad Power PriorBox "
        "PriorBoxClustered Proposal ROIAlign ROIAlignRotated ROIPooling RandomUniform Range ReadValue ReduceL1 "
        "ReduceL2 ReduceLogicalAnd ReduceLogicalOr ReduceMax ReduceMin ReduceProd RegionYolo ReorgYolo Reshape "
        "Reverse ReverseSequence Roll Round ScatterElementsUpdate ScatterNDUpdate ScatterUpdate SearchSorted "
        "SegmentMax Select Selu ShapeOf ShuffleChannels Sign Sin Sinh Slice SliceScatter SoftPlus SoftSign Softmax "
        "SpaceToBatch SpaceToDepth SparseFillEmptyRows Split Squeeze StridedSlice StringTensorPack "
        "StringTensorUnpack Swish Tan Tile TopK Transpose Unique Unsqueeze VariadicSplit Xor"
    ),
    "formula": (
        "Abs Acos Acosh AdaptiveAvgPool AdaptiveMaxPool Asin Asinh Assign Atan Atanh AvgPool BatchNormInference "
        "BatchToSpace BinaryConvolution BitwiseAnd BitwiseLeftShift BitwiseNot BitwiseOr BitwiseRightShift "
        "BitwiseXor Broadcast Bucketize CTCGreedyDecoder CTCGreedyDecoderSeqLen CTCLoss Clamp Col2Im Concat Convert "
        "ConvertLike ConvertPromoteTypes Convolution ConvolutionBackpropData Cosh CumSum DFT DeformableConvolution "
        "DeformablePSROIPooling DepthToSpace DetectionOutput Einsum Elu EmbeddingBagOffsets EmbeddingBagOffsetsSum "
        "EmbeddingBagPacked EmbeddingBagPackedSum EmbeddingSegmentsSum Erfinv ExperimentalDetectronDetectionOutput "
        "ExperimentalDetectronGenerateProposalsSingleImage ExperimentalDetectronPriorGridGenerator "
        "ExperimentalDetectronROIFeatureExtractor ExperimentalDetectronTopKROIs ExtractImagePatches Eye FakeConvert "
        "FakeQuantize GRN GRUSequence Gather GatherElements GatherND GatherTree GenerateProposals GridSample "
        "GroupConvolution GroupConvolutionBackpropData GroupNormalization GroupedMatMul HSigmoid HSwish HardSigmoid "
        "I420toBGR I420toRGB IDFT IRDFT ISTFT Identity Interpolate Inverse IsFinite IsInf IsNaN LRN LSTMSequence "
        "LogicalNot MVN MatMul MatrixNms MaxPool Mish MulticlassNms Multinomial NMSRotated NV12toBGR NV12toRGB "
        "Negative NonMaxSuppression NonZero NormalizeL2 OneHot PRelu PSROIPooling Pad Power PriorBox "
        "PriorBoxClustered Proposal RDFT RNNSequence ROIAlign ROIAlignRotated ROIPooling RandomUniform Range "
        "ReadValue ReduceL1 ReduceL2 ReduceLogicalAnd ReduceLogicalOr ReduceMax ReduceMean ReduceMin ReduceProd "
        "ReduceSum RegionYolo ReorgYolo Reshape Reverse ReverseSequence Roll Round STFT ScaledDotProductAttention "
        "ScatterElementsUpdate ScatterNDUpdate ScatterUpdate SearchSorted SegmentMax Select Selu ShapeOf "
        "ShuffleChannels Sinh Slice SliceScatter SoftSign SpaceToBatch SpaceToDepth SparseFillEmptyRows Split "
        "SquaredDifference Squeeze StridedSlice StringTensorPack StringTensorUnpack Swish Tan Tile TopK Transpose "
        "Unique Unsqueeze VariadicSplit Xor"
    ),
}
"""The types that a table has nothing to say of; without those that the engine carries out.

A new operation is named in each table, or here.
"""


def types_of(name: str) -> set[str]:
    found: set[str] = set()
    for one in TABLES[name].split():
        module, table = one.split(":")
        table, _, field = table.partition(".")
        types = getattr(import_module(module), table)
        found |= {type for type, rule in types.items() if getattr(rule, field) is not None} if field else set(types)
    return found


def test_each_table_names_types_that_exist() -> None:
    unknown = {name: types_of(name) - DEFINITIONS.keys() - NOT_OF_OPSETS.get(name, set()) for name in TABLES}
    assert not {name: types for name, types in unknown.items() if types}


def test_each_table_names_every_type_but_those_listed() -> None:
    lacking = {name: set(DEFINITIONS) - STRUCTURAL - types_of(name) for name in LACKING}
    assert lacking == {name: set(types.split()) for name, types in LACKING.items()}
