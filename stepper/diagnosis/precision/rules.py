"""Rules of a run in fewer bits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import cached_property
from typing import Any, Final

from stepper.diagnosis.check.subject import RunFindings, RunPlace, shown
from stepper.diagnosis.precision.narrowing import (
    Harm,
    LayerKey,
    Loss,
    Narrowing,
    Outcome,
    Parting,
    SideBySide,
    Trials,
    layer_key,
    smallest,
    walk,
)
from stepper.diagnosis.rule import found_by
from stepper.element_types import limits
from stepper.ir.model import LayerSite, layer_site

_SOURCE: Final = "IEEE 754; OpenVINO, inference precision"


class NarrowRun:
    """A model in fewer bits: what becomes of its outputs, and what has to stay in f32 for them to be as they were.

    `allowed` is how far an output may be off, relative to its norm.
    """

    def __init__(self, trials: Trials, allowed: float) -> None:
        self.trials, self.allowed = trials, allowed

    @property
    def narrowing(self) -> Narrowing:
        """How it computes."""
        return self.trials.narrowing

    @cached_property
    def outcome(self) -> Outcome:
        """Result with everything in fewer bits."""
        return self.trials.run(())

    @property
    def is_broken(self) -> bool:
        """True if the plain run has outputs, and some are off by more than is allowed."""
        return self.trials.plain is not None and self.outcome.error > self.allowed

    @cached_property
    def lockstep(self) -> SideBySide:
        """Both runs side by side."""
        trials = self.trials
        return walk(trials.machine(), trials.narrowed(()), self.allowed, lambda: trials.in_time)

    @cached_property
    def is_mended(self) -> bool:
        """True if it is not broken with all that can stay in f32 in f32: OpenVINO converts the ports of bodies."""
        return self.trials.run(self.trials.candidates).error <= self.allowed

    @cached_property
    def port(self) -> Parting | None:
        """The first value that comes into a body and is harmed by that alone."""
        trials = self.trials
        narrow = trials.narrowed(frozenset(trials.candidates))
        found = walk(trials.machine(), narrow, self.allowed, lambda: trials.in_time, self.narrowing.dtype)
        ports = [one for one in found.partings if one.layer.type == "Parameter"]
        grave = [one for one in ports if one.harm in (Harm.OVERFLOW, Harm.LOSS)]
        return next(iter(grave or ports or found.partings), None)

    @cached_property
    def kept(self) -> tuple[tuple[LayerKey, ...], bool]:
        """The smallest set to leave in f32, in the order of the file, and True if each of its members is needed.

        It is empty where no set mends it.
        """
        if not self.is_mended:
            return (), True
        return smallest(
            tuple(self.trials.candidates),
            lambda some: self.trials.run(some).error <= self.allowed,
            lambda: self.trials.in_time,
        )

    @cached_property
    def culprit(self) -> Parting | None:
        """The first result among those to leave in f32 that fewer bits harm."""
        found = []
        for key in self.kept[0]:
            reader = layer_key(self.trials.readers(key))
            harms = [self.lockstep.first(reader, harm) for harm in (Harm.OVERFLOW, Harm.LOSS, Harm.OTHER)]
            if not any(harms):
                harms.append(self.lockstep.first(reader, Harm.UNDERFLOW))
            found += [one for one in harms if one is not None]
        return min(found, key=lambda one: (one.tick, list(Harm).index(one.harm)), default=None)

    def sites(self) -> tuple[LayerSite, ...]:
        """Return the layers to leave in f32."""
        file = str(self.trials.compiled.model.path)
        return tuple(layer_site(self.trials.candidates[key], file) for key in self.kept[0])


def _place(run: NarrowRun, one: Parting) -> RunPlace:
    layer = layer_site(one.layer, str(run.trials.compiled.model.path))
    loops = [site for site in one.path if site.type in ("Loop", "TensorIterator")]
    address = f"{layer.name}{''.join(f'@{number}' for number in one.iterations[-1:])}"
    return RunPlace(layer, one.path, one.iterations, address, one.tick, loops[-1] if loops else None)


def _details(run: NarrowRun, one: Parting) -> dict[str, Any]:
    return {
        "precision": str(run.narrowing),
        "layer": layer_site(one.layer, str(run.trials.compiled.model.path)),
        "index": one.element,
        "plain": one.plain,
        "narrow": one.narrow,
        "error": one.error,
        **_worst(run.outcome),
    }


def _worst(outcome: Outcome) -> dict[str, Any]:
    """Return the output that is off the most; that of a run that fails is none."""
    worst = max(outcome.losses or (Loss("", math.inf),), key=lambda one: one.error)
    return {"output": worst.output, "loss": worst.error}


def _of_culprit(run: NarrowRun, *harms: Harm) -> Iterator[Parting]:
    if run.is_broken and run.is_mended and run.culprit is not None and run.culprit.harm in harms:
        yield run.culprit


@found_by("leaves-range")
def leaves_range(run: NarrowRun) -> RunFindings:
    """The first number that is needed and too large."""
    for one in _of_culprit(run, Harm.OVERFLOW):
        dtype = run.narrowing.dtype
        largest = math.inf if dtype is None else limits(dtype).largest
        yield shown(_place(run, one), largest=largest, **_details(run, one))


@found_by("becomes-zero")
def becomes_zero(run: NarrowRun) -> RunFindings:
    """The first number that is needed and too small."""
    for one in _of_culprit(run, Harm.UNDERFLOW, Harm.LOSS):
        dtype = run.narrowing.dtype
        if one.narrow == 0 and one.plain != 0 and dtype is not None:
            least = limits(dtype).least
            yield shown(_place(run, one), least=least, **_details(run, one))


@found_by("loses-digits")
def loses_digits(run: NarrowRun) -> RunFindings:
    """The first result that is needed and further off than is allowed, or another whole number."""
    for one in _of_culprit(run, Harm.LOSS, Harm.OTHER):
        if run.narrowing.dtype is None or not (one.narrow == 0 and one.plain != 0):
            yield shown(_place(run, one), **_details(run, one))


@found_by("goes-another-way")
def goes_another_way(run: NarrowRun) -> RunFindings:
    """A loop of another number of iterations, or another side of an If."""
    other = run.lockstep.other_way if run.is_broken else None
    if other is not None:
        place = RunPlace(other.layer, other.path, other.iterations, "", other.tick, other.layer)
        yield shown(
            place,
            precision=str(run.narrowing),
            loop=other.layer,
            **_worst(run.outcome),
        )


@found_by("keep-in-f32")
def keep_in_f32(run: NarrowRun) -> RunFindings:
    """The smallest set of operations, or of weights, that mends it."""
    if run.is_broken and run.is_mended:
        members, is_least = run.kept
        yield shown(
            RunPlace(None),
            precision=str(run.narrowing),
            count=len(members),
            total=len(run.trials.candidates),
            things="operations" if run.narrowing.dtype is not None else "weights",
            most=run.trials.run(members).error,
            layers=run.sites(),
            doubt="; without any one of them it does not hold" if is_least else ", and a smaller set may do",
        )


@found_by("no-set-in-f32-mends-it")
def no_set_mends(run: NarrowRun) -> RunFindings:
    """A value that goes into a body, or round a back edge, and is not what it was."""
    if run.is_broken and not run.is_mended and run.port is not None:
        yield shown(_place(run, run.port), **_details(run, run.port))


@found_by("holds-in-fewer-bits")
def holds(run: NarrowRun) -> RunFindings:
    """Nothing is lost."""
    if run.trials.plain is not None and not run.is_broken:
        yield shown(RunPlace(None), precision=str(run.narrowing), most=run.outcome.error)
