"""Tables by operation type: those of the registry name types that exist, and lack the types listed here."""

from __future__ import annotations

from importlib import import_module

from stepper.operation_types import DEFINITIONS
from stepper.ops.registry import STRUCTURAL, TABLES

NOT_OF_OPSETS = {"sign in formulas": {"FloorDivide"}}
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
}
"""The types that a table has nothing to say of; without those that the engine carries out.

A new operation is named in each table, or here.
"""


def types_of(name: str) -> set[str]:
    module, table = TABLES[name].split(":")
    table, _, field = table.partition(".")
    found = getattr(import_module(module), table)
    return {type for type, rule in found.items() if getattr(rule, field) is not None} if field else set(found)


def test_each_table_names_types_that_exist() -> None:
    unknown = {name: types_of(name) - DEFINITIONS.keys() - NOT_OF_OPSETS.get(name, set()) for name in TABLES}
    assert not {name: types for name, types in unknown.items() if types}


def test_each_table_names_every_type_but_those_listed() -> None:
    lacking = {name: set(DEFINITIONS) - STRUCTURAL - types_of(name) for name in LACKING}
    assert lacking == {name: set(types.split()) for name, types in LACKING.items()}
