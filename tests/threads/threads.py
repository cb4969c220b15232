"""The threads: what went wrong, the model of it, the commands, and what the last one says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tests.models import Graph
from tests.threads import models
from tests.threads.models import MASKED, ROWS, SUMMED, damaged, written

OPENVINO, ONNX = "openvinotoolkit/openvino", "onnx/onnx"
TF2ONNX, ORT, TF = "onnx/tensorflow-onnx", "microsoft/onnxruntime", "tensorflow/tensorflow"


class Thread(NamedTuple):
    """One row: the links as (repository, number), what went wrong, `make`, commands in its folder, what is said.

    `make` writes `model.xml` (and `other/model.xml`, the reference) into a folder. `says` is in the output of the last
    command.
    """

    number: int
    links: tuple[tuple[str, int], ...]
    fault: str
    make: Callable[[Path], object]
    commands: tuple[str, ...]
    says: str
    code: int = 1


def _one(net: Callable[[], Graph], **inputs: object) -> Callable[[Path], object]:
    return lambda folder: written(net(), folder, **inputs)


def _two(ours: Callable[[], Graph], theirs: Callable[[], Graph], **inputs: object) -> Callable[[Path], object]:
    return lambda folder: (written(ours(), folder, **inputs), written(theirs(), folder, "other"))


def _broken(net: Callable[[], Graph], *changes: tuple[str, str]) -> Callable[[Path], object]:
    return lambda folder: damaged(written(net(), folder), *changes)


LINT = ("lint model.xml",)
CHECK = ("check model.xml --inputs inputs.npz --with none",)
CHECK_ALONE = ("check model.xml --with none --seconds 1",)
COMPARE = ("compare model.xml --with other/model.xml --inputs inputs.npz",)
COMPARE_ALONE = ("compare model.xml --with other/model.xml",)
CALLED = (
    "compare model.xml --with other/model.xml --calls inputs.npz --carry hidden_next=hidden --input hidden=[[0.5,0.5]]",
)
RECORD = "run model.xml --inputs inputs.npz --trace run.sqlite --record all -q"

THREADS = (
    Thread(1, ((OPENVINO, 28235),), "The condition is not one element; the plugin dies in the loop node.",
           _one(lambda: models.wide_condition((2,))), LINT,
           "the condition Result 'going' has the shape [2], expected a scalar or one element"),
    Thread(2, ((OPENVINO, 35874),), "A value is handed over as {1} and began as {}.",
           _one(models.rank_changing), LINT,
           "Loop 'Loop.0': Parameter 'state' has rank 0 in iteration 0 and rank 1 from then on, as the back edge from "
           "Result 'next_state' brings it", 0),
    Thread(3, ((OPENVINO, 37247),), "No iteration: what is carried gets the shape [0, 0, 0].",
           _one(lambda: models.counting("trips"), trips=np.int64(0)), CHECK,
           "Loop 'until_limit': the loop has no iteration: trip count is 0", 0),
    Thread(4, ((OPENVINO, 9722),), "A condition that is false at the start was an exception.",
           _one(lambda: models.counting(begins=False)), LINT,
           "the initial condition Constant 'condition' is the constant false: the loop is never entered"),
    Thread(5, ((OPENVINO, 26047), (OPENVINO, 27720)), "A carried tensor changes its shape; the next iteration reads a "
           "cut-off one.", _one(models.growing), LINT,
           "Parameter 'cache' changes its shape from [1,2] to one that is longer along axis 0 in each iteration"),
    Thread(6, ((OPENVINO, 14041),), "The second inference begins with the shape to which the first one has grown.",
           _one(lambda: models.growing(exposed=True)), LINT,
           "Parameter 'cache' changes its shape from [1,2] to one that is longer along axis 0 in each iteration: a "
           "call ends with another shape than it began with", 0),
    Thread(7, ((OPENVINO, 12926),), "Slices of more than one element: part_size was ignored.",
           _one(lambda: models.cutting(1)), LINT,
           "Parameter 'part' is declared as [2,1], and what comes in is [2,2] in each slice, of 2 along axis 1"),
    Thread(8, ((OPENVINO, 5217),), "Unrolled, a TensorIterator of one iteration lost its output.",
           _two(models.unrolled_once, lambda: models.summing(1), x=ROWS[:1]), COMPARE,
           "output 'states' differs from other/model.xml"),
    Thread(9, ((OPENVINO, 4557),), "A pass put the state into variables, and left the loop as it was.",
           _two(models.one_step_with_a_variable, models.one_step, x=ROWS), CALLED,
           "the initial value of Parameter 'hidden' (id 1) is Const 'hidden_start' instead of Parameter 'hidden' "
           "(line 60) in Loop 'calls' #1 > TensorIterator 'recurrent' #0"),
    Thread(10, ((OPENVINO, 735), (OPENVINO, 4771), (OPENVINO, 6266)), "How do I get the states between the steps?",
           _one(models.summing, x=ROWS), (RECORD, "print run.sqlite hidden@*"),
           "@1  f32[1,2] [[0.5370496, 0.6043678]] @2  f32[1,2] [[0.6842432, 0.7634224]]", 0),
    Thread(11, ((OPENVINO, 1273),), "The same output for every input.",
           _one(models.unread_input, x=ROWS), CHECK,
           "the body reads none of the slices (Parameter 'row'), which set the number of iterations"),
    Thread(12, ((OPENVINO, 297),), "On a device of f16 the outputs are far off, without a cause.",
           _one(models.squares, x=ROWS * 1000), ("check model.xml --inputs inputs.npz --with none --as f16",),
           "iteration 1: in f16 Multiply 'squares' leaves the range: element [0, 0] is 90000"),
    Thread(13, ((OPENVINO, 15138),), "“Expected 1 node with internal_layer_id=48, 0 found”.",
           _broken(models.summing, ('internal_layer_id="0"', 'internal_layer_id="48"')), LINT,
           "the body has no layer 48, to which this <input> of the port map leads"),
    Thread(14, ((OPENVINO, 36328),), "NaN in some compilations and not in others, of one file.",
           _broken(models.numbered, ('purpose="current_iteration" ', "")), LINT,
           "Parameter 'i' is a whole number that Unsqueeze 'piece' reads, and no entry feeds it: "
           'purpose="current_iteration" is missing'),
    Thread(15, (("lutzroeder/netron", 572), ("lutzroeder/netron", 766), ("lutzroeder/netron", 1554)),
           "The body is drawn without connection to what is around it.",
           _one(models.summing), ("inspect model.xml hidden",),
           "TensorIterator 'recurrent': Constant 'hidden_start' -> input 1 -> Parameter 1 'hidden': merged, the value "
           "of the first iteration", 0),
    Thread(16, (("onnx/onnx-tensorrt", 891), (ORT, 13894)), "One iteration more than in another runtime.",
           _two(lambda: models.counting(is_late=True), models.counting), COMPARE_ALONE,
           "input 0 of Less 'below_limit' (id 4) is Parameter 'state' instead of Add 'more': the old value of the "
           "previous iteration, before the update (shifted by one)"),
    Thread(17, ((ORT, 8929),), "A tensor of a subgraph cannot be got.",
           _one(models.summing, x=ROWS), (RECORD, "print run.sqlite mixed@2"),
           "@2  f32[1,2] [[1.1842432, 1.3634224]]", 0),
    Thread(18, ((ORT, 3794),), "A reader takes the body's first input for the trip count; it is the iteration number.",
           _one(models.numbered), ("inspect model.xml i",),
           "Loop 'count': Parameter 0 'i': current iteration, which counts 0, 1, 2, ...; the trip count is Constant "
           "'trip_count' = 3", 0),
    Thread(19, ((ONNX, 2082),), "The update of a carried value is lost in each iteration.",
           _one(lambda: models.summing(resets=True)), LINT,
           "Result 'hidden_out' goes nowhere, neither out nor over a back edge, and looks like Parameter 'hidden'"),
    Thread(20, ((ORT, 4210),), "Each piece of a scan output is the last one, for a buffer was used again.",
           _one(models.repeated_pieces), CHECK_ALONE,
           "all 4 pieces of Result 'result' are the same: Maximum 'shown_late' gives the same in each iteration, "
           "though Add 'shown' changes", 0),
    Thread(21, (("onnx/onnx-mlir", 1153),), "Scan outputs are one iteration late.",
           _two(lambda: models.lagging(is_late=True), lambda: models.lagging(is_late=False), x=SUMMED), COMPARE,
           "iteration 0, Multiply 'piece' (id 5) input 0 of Multiply 'piece' (id 5) is Parameter 'sum' instead of Add "
           "'added': the old value of the previous iteration"),
    Thread(22, ((TF2ONNX, 2202), (TF2ONNX, 2210)), "A size was frozen by the converter, and the loop never ends.",
           _one(models.endless_growth), LINT,
           "Result 'going', which Less 'still_short' gives, is the same each time: no back edge leads to "
           "Parameter 'frozen', which it reads"),
    Thread(23, ((TF2ONNX, 1634),), "All values of the first iteration are to be compared with another model's.",
           _two(lambda: models.lagging(is_late=True), lambda: models.lagging(is_late=False), x=SUMMED), COMPARE,
           "iteration 0, Multiply 'piece' (id 5)"),
    Thread(24, ((TF2ONNX, 2200),), "An If inside of a loop is wired to a layer that is not there.",
           _broken(models.choosing, ('internal_layer_id="0"', 'internal_layer_id="9"')), LINT,
           "Loop 'steps' > If 'low_or_high': the body has no layer 9"),
    Thread(25, ((ORT, 12684), (TF2ONNX, 1971)), "“No limit” is written as the largest number, or not at all.",
           _one(lambda: models.counting(2**63 - 1)), LINT,
           "the trip count Constant 'trip_count' is 9223372036854775807, the largest whole number of its type: no "
           "limit, Less 'below_limit' ends the loop", 0),
    Thread(26, (("tensorflow/tflite-micro", 1636),), "The simplest While never ends.",
           _one(models.flipping), CHECK_ALONE,
           "its condition NotEqual 'is_not_two' is always true; what it carries repeats with period 2"),
    Thread(27, (("tensorflow/serving", 1246),), "The loop runs once, and more often elsewhere.",
           _one(lambda: models.counting(compare="Greater")), CHECK_ALONE,
           "the loop ends after the first iteration of 10: Greater 'below_limit' is false at once", 0),
    Thread(28, ((TF, 8337), (TF, 12793), (TF, 16619), (TF, 8410)), "The filter for Inf stops at a mask that is meant.",
           _one(models.masked, x=MASKED), CHECK,
           "TensorIterator 'outer_scan', iteration 2: Inf first appears in Divide 'share': 1 / 0 gives Inf"),
    Thread(29, (("jax-ml/jax", 23501), ("jax-ml/jax", 5696)),
           "The message about a NaN in a nested loop names the outer loop.",
           _one(lambda: models.masked(nested=True), x=MASKED), CHECK,
           "TensorIterator 'outer_scan' > Loop 'inner_scan', iterations 2, 0: Inf first appears in Divide 'share'"),
    Thread(30, ((ONNX, 5647),), "Values on the way are to be logged.",
           _one(models.summing, x=ROWS), (RECORD, "print run.sqlite mixed@* --csv"),
           "recurrent::mixed,@0,5,0 0,0.6", 0),
    Thread(31, ((ONNX, 8135),), "A reader takes the trip count for the length of a scan output.",
           _one(models.counting), ("run model.xml",),
           "states  f32[5]  1 2 3 4 5 loops Loop 'until_limit': 5 iterations, condition became false", 0),
    Thread(32, ((ORT, 1233),), "No iteration: which shape has a scan output?",
           _one(lambda: models.counting(0)), ("run model.xml",), "states  f32[0]", 0),
    Thread(33, (("llvm/torch-mlir", 3988), ("pytorch/pytorch", 17531)), "The exporter writes the condition as an i64.",
           _one(models.whole_number_condition), LINT,
           "the condition Result 'next_state', which Subtract 'less' gives, is i64, expected boolean"),
    Thread(34, ((ONNX, 3122), (ONNX, 4483), (ONNX, 7843)), "Are scan outputs concatenated or stacked?",
           _one(models.counting), ("inspect model.xml states",),
           "Result 6 'result' -> output 1 -> Result 'states': concatenated, axis 0, start 0, end -1, stride 1, "
           "part_size 1: the pieces are laid end to end along this axis, which each of them has", 0),
    Thread(35, ((OPENVINO, 14108),), "A pass leaves a Parameter in a body that nothing feeds.",
           _one(models.dangling), LINT,
           "Parameter 'hidden' is not connected: no entry of the port map feeds it, and Add 'mixed' reads it"),
)  # fmt: skip
