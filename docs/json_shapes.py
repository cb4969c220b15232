"""The shapes of all answers as JSON, as types: `docs/json_schemas.py` makes the schemas in this folder from them.

Every answer has `schema`, the version of all shapes. Keys are always there unless they are marked NotRequired.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, NotRequired, TypedDict

from stepper.cases.case import CaseFacts
from stepper.debug.branch_differences import DifferenceRow, PlaceDifference
from stepper.debug.breakpoints.breakpoint import BreakKind
from stepper.debug.causes.cause import Enclosure, PartRole, Scalar
from stepper.debug.inspection.views import FoundMoment
from stepper.debug.moments.moment import MomentKind
from stepper.debug.stop import Mark, Reason, SearchedRange
from stepper.debug.story.story_facts import Influence, QuestionKind
from stepper.diagnosis.hunt.hunting import FaultCount
from stepper.diagnosis.reduce.trials import FaultKind
from stepper.diagnosis.rule import Example, Part, Severity, SubjectKind
from stepper.engine.loops import EndReason
from stepper.engine.run import ComputedElsewhere, LoopOutline, TensorOutline, WithoutKernel
from stepper.ir.model import LayerSite, Slicing
from stepper.ops.departures import Departure
from stepper.recording.queries import NonFiniteValue
from stepper.repair.healing import Heal
from stepper.repair.repairing import Closest, EditFacts, FixStatus, Repair
from stepper.session.session_files import AnyCause
from stepper.sweep.sweep_results import LoopSpread, PlaceCount, SweepOutcome
from stepper.tensors.difference import Change

Real = float | Literal["NaN", "Infinity", "-Infinity"]
"""A number; what JSON lacks stands as text."""

Element = bool | int | float | str
"""An element of a tensor: a boolean, a number, "NaN", "Infinity" or "-Infinity", or a text."""


class TensorData(TypedDict):
    """A tensor: its element type, its shape, and its elements in row-major order (null of more than 1,000)."""

    type: str
    shape: list[int]
    values: list[Element] | None


class NamedTensor(TensorData):
    """An output of the model."""

    name: str


class AnyAnswer(TypedDict):
    """Keys of every answer: the version of all shapes."""

    schema: Literal[1]


# --- errors ---------------------------------------------------------------------------------------------------------


class BodySite(TypedDict):
    """A loop or an If around a place: which body of it ran, and in which iteration (null: of an If)."""

    layer: LayerSite
    body: str
    iteration: int | None


class CandidateData(TypedDict):
    """A meaning of an ambiguous address: its full address, and the type of its layer."""

    address: str
    type: str


class ErrorData(TypedDict):
    """Error: its message, the exit code of the program, and as far as known file, line and layer. In a run `path` has
    the loops and branches around the layer, from the outside inwards. `candidates` are the meanings of an ambiguous
    name.
    """

    kind: Literal[
        "usage", "output", "model", "input", "session", "execution", "limit", "paused", "unsupported", "interrupted",
        "memory", "error",
    ]  # fmt: skip
    message: str
    exit_code: int
    file: str | None
    line: int | None
    layer: LayerSite | None
    path: list[BodySite]
    candidates: list[CandidateData]


class ErrorAnswer(AnyAnswer):
    """Answer of a command with --json that fails, on stdout; the message stands on stderr, too."""

    error: ErrorData


# --- run ------------------------------------------------------------------------------------------------------------


class LoopData(TypedDict):
    """A loop of a run: how often it was entered, its iterations in all, the fewest and the most of one execution, and
    how often it ended for each reason.
    """

    path: str
    layer: LayerSite
    executions: int
    iterations: int
    fewest: int
    most: int
    ended: dict[str, int]


class NoteData(TypedDict):
    """Departure of the other rule book, or something undefined, and its place."""

    place: str
    text: str


class RunAnswer(AnyAnswer):
    """`stepper run`: the outputs, the variables (ReadValue, Assign) of the next run, the loops. `computed_by` counts
    the operations that others computed, by type; `elsewhere` names each.
    """

    model: str
    rules: Literal["spec", "openvino"]
    outputs: list[NamedTensor]
    states: list[NamedTensor]
    loops: list[LoopData]
    computed_by: dict[str, dict[str, int]]
    elsewhere: list[ComputedElsewhere]
    notes: list[NoteData]


class OperationSite(TypedDict):
    """An operation: its layer, and who computes it, if that is not numpy."""

    id: int
    name: str
    type: str
    file: str
    line: int
    computed_by: NotRequired[str]


class WatchNow(TypedDict):
    """A watch and its value now; `error`: it has no value, and the text says why."""

    text: str
    error: bool


class StopData(TypedDict):
    """Place of a run. `done` was just executed, `next` comes next; `closed`: the iteration has just been closed.
    `cause` is the first of `causes`, `details` the same in words. `searched`: how far a paused search has looked.
    """

    tick: int
    reason: Reason
    place: str
    depth: int
    iteration: int | None
    closed: bool
    done: OperationSite | None
    next: OperationSite | None
    cause: AnyCause | None
    causes: list[AnyCause]
    details: list[str]
    searched: SearchedRange | None
    branch: str
    edited: bool
    watches: dict[str, WatchNow]


BreakAnswer = TypedDict(
    "BreakAnswer",
    {"schema": Literal[1], "model": str, "rules": Literal["spec", "openvino"], "break": StopData},
)
BreakAnswer.__doc__ = "`stepper run --break` where a breakpoint stopped the run: where, and why."


# --- inspect --------------------------------------------------------------------------------------------------------


class InspectAnswer(AnyAnswer):
    """`stepper inspect`: the parts and sizes of the model. `weights` are the bytes of the .bin, null without one."""

    model: str
    name: str
    version: int
    weights: int | None
    inputs: list[TensorOutline]
    outputs: list[TensorOutline]
    variables: list[TensorOutline]
    sequences: list[LayerSite]
    loops: list[LoopOutline]
    operations: dict[str, int]
    without_kernel: list[WithoutKernel]
    departures: list[Departure]


# --- print and find -------------------------------------------------------------------------------------------------


class StatisticsData(TypedDict):
    """A tensor in numbers: null where there is no finite element."""

    min: Real | None
    max: Real | None
    mean: Real | None
    std: Real | None
    nan: int | None
    inf: int | None
    zero: int | None


class MomentValue(TensorData):
    """A value at a position: the iterations of the loops around it, outer first, and the tick (null: the model's)."""

    iterations: list[int]
    tick: int | None
    statistics: NotRequired[StatisticsData]


class Selection(TypedDict):
    """All values of the question; `more` counts those beyond 10,000."""

    address: str
    loops: list[str]
    moments: list[MomentValue]
    more: int
    computed_by: NotRequired[str]


class PrintAnswer(AnyAnswer):
    """`stepper print`: values of a recording. `values` are null where statistics alone were recorded."""

    trace: str
    values: list[Selection]


class FindAnswer(AnyAnswer):
    """`stepper find`: the positions at which an expression holds. `failures` counts the positions where it had no
    value.
    """

    trace: str
    predicate: str
    moments: list[FoundMoment]
    asked: int
    more: bool
    stopped: str
    failures: int
    failure: str


class NonFiniteAnswer(AnyAnswer):
    """`stepper find TRACE nan` and `inf`: the values that have such elements; `total` counts all."""

    trace: str
    predicate: str
    found: list[NonFiniteValue]
    total: int
    more: bool


# --- compare and passes ---------------------------------------------------------------------------------------------


class Measure(TypedDict):
    """Distance of two tensors: the largest absolute and relative difference, and the largest in units of the last
    place. Also the cosine of the angle between them, how many of `size` elements are outside of the tolerance, and the
    index of the worst. `problem`: why they cannot be compared.
    """

    absolute: Real | None
    relative: Real | None
    ulp: Real | None
    cosine: Real | None
    outside: int
    size: int
    index: list[int]
    problem: str | None


class ComparedOutput(TypedDict):
    """An output of the model; `known`: the reference has it. `patterns` are what the difference looks like."""

    name: str
    known: bool
    differs: bool
    measure: Measure | None
    patterns: list[str]


class LoopIn(TypedDict):
    """A loop, and the names of the layers that lead to it."""

    id: int
    name: str
    type: str
    file: str
    line: int
    path: list[str]


class Explanation(TypedDict):
    """A setting of the runtime with which it agrees, or a known fault of it that is met."""

    reason: str
    known_fault: bool
    agrees: bool
    properties: dict[str, str]
    path: list[str]
    layers: list[LayerSite]
    outputs: list[ComparedOutput]


class Bisection(TypedDict):
    """A loop's outputs agree where it runs `iteration` iterations, and differ where it runs one more. `before` and
    `after` are the distances; `gradual`: it grows from iteration to iteration. `runs`: how often each side was run.
    """

    loop: LayerSite | None
    iteration: int
    before: Real
    after: Real
    gradual: bool
    runs: int


class Verdict(TypedDict):
    """Place where the two part, and the reason: the loop, the iteration, the layer, the entry of the port map."""

    place: str
    loop: LoopIn | None
    path: list[BodySite]
    iteration: int | None
    layer: LayerSite | None
    port_map: str | None
    shows_at: LayerSite | None
    related: list[LayerSite]
    line: int | None
    reason: str
    details: list[str]
    explanation: Explanation | None
    bisection: Bisection | None
    statement: str


class Born(TypedDict):
    """A NaN or Inf that appears in our run; `shared`: in the reference, too."""

    layer: LayerSite | None
    path: list[BodySite]
    shared: bool
    text: str
    cause: AnyCause


class LoopOutcomeData(TypedDict):
    """End of a loop."""

    iterations: int
    ended: str | None
    complete: bool


class LoopRuns(TypedDict):
    """Equal runs of a loop: how many, and how they ended here and there."""

    count: int
    ours: LoopOutcomeData | None
    reference: LoopOutcomeData | None


class Totals(TypedDict):
    """Iterations in all, here and there."""

    ours: int | None
    reference: int | None


class ComparedLoop(TypedDict):
    """A loop here and there."""

    loop: LayerSite
    path: list[str]
    iterations: Totals
    runs: list[LoopRuns]


class ComparedOperation(TypedDict):
    """All values of an output of an operation: how many were compared and differ, the first and the worst."""

    path: list[str]
    layer: LayerSite
    output: int
    compared: int
    differing: int
    first: list[BodySite] | None
    worst: Measure | None
    worst_at: list[BodySite] | None
    origin: str | None


class FileDifferenceData(TypedDict):
    """A place where the two files differ."""

    kind: str
    path: list[str]
    layer: LayerSite | None
    line: int
    text: str


class CompareAnswer(AnyAnswer):
    """`stepper compare`: the same facts as the report; `operations` with --per-op."""

    model: str
    reference: str
    different: bool
    compared: int
    verdict: Verdict | None
    born: list[Born]
    given_up: str | None
    notes: list[str]
    loops: list[ComparedLoop]
    outputs: list[ComparedOutput]
    worst: list[ComparedOperation]
    file_differences: list[FileDifferenceData]
    operations: NotRequired[list[ComparedOperation]]


class PassData(TypedDict):
    """A transformation of OpenVINO, and whether the model computes the same after it."""

    number: int
    name: str
    verdict: str
    details: list[str]
    largest_difference: Real | None


class PassesAnswer(AnyAnswer):
    """`stepper passes`: `first_change` is the first pass that changes the results. `large_change` is the pass that
    brings most of the difference, if that is another one; `runtime` is the change by the kernels. The model ran after
    `passes`, which are some of `total`, with `--all` all.
    """

    model: str
    total: int
    first_change: PassData | None
    large_change: PassData | None
    passes: list[PassData]
    runtime: list[str]


class ReducedFaultData(TypedDict):
    """A fault: `program` has it ("stepper", "OpenVINO", or the path of a reference).

    `what` is the class of the error, the place in OpenVINO's sources that refuses, the signal, or which numbers differ.
    `layer_type` is the type of the operation where it stops. `ratio` is how many times the difference exceeds the
    tolerance, most of all in the output of this index. `skips_a_loop`: a loop runs no iteration. `is_seen`: of a stop,
    an output of the run is not finite. `text` is all of it in one sentence.
    """

    kind: FaultKind
    program: str
    what: str
    layer_type: str
    message: str
    ratio: Real
    output: int
    skips_a_loop: bool
    is_seen: bool
    text: str


class ReducedData(TypedDict):
    """A reduction: the files of the folder, the operations before and after; `is_smallest`: nothing more goes."""

    folder: str
    files: list[str]
    operations_before: int
    operations: int
    trials: int
    seconds: Real
    is_smallest: bool
    is_interrupted: bool


class ReduceAnswer(AnyAnswer):
    """`stepper reduce`: both null where the model does not have the fault that was asked for."""

    model: str
    fault: ReducedFaultData | None
    reduced: ReducedData | None


# --- fix ------------------------------------------------------------------------------------------------------------


class FixCommandAnswer(AnyAnswer):
    """`stepper fix`: repairs, the likeliest first; without one, the edits that come closest.

    `differing` are the positions of outputs that differ without an edit. `iteration` is the first in which a slice of
    an output of the loop `loop` differs. `refuted` edits agree on the given inputs and differ on others.
    """

    model: str
    status: FixStatus
    reference: str
    examples: int
    numbers: int
    ratio: Real
    distance: Real
    differing: list[int]
    iteration: int | None
    loop: LayerSite | None
    repairs: list[Repair]
    closest: list[Closest]
    refuted: int
    singles: int
    tried: int
    pairs: int
    seconds: Real
    is_complete: bool
    is_interrupted: bool
    files: list[str]


class HealCommandAnswer(AnyAnswer):
    """`stepper fix` without a reference: rewrites that heal the run; `refused` ones change healthy outputs.

    `iterations` have NaN or Inf in an output or a carried value; `origins` are rewrites at layers where it begins.
    """

    model: str
    iterations: int
    origins: list[EditFacts]
    heals: list[Heal]
    refused: int
    tried: int
    files: list[str]


# --- hunt -----------------------------------------------------------------------------------------------------------


class HuntAnswer(AnyAnswer):
    """`stepper hunt`: of all seeds that the folder has; the faults in the order of their ids."""

    folder: str
    profile: Literal["loops", "port-maps", "operations", "quantised"]
    seeds: int
    agree: int
    not_built: int
    undecided: int
    faults: list[FaultCount]
    is_interrupted: bool
    seconds: Real


class FaultCaseData(TypedDict):
    """The smallest case of a known fault; `found` and `recognised` are empty where nothing shows."""

    fault: str
    is_shown: bool
    found: str
    recognised: str
    model: str


class FaultCasesAnswer(AnyAnswer):
    """`stepper hunt --fault`: the cases of known faults, as they were run."""

    cases: list[FaultCaseData]


# --- cases ----------------------------------------------------------------------------------------------------------


class CaseData(TypedDict):
    """A case: a folder with a model, and the files that it has; `facts` are null where no call of an application was
    kept. `damage` says why it cannot be used; null where it can.
    """

    folder: str
    model: str | None
    inputs: str | None
    states: str | None
    outputs: str | None
    calls: str | None
    facts: CaseFacts | None
    damage: str | None


class CasesAnswer(AnyAnswer):
    """`stepper cases`: the cases of a folder, in the order of their names."""

    folder: str
    cases: list[CaseData]


class CaptureAnswer(AnyAnswer):
    """`stepper capture`: the calls of all processes, the calls for which a condition held, and the cases that were
    kept.

    `exit_code` is the application's; `troubles` say what could not be kept.
    """

    folder: str
    exit_code: int
    processes: int
    calls: int
    hits: int
    troubles: list[str]
    cases: list[CaseData]


# --- sweeps ---------------------------------------------------------------------------------------------------------


class SweepRowData(TypedDict):
    """An input with which something shows: its number, from 1, and its name: a file, or a SPEC.

    `what` is the kind of finding: a word of break, the name of a rule, values, the kind of an error. `operation` and
    `type` describe the layer. `path` has the loops around it, the outermost first, and `iterations` their iterations.
    `address` names the value to look at in the debugger, or is empty.
    """

    number: int
    name: str
    outcome: SweepOutcome
    what: str
    operation: str
    type: str
    path: list[str]
    iterations: list[int]
    address: str
    text: str


class SweepAnswer(AnyAnswer):
    """`stepper sweep`: what shows with how many inputs, and the inputs with which anything does.

    `places` are the most frequent first, with a histogram of iterations; `loops` say how many iterations each loop ran
    with how many inputs; `unusual` are numbers of inputs that show nothing, but whose loops ran otherwise than most.
    """

    model: str
    file: str
    inputs: int
    done: int
    outcomes: dict[str, int]
    places: list[PlaceCount]
    loops: list[LoopSpread]
    unusual: list[int]
    rows: list[SweepRowData]


# --- export ---------------------------------------------------------------------------------------------------------


class TracedLoop(TypedDict):
    """The loop that was drawn."""

    id: int
    name: str
    type: str
    file: str
    line: int
    path: str


TracedEdge = TypedDict("TracedEdge", {"from": int, "to": int})
TracedEdge.__doc__ = "A back edge by the ids of its Result and its Parameter."


class TracedOutput(TypedDict):
    """An entry of the port map that leads out, and the order in which its pieces are concatenated."""

    output: int | None
    result: int
    role: str
    slicing: Slicing | None
    order: str | None


class TracedSlice(TypedDict):
    """The elements [begin, end) of `extent` that a Parameter got."""

    parameter: int
    axis: int
    begin: int
    end: int
    extent: int


class TracedValue(TypedDict):
    """A value of an iteration in numbers; `numbers` are all of them as text, where they are few."""

    layer: LayerSite
    output: int
    element_type: str
    shape: list[int]
    min: NotRequired[Real | None]
    max: NotRequired[Real | None]
    mean: NotRequired[Real | None]
    std: NotRequired[Real | None]
    nan: NotRequired[int | None]
    inf: int | None
    numbers: str | None
    marks: list[str]
    computed_by: str | None


class TracedIteration(TypedDict):
    """An iteration: its condition after it, what it got, and what it computed."""

    iteration: int
    condition: bool | None
    slices: list[TracedSlice]
    values: list[TracedValue]


class ExportAnswer(AnyAnswer):
    """`stepper export --as json`: the iterations of a run. `left_out` are ranges, both ends included."""

    loop: TracedLoop
    around: list[int]
    iterations: int
    ended: str
    left_out: list[list[int]]
    back_edges: list[TracedEdge]
    outputs: list[TracedOutput]
    trace: list[TracedIteration]


class FigureFile(TypedDict):
    """A file of a figure, and whether it is up to date."""

    name: str
    file: str
    current: bool


class FiguresAnswer(AnyAnswer):
    """`stepper figures`: the files that were written or checked, the page of all figures (`name` is `page`) last."""

    figures: list[FigureFile]


class ListedFigureData(TypedDict):
    """A figure of the list: its files, and the words of its `stepper export` command."""

    name: str
    files: list[str]
    words: list[str]


class FigureListAnswer(AnyAnswer):
    """`stepper figures --list`: the figures of the file."""

    figures: list[ListedFigureData]


# --- lint -----------------------------------------------------------------------------------------------------------


class FindingData(TypedDict):
    """A finding: its rule, where it stands (`line` 0: nowhere), and what it says.

    `loop` is the TensorIterator, Loop or If that it is about, `path` the loops around the layer, `details` the values
    in `text`. In a run, `iterations` are the first iterations in which it shows, of the loops around it. `address`
    names the value to look at in the debugger ("": nothing in particular).
    """

    rule: str
    id: str
    severity: Severity
    file: str
    line: int
    part: Part
    loop: LayerSite | None
    path: list[LayerSite]
    layer: LayerSite | None
    iterations: list[int]
    address: str
    details: dict[str, Any]
    text: str
    means: str
    remedy: str


class LintAnswer(AnyAnswer):
    """`stepper lint`: what is wrong, by file and line."""

    findings: list[FindingData]


class CheckAnswer(AnyAnswer):
    """`stepper check`: what is wrong, most severe first, and in words what was looked for in the run."""

    model: str
    findings: list[FindingData]
    checked: list[str]


class RuleData(TypedDict):
    """A rule. `says` is the sentence of a finding. `means` is the consequence in a run. `do` is the fix, and `source`
    the evidence.
    """

    id: str
    name: str
    scope: SubjectKind
    severity: Severity
    says: str
    means: str
    do: str
    source: str
    example: Example | None


class RulesAnswer(AnyAnswer):
    """`stepper lint --rules` and `--explain`: the rules."""

    rules: list[RuleData]


# --- help -----------------------------------------------------------------------------------------------------------


class KeyData(TypedDict):
    """A key of the screen, and its command."""

    keys: list[str]
    command: str
    help: str
    panes: list[str]


class KeysAnswer(AnyAnswer):
    """`stepper help keys`."""

    keys: list[KeyData]


class HelpTopicAnswer(AnyAnswer):
    """`stepper help TOPIC`, and without a topic ("") the list of all."""

    topic: str
    lines: list[str]


# --- debug ----------------------------------------------------------------------------------------------------------


class ValueData(TypedDict):
    """A value at a stop: what it is known by, what computes it, and the tensor; `absent` says why there is none."""

    name: str
    layer: LayerSite | None
    output: int
    origin: str
    value: TensorData | None
    absent: str


class OperationData(TypedDict):
    """An operation with its inputs and outputs; `index` is its place in the order of its graph."""

    layer: LayerSite
    index: int
    inputs: list[ValueData]
    outputs: list[ValueData]
    computed_by: str


class LevelData(TypedDict):
    """A frame of the stack: the model, a loop or an If."""

    depth: int
    kind: str
    name: str
    iteration: int | None
    phase: str


class SliceData(TypedDict):
    """The elements [begin, end) of `extent` along the axis; `count` slices in all."""

    axis: int
    begin: int
    end: int
    extent: int
    count: int


class PortData(TypedDict):
    """An entry of a port map with its values inside and outside; `why` names the rule for the present iteration."""

    direction: Literal["input", "output"]
    role: str
    port: int | None
    line: int
    inner: ValueData
    outer: ValueData | None
    slicing: Slicing | None
    slice: SliceData | None
    why: str


class BackEdgeData(TypedDict):
    """A back edge with what came in, goes out and comes next; `counts`: it has an effect."""

    result: ValueData
    parameter: ValueData
    line: int
    came_in: TensorData | None
    goes_out: TensorData | None
    comes_next: TensorData | None
    marks: list[str]
    counts: bool
    why: str


class ScanData(TypedDict):
    """A concatenated output while it grows; `declared`: its final shape is known from the file alone."""

    output: int
    line: int
    result: str
    axis: int
    order: str
    pieces: int
    shape: list[int] | None
    final_shape: list[int] | None
    declared: bool
    why: str


class TripData(TypedDict):
    """Iterations of a loop: `maximum` null is unlimited, `total` null unknown yet; `condition` is its value now."""

    maximum: int | None
    executed: int
    total: int | None
    origin: str
    ended: str | None
    sentence: str
    condition: bool | None


class LoopNow(TypedDict):
    """A loop at a stop."""

    layer: LayerSite
    trip: TripData
    ports: list[PortData]
    back_edges: list[BackEdgeData]
    scans: list[ScanData]


class BranchNow(TypedDict):
    """A side of an If at a stop."""

    layer: LayerSite
    side: str
    condition: bool
    ports: list[PortData]


class Lines(TypedDict):
    """Keys of every answer of a command: the lines of text that the prompt shows."""

    lines: list[str]


class AttachedAnswer(TypedDict):
    """A command of a breakpoint that was carried out: its answer, and what went wrong, if anything."""

    breakpoint: int
    command: str
    name: str
    answer: dict[str, Any]
    error: str | None


class MovedAnswer(Lines):
    """Commands that move: why the movement ended; `stop` beside the answer says where. `breakpoint_commands` belong to
    the breakpoints at which the run stopped on the way.
    """

    reason: Reason
    breakpoint_commands: NotRequired[list[AttachedAnswer]]


class NotedAnswer(MovedAnswer):
    """`set` and `undo`."""

    notes: list[str]


class BreakPlace(TypedDict):
    """Place of a breakpoint: after an operation, or where an iteration of a body begins or is closed; `path` are the
    layers around it.
    """

    when: Literal["after", "begins", "closed"]
    layer: LayerSite | None
    path: list[LayerSite]


class BreakpointData(TypedDict):
    """A breakpoint: `places` are the first of `place_count`, `commands` are carried out at a stop.

    `need_trust`: the commands came out of a file and are not carried out until the user agrees. `note` is a remark on
    the breakpoint, or empty.
    """

    number: int
    kind: BreakKind
    text: str
    condition: str
    hits: int
    enabled: bool
    places: list[BreakPlace]
    place_count: int
    commands: list[str]
    need_trust: bool
    note: str


class CommandsAnswer(Lines):
    """`commands`: what a breakpoint does when it stops."""

    number: int
    commands: list[str]


class BreakpointAnswer(Lines, BreakpointData):
    """`break`, `log`, `change`."""


class BreakpointsAnswer(Lines):
    """The breakpoints, and the operations in which NaN and Inf are expected."""

    breakpoints: list[BreakpointData]
    exceptions: list[str]


class WatchAnswer(Lines):
    """`watch`: its value as text; of an `expression`, in a `format`."""

    number: int
    text: str
    expression: str
    format: str


class WatchData(TypedDict):
    """A watch, and at how many stops it was read."""

    number: int
    text: str
    format: str
    readings: int


class WatchesAnswer(Lines):
    """`info watches`."""

    watches: list[WatchData]


class ValueAnswer(Lines, TensorData):
    """`print`: a tensor."""

    computed_by: NotRequired[list[str]]


class ScalarAnswer(Lines):
    """`print`: what is no tensor."""

    value: Element
    computed_by: NotRequired[list[str]]


class SeriesValue(TensorData):
    """A value in an iteration."""

    iteration: int


class SeriesAnswer(Lines):
    """`print ADDR@FROM:TO`: every `stride`-th of `total` iterations; `stopped` says why later ones are missing.

    `outer` are the loops around, from the outside inwards, each with its present iteration.
    """

    series: list[SeriesValue]
    outer: list[Enclosure]
    stopped: str
    stride: int
    shown: int
    total: int
    computed_by: NotRequired[list[str]]


class LabelsAnswer(Lines):
    """`labels`."""

    value: str
    labels: int


class StatsAnswer(Lines):
    """`stats`."""

    type: str
    shape: list[int]
    size: int
    min: int | Real | None
    max: int | Real | None
    mean: Real | None
    std: Real | None
    norm: Real | None
    argmin: int | None
    argmax: int | None
    nan: int
    positive_infinity: int
    negative_infinity: int
    zeros: int
    subnormals: int


class MomentsAnswer(Lines):
    """`find`."""

    moments: list[FoundMoment]
    asked: int
    more: bool
    stopped: str
    failures: int
    failure: str


class WhereAnswer(Lines):
    """`where`."""

    levels: list[LevelData]
    branch: str


class FrameAnswer(Lines):
    """`up`, `down` and `frame`."""

    depth: int
    place: str


class ListedOperation(TypedDict):
    """An operation of the graph; `next`: it comes next."""

    index: int
    layer: LayerSite
    next: bool
    computed_by: NotRequired[str]


class ListAnswer(Lines):
    """`list`."""

    operations: list[ListedOperation]


class ExplainAnswer(Lines):
    """`explain`: all that a stop shows; the outputs of the model at the end of the run, else null."""

    tick: int
    place: str
    levels: list[LevelData]
    done: OperationData | None
    next: OperationData | None
    loop: LoopNow | None
    branch: BranchNow | None
    outputs: list[TensorData] | None


class ChainPartData(TypedDict):
    """A contribution to an element; in a sum, `share` is the term's part of all magnitudes.

    In a product, `share` is the factor's part of all logarithms. `is_shape`: the contribution is an extent, and `index`
    has the axis.
    """

    name: str
    output: int
    index: list[int] | None
    value: Scalar | None
    role: PartRole
    share: float | None
    is_shape: bool


class ChainLinkData(TypedDict):
    """A link of the path back: the address of an element, its value, the operation that computed it, and its operands.

    `line` is the line of the layer in the file. `parts` are the five largest of the `count` contributions to a
    finite element. `rest` is the share of all others in a sum or product. `is_shape`: the value is an extent.
    `decides`: the value contributes nothing to the link before. It is the condition of this If, or it ended this
    loop. `reference` is the element in the reference; `diverges`: its operands are equal there, so the difference
    begins here.
    """

    address: str
    value: Scalar | None
    operation: str
    reason: str
    is_shape: bool
    decides: str | None
    line: int
    parts: list[ChainPartData]
    count: int
    rest: float | None
    reference: Scalar | None
    diverges: bool


class SourceData(TypedDict):
    """An element that the answer depends on: of an input, a constant, a value that was edited, or a variable.

    `part`: it matters for the number (data), for which element it is (index), or for whether something ran (control).
    """

    kind: Literal["input", "constant", "edit", "variable"]
    name: str
    index: list[int]
    value: Scalar | None
    part: Influence


class SourceExtentData(TypedDict):
    """An extent of a tensor that the answer depends on: the `value` of its shape along an `axis`."""

    kind: Literal["input", "constant", "edit", "variable"]
    name: str
    axis: int
    value: int
    part: Influence


class SourceTensorData(TypedDict):
    """A tensor with elements among the sources: how many matter, how many of them are listed there."""

    kind: Literal["input", "constant", "edit", "variable"]
    name: str
    type: str
    shape: list[int]
    elements: int
    listed: int
    parts: dict[str, int]


class RuleCountData(TypedDict):
    """How often the elements behind operations of a type were found by a method."""

    type: str
    method: str
    count: int


class TrialsData(TypedDict):
    """How many elements of inputs were candidates, were tried in how many runs, and do not matter alone.

    `reason` says why not all were tried.
    """

    candidates: int
    tried: int
    excluded: int
    runs: int
    reason: str


class ProvenanceData(TypedDict):
    """Why a value, a shape, or the number of a loop's iterations is so.

    `complete`: every element is among the sources; else `tensors` names the tensors with more elements than are listed.
    `iterations` and `ended` describe a loop that was asked about. Its trip count or condition may have been
    `set_by_hand` to end it so. `stopped` says why not all was found.
    """

    asked: QuestionKind
    address: str
    type: str
    shape: list[int]
    element: list[int] | None
    value: Scalar | None
    chain: list[ChainLinkData]
    sources: list[SourceData]
    complete: bool
    extents: list[SourceExtentData]
    tensors: list[SourceTensorData]
    iterations: int | None
    ended: EndReason | None
    set_by_hand: bool
    rules: list[RuleCountData]
    operations: int
    kernel_runs: int
    trials: TrialsData
    stopped: str


class UseData(TypedDict):
    """An operation that an element reaches: first at `index`, in so many `elements` of its output.

    `times` counts the iterations in which it does, from `iteration` to `last`.
    """

    operation: str
    iteration: int | None
    index: list[int]
    elements: int
    of: int
    times: int
    last: int | None


class DecisionData(TypedDict):
    """A condition or trip count that an element reaches."""

    what: str
    operation: str
    iteration: int | None


class OutputUseData(TypedDict):
    """An output of the model that an element reaches; of the `elements` the first thousand are in `indices`."""

    name: str
    elements: int
    indices: list[list[int]]


class UsesData(TypedDict):
    """Where an element goes."""

    address: str
    uses: list[UseData]
    decisions: list[DecisionData]
    outputs: list[OutputUseData]
    kernel_runs: int
    stopped: str


class ModelWhyAnswer(ProvenanceData, AnyAnswer):
    """`stepper why`."""

    model: str


class ModelUsesAnswer(UsesData, AnyAnswer):
    """`stepper why --uses`."""

    model: str


class WhyAnswer(Lines):
    """`why`; null for the end of a loop, and for what has no value yet."""

    why: ProvenanceData | None
    sentences: list[str]


class UsesAnswer(Lines):
    """`uses`; `uses` is of an element."""

    sentences: list[str]
    uses: NotRequired[UsesData]


class PortsAnswer(Lines):
    """`info ports`."""

    ports: list[PortData]


class EdgesAnswer(Lines):
    """`info edges`."""

    back_edges: list[BackEdgeData]


class ScansAnswer(Lines):
    """`info scans`."""

    scans: list[ScanData]


class TripAnswer(Lines, TripData):
    """`info trip`."""


class MemoryAnswer(Lines):
    """`info memory`: the snapshots of the history, in bytes."""

    snapshots: int
    bytes: int
    budget: int


class AboutAnswer(Lines):
    """`info`: about what there is something to say."""

    about: list[str]


class MarksAnswer(Lines):
    """`info marks`."""

    marks: dict[str, Mark]


class MarkAnswer(Lines):
    """`mark`."""

    tick: int


class EditData(TypedDict):
    """Change of a value, and its position."""

    tick: int
    text: str


class BranchData(TypedDict):
    """A branch of the run; `present`: the commands move this one."""

    name: str
    tick: int
    place: str
    edited_at: list[int]
    present: bool
    parent: str | None
    parted: int | None
    edits: list[EditData]


class BranchesAnswer(Lines):
    """`branches`, `branch rename`."""

    branches: list[BranchData]


class DeletedAnswer(BranchesAnswer):
    """`branch delete`."""

    deleted: list[str]


class BranchDiffAnswer(Lines):
    """`branch diff`: from `parted` on they may differ (null: they are the same); where they do first, and what differs
    in the rest of the run. `ends` says how each ends.
    """

    a: str
    b: str
    parted: int | None
    place: str
    first: PlaceDifference | None
    computed: PlaceDifference | None
    rows: list[DifferenceRow]
    ends: list[str]
    stopped: str


class MomentData(TypedDict):
    """A baseline: `iterations` of the loops around an iteration, from the outermost inwards; `tick` is where it was
    pinned (null: its end, or it follows now).
    """

    kind: MomentKind
    branch: str
    iterations: list[int]
    tick: int | None


class MomentAnswer(Lines):
    """`A`, `mark A`: what A is, null for nothing."""

    moment: MomentData | None


class ValueDifferenceData(TypedDict):
    """A value now and in the baseline: `different` of `size` elements have other bits, `beyond` exceed the tolerance.

    `rms`, `largest` and `relative` are over pairs of finite elements. `at` is the index of the largest, or of the first
    element that became or was NaN or infinite. For booleans `rms`, `largest` and `relative` are null, and `became_true`
    and `became_false` count elements. For other values the two counts are null.
    """

    name: str
    change: Change
    size: int
    different: int
    beyond: int
    rms: Real | None
    largest: Real | None
    relative: Real | None
    at: list[int]
    mended: int
    broken: int
    became_true: int | None
    became_false: int | None


class OperationDifferenceData(ValueDifferenceData):
    """An operation that has run, by its place in the order of execution."""

    index: int


class OutputChangeData(ValueDifferenceData):
    """Change of an output of the model. `source` is its value in the loop that gives it.

    `rows` are the slices that an iteration each gives, as far as both have them; null for another output.
    """

    source: str | None
    rows: int | None
    different_rows: int | None
    first_iteration: int | None


class DiffAnswer(Lines):
    """`diff`: how the values of now differ from a baseline; `problem` says why it has no values here.

    `outputs` are the outputs of the model at the end, if the baseline is another branch.
    """

    moment: MomentData
    iteration: int | None
    reference: str
    problem: str
    operations: list[OperationDifferenceData]
    carried: list[ValueDifferenceData]
    outputs: list[OutputChangeData] | None


class SaveAnswer(Lines):
    """`save`."""

    file: str
    shape: list[int]


class FileAnswer(Lines):
    """A file was written."""

    file: str


class HistoryAnswer(Lines):
    """`history`."""

    commands: list[str]


class CompletionData(TypedDict):
    """Completion of a line: all of it, the new text, its kind, and for a value its type and numbers."""

    line: str
    word: str
    what: str
    type: str
    value: str


class CompleteAnswer(Lines):
    """`complete`."""

    completions: list[CompletionData]


class TopicAnswer(Lines):
    """`help addresses` and the like."""

    topic: str


class CommandHelp(TypedDict):
    """A command: its names, how it is written, what it does."""

    name: str
    abbreviations: list[str]
    usage: str
    help: str


class HelpAnswer(Lines):
    """`help`."""

    commands: list[CommandHelp]


class CommandAnswer(AnyAnswer):
    """A line of `stepper debug --json`: a command as it was written, its answer, and where the run stands after it.
    `name` is the command's full name, "" of an empty line; the shape of `answer` follows from it.
    """

    command: str
    name: str
    answer: dict[str, Any]
    stop: StopData


class CommandFailed(AnyAnswer):
    """A line of `stepper debug --json`: a command that failed; a session continues, a script ends. `input_line` is the
    line of a pipe.
    """

    command: str
    input_line: int | None
    error: ErrorData
    stop: StopData


class LogLineData(TypedDict):
    """Line of a logpoint: its text, its number, and the tick."""

    text: str
    breakpoint: int
    tick: int


class LogAnswer(AnyAnswer):
    """A line of `stepper debug --json`: a logpoint wrote something."""

    log: LogLineData


ANSWERS: Final[Mapping[str, tuple[Any, ...]]] = MappingProxyType({
    "run": (RunAnswer, BreakAnswer),
    "inspect": (InspectAnswer,),
    "print": (PrintAnswer,),
    "find": (FindAnswer, NonFiniteAnswer),
    "lint": (LintAnswer, RulesAnswer),
    "check": (CheckAnswer,),
    "why": (ModelWhyAnswer, ModelUsesAnswer),
    "compare": (CompareAnswer,),
    "passes": (PassesAnswer,),
    "hunt": (HuntAnswer, FaultCasesAnswer),
    "reduce": (ReduceAnswer,),
    "fix": (FixCommandAnswer, HealCommandAnswer),
    "capture": (CaptureAnswer,),
    "cases": (CasesAnswer,),
    "sweep": (SweepAnswer,),
    "export": (ExportAnswer,),
    "figures": (FiguresAnswer, FigureListAnswer),
    "help": (KeysAnswer, HelpTopicAnswer),
    "debug": (CommandAnswer, CommandFailed, LogAnswer),
})  # fmt: skip
"""By command of the command line: what it may answer with --json; or an ErrorAnswer."""

_MOVES: Final = (
    "next step finish iter continue until run-to first last reverse-next reverse-step reverse-finish reverse-continue "
    "to-anomaly reverse-to-anomaly goto"
)

DEBUG_ANSWERS: Final[Mapping[str, tuple[Any, ...]]] = MappingProxyType({
    "": (Lines,),
    **dict.fromkeys(_MOVES.split(), (MovedAnswer,)),
    **dict.fromkeys(("set", "undo"), (NotedAnswer, MovedAnswer)),
    "branch": (MovedAnswer, BranchesAnswer, DeletedAnswer, BranchDiffAnswer),
    **dict.fromkeys(("break", "log", "change"), (BreakpointAnswer,)),
    **dict.fromkeys(("delete", "enable", "disable", "trust"), (BreakpointsAnswer,)),
    **dict.fromkeys(("ignore", "except", "unwatch", "source", "quit"), (Lines,)),
    "commands": (CommandsAnswer, Lines),
    "watch": (WatchAnswer,),
    "display": (WatchAnswer, WatchesAnswer),
    "print": (ValueAnswer, ScalarAnswer, SeriesAnswer),
    "labels": (LabelsAnswer,),
    "stats": (StatsAnswer,),
    "find": (MomentsAnswer,),
    "where": (WhereAnswer, UsesAnswer),
    **dict.fromkeys(("up", "down", "frame"), (FrameAnswer,)),
    "list": (ListAnswer,),
    "explain": (ExplainAnswer,),
    "why": (WhyAnswer, UsesAnswer),
    "uses": (UsesAnswer,),
    "info": (BreakpointsAnswer, WatchesAnswer, PortsAnswer, EdgesAnswer, ScansAnswer, TripAnswer, MemoryAnswer,
             MarksAnswer, AboutAnswer),
    "mark": (MarkAnswer, MomentAnswer),
    "A": (MomentAnswer,),
    "diff": (DiffAnswer,),
    "branches": (BranchesAnswer,),
    "save": (SaveAnswer,),
    "session": (FileAnswer, MovedAnswer),
    "history": (HistoryAnswer, FileAnswer),
    "complete": (CompleteAnswer,),
    "help": (HelpAnswer, TopicAnswer),
})  # fmt: skip
"""By command of the debugger: what it may answer. A command that is paused answers as one that moves."""
