"""A straight body as one Python function: slots are its locals and each operation is a line of it.

It makes what `iterations.iterate_on` otherwise makes by walking tuples, in less time. The text is made of numbers of
slots alone: nothing of the file is in it. The line that an exception names is the operation that failed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum, auto
from types import CodeType
from typing import Any, Final, NamedTuple

import numpy as np

from stepper.errors import KernelError
from stepper.ops.operands import ensure_allocatable

NUMPY_FALSE: Final = np.False_
"""What comparisons of numpy's scalars give where they do not hold; there is one such object."""

MANY_ELEMENTS: Final = 2**20
"""Carried values of more elements than these are looked at in each iteration, where the body can make them grow."""

WORTH_IT: Final = 1000
"""Iterations after which the function is written: in about as many it saves what compiling it takes."""


class Stage(Enum):
    """Part of an iteration that a line of the function belongs to."""

    BEGIN = auto()
    OPERATION = auto()
    CONDITION = auto()
    PIECES = auto()
    WATCH = auto()


Slots = tuple[Any, int | None, int | None]
"""The slots of an operation: (a, b, out) as in `Step`."""


class Moves(NamedTuple):
    """Moves of one iteration beside its operations, as numbers of slots.

    `carried` are (Parameter, Result), written one after the other or, `at_once`,
    after all are read; `bounded` are Parameters whose size is looked at, `cast` those that keep their type. `sliced`
    are (Parameter, axis), `numbered` those that get the iteration's number. `condition` is the slot of the body's
    condition. `shaped` are the slots of the pieces, `handed` those that are handed over after the iteration. `watched`:
    after each iteration all values are in the frame, and a watcher is asked. `looked_at` are the slots of a watch that
    is asked only where their values say so (see `ValueWatch`). `views` are the operations, by index, that are made for
    the last iteration alone; each is in front of no other operation than the next of them.
    """

    carried: tuple[tuple[int, int], ...]
    at_once: bool
    bounded: tuple[int, ...]
    cast: tuple[int, ...]
    sliced: tuple[tuple[int, int], ...]
    numbered: tuple[int, ...]
    condition: int | None
    shaped: tuple[int, ...]
    handed: tuple[int, ...]
    watched: bool
    looked_at: tuple[int, ...] | None
    views: tuple[int, ...] = ()


class Straight(NamedTuple):
    """The function, and the stage of each of its lines; for an operation its index, too."""

    call: Callable[..., bool]
    stages: dict[int, tuple[Stage, int]]

    def stage_of(self, error: BaseException) -> tuple[Stage, int] | None:
        """Return where in the function an exception was raised; None for one that comes from elsewhere."""
        trace = error.__traceback__
        code: CodeType = self.call.__code__
        while trace is not None and trace.tb_frame.f_code is not code:
            trace = trace.tb_next
        return None if trace is None else self.stages.get(trace.tb_lineno)


class Forms:
    """The functions of one body, made once it has run for long enough; and how many iterations were made without.

    The text of a function follows from `steps`, the slots of the operations, and from its `Moves` alone.
    """

    def __init__(self, steps: Sequence[Slots]) -> None:
        self._steps = tuple(steps)
        self._made: dict[Moves, Straight] = {}
        self._walked = 0

    def walked(self, iterations: int) -> None:
        """Count iterations that were made without a function."""
        self._walked += iterations

    def until_worth_it(self) -> int:
        """Return how many iterations are made without a function before one is written."""
        return max(0, WORTH_IT - self._walked)

    def form(self, moves: Moves) -> Straight:
        """Return the function for these moves, compiled when it is first asked for.

        It is called with the frame, the first iteration and the last, the caller, the moves of an iteration, the shapes
        of the pieces, the watch, the phase between iterations, and the functions: of the steps, the types of the casts,
        the slices as (source, begin, step, size), those of the numbers and those to hand over to. It returns None if
        all iterations were made, or fewer since the caller is to pause; True if the watch stopped it; False where an
        iteration stands before its close.
        """
        if moves not in self._made:
            text, stages = _text(self._steps, moves)
            names: dict[str, Any] = {"refuse": refuse_giant, "enough": _enough, "no": NUMPY_FALSE}
            exec(compile(text, "<straight body>", "exec"), names)  # made of numbers of slots alone
            self._made[moves] = Straight(names["iterate"], stages)
        return self._made[moves]


def ensure_enough(results: Sequence[Any], count: int) -> None:
    """Raise KernelError where an operation gives fewer tensors than the file has output ports for it."""
    if len(results) < count:
        raise KernelError(f"gives {len(results)} outputs, but the file has {count} output ports for it")


def _enough(results: Sequence[Any], count: int) -> Sequence[Any]:
    ensure_enough(results, count)
    return results[:count]


def refuse_giant(value: Any) -> None:
    """Raise TensorTooLarge for a carried value above the limit; asked about those of more than MANY_ELEMENTS."""
    ensure_allocatable(value.shape, value.dtype)


def _text(steps: Sequence[Slots], moves: Moves) -> tuple[str, dict[int, tuple[Stage, int]]]:
    written = _written(steps, moves)
    lines = [
        "def iterate(frame, first, last, caller, cost, shapes, watch, between, F, D, S, N, H):",
        "    V, activation = frame.values, frame.activation",
        *_unpacked("f", len(steps), "F"),
        *_unpacked("d", len(moves.cast), "D"),
        *(f"    s{at}, b{at}, g{at}, z{at} = S[{at}]" for at in range(len(moves.sliced))),
        *_unpacked("n", len(moves.numbered), "N"),
        *_unpacked("p", len(moves.shaped), "shapes"),
        *_unpacked("h", len(moves.handed), "H"),
        *(f"    v{slot} = V[{slot}]" for slot in sorted(written | _read(steps, moves))),
        *(["    read, judged = watch.read, watch.judged"] if moves.looked_at is not None else ()),
        "    if watch is not None:" if moves.watched else "    try:",
        "        for iteration in range(first, last + 1):",
        "            if caller.pause_requested: return None",
    ]
    stages: dict[int, tuple[Stage, int]] = {}

    def add(line: str, stage: Stage, index: int = 0) -> None:
        lines.append("            " + line)
        stages[len(lines)] = (stage, index)

    for line in _begin(moves):
        add(line, Stage.BEGIN)
    add("activation.iteration = iteration", Stage.BEGIN)
    for index, step in enumerate(steps):
        if index not in moves.views:
            add(_step(index, step, watched=moves.watched), Stage.OPERATION, index)
    if moves.condition is not None:
        add(f"if not v{moves.condition}: return False", Stage.CONDITION)
    for at, slot in enumerate(moves.shaped):
        add(f"if v{slot}.shape != p{at}: return False", Stage.PIECES)
    for at, slot in enumerate(moves.handed):
        add(f"h{at}(v{slot})", Stage.PIECES)
    if moves.watched:
        add("frame.phase = between", Stage.PIECES)
        add("caller.tick += cost", Stage.PIECES)
        add("if watch(frame): return True", Stage.WATCH)
    else:
        if moves.looked_at is not None:
            given = "".join(f"v{slot}, " for slot in moves.looked_at)
            add(f"due = read(({given}iteration,))", Stage.WATCH)
            add("if due is not no and due is not False and judged(due): return True", Stage.WATCH)
        lines += ["    finally:", *(f"        {_step(index, steps[index], watched=False)}" for index in moves.views)]
        lines += [*(f"        V[{slot}] = v{slot}" for slot in sorted(written)), "        del V"]
    return "\n".join(lines) + "\n", stages


def _unpacked(letter: str, count: int, source: str) -> list[str]:
    return [f"    {', '.join(f'{letter}{at}' for at in range(count))}, = {source}"] if count else []


def _begin(moves: Moves) -> list[str]:
    both = "V[{0}] = v{0} = {1}" if moves.watched else "v{0} = {1}"
    if moves.at_once:
        targets, sources = zip(*((f"v{one}", f"v{other}") for one, other in moves.carried), strict=True)
        lines = [f"{', '.join(targets)}, = {', '.join(sources)},"]
        lines += [f"V[{one}] = v{one}" for one, _ in moves.carried if moves.watched]
    else:
        lines = [both.format(one, f"v{other}") for one, other in moves.carried]
    lines += [f"if v{slot}.size > {MANY_ELEMENTS}: refuse(v{slot})" for slot in moves.bounded]
    lines += [both.format(slot, f"v{slot}.astype(d{at})") for at, slot in enumerate(moves.cast)]
    for at, (slot, axis) in enumerate(moves.sliced):
        lines.append(f"b{at} += g{at}")
        lines.append(both.format(slot, f"s{at}[{':, ' * axis}b{at}:b{at} + z{at}]"))
    return lines + [both.format(slot, f"n{at}(iteration)") for at, slot in enumerate(moves.numbered)]


def _step(index: int, step: Slots, *, watched: bool) -> str:
    inputs, outputs, several = _ports(step)
    call = f"f{index}({', '.join(f'v{slot}' for slot in inputs)})"
    if several:
        call = f"enough({call}, {len(outputs)})"
    targets = ["".join(f"{letter.format(slot)}, " for slot in outputs) for letter in ("V[{}]", "v{}")[not watched :]]
    return " = ".join([*(target if several else target.rstrip(", ") for target in targets if target), call])


def _ports(step: Slots) -> tuple[Sequence[int], Sequence[int], bool]:
    """Return the slots that a step reads, those that it writes, and whether it gives a tuple."""
    a, b, out = step
    if out is not None:
        return (a,) if b is None else (a, b), (out,), False
    inputs, outputs = a
    return (inputs, (outputs,), False) if type(outputs) is int else (inputs, outputs, True)


def _written(steps: Sequence[Slots], moves: Moves) -> set[int]:
    begun = [*(slot for slot, _ in moves.carried), *moves.numbered, *(slot for slot, _ in moves.sliced)]
    return set(begun).union(*(_ports(step)[1] for step in steps))


def _read(steps: Sequence[Slots], moves: Moves) -> set[int]:
    closed = [*(slot for _, slot in moves.carried), *moves.shaped, *moves.handed, *(moves.looked_at or ())]
    condition = [] if moves.condition is None else [moves.condition]
    return set(closed + condition).union(*(_ports(step)[0] for step in steps))
