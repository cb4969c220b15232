"""The words of a repair, written from its facts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from stepper.repair.edit import EditKind
from stepper.repair.healing import HealAnswer
from stepper.repair.repairing import EditFacts, FixAnswer, FixStatus
from stepper.repair.search import SearchProgress
from stepper.repair.solve import texts_of
from stepper.wording import counted

_SENTENCES: Final[Mapping[EditKind, str]] = {
    EditKind.ATTRIBUTE: "{layer}: {subject}={after} instead of {before}",
    EditKind.OPERANDS_EXCHANGED: "{layer}: operands {subject} exchanged",
    EditKind.OPERAND: "{layer}: operand {subject} is '{after}' instead of '{before}'",
    EditKind.USES_EXCHANGED: "'{before}' and '{after}' exchanged wherever they are read",
    EditKind.OPERATION: "{layer}: {after} instead of {before}",
    EditKind.REMOVED: "{layer} left out: '{after}' is read instead",
    EditKind.REPEATED: "{layer} applied twice",
    EditKind.INSERTED: "{after} of '{subject}' inserted{for_reader}",
    EditKind.COMBINED: "{before} of '{subject}' and '{after}' inserted",
    EditKind.CONSTANT: "{layer}: {change}",
    EditKind.SOLVED: "{layer}: {after} {numbers}{solved}",
    EditKind.SOLVED_VALUE: "{layer}: {attribute}{numbers} instead of {before}",
    EditKind.SOLVED_ELEMENT: "{layer}: {element}",
    EditKind.STATE: "Select inserted: '{subject}' where {after}, else '{before}'",
    EditKind.BACK_EDGE: "{loop}: the back edge to '{subject}' carries '{after}'{instead}",
    EditKind.LOOP_INPUT: "{layer}: input '{subject}' is sliced {after}",
    EditKind.LOOP_OUTPUT: "{layer_or_loop}: output '{subject}' is {after}{instead}",
    EditKind.TRIP_COUNT: "{layer}: the trip count is {after}{instead}",
    EditKind.BRANCHES: "{layer}: branches {after}",
    EditKind.TYPE: "{layer}: {after} instead of {before}",
    EditKind.LENGTHS: "{layer}: {after}",
    EditKind.FEEDBACK: "{layer}: reads {after} instead of '{before}'",
    EditKind.REWRITE: "{layer}: {after}",
}
"""A sentence for each kind of edit."""


def edit_text(edit: EditFacts) -> str:
    """Return what an edit changes, with the loop that it is in."""
    loop = str(edit.around[-1]) if edit.around else "model"
    is_port_map = edit.kind is EditKind.LOOP_OUTPUT and bool(edit.around)
    text = _SENTENCES[edit.kind].format(
        layer=edit.layer,
        loop=loop,
        layer_or_loop=loop if is_port_map else edit.layer,
        subject=edit.subject,
        before=edit.before,
        after=edit.after,
        change=_change(edit),
        numbers=texts_of(edit.numbers) if edit.numbers else "?",
        solved=f" on '{edit.subject}'" if edit.subject else f" instead of {edit.before}" if edit.before else "",
        attribute=f"{edit.subject}=" if edit.subject else "",
        element=f"number {edit.numbers[0]:.0f} is {edit.numbers[-1]:.6g}" if edit.numbers else edit.after,
        instead=f" instead of '{edit.before}'" if edit.before else "",
        for_reader=f" before {edit.layer}" if edit.before else "",
    )
    names_loop = edit.kind is EditKind.BACK_EDGE or is_port_map
    return text if not edit.around or names_loop else f"{text} (in {loop})"


def _change(edit: EditFacts) -> str:
    """Return how a constant changes."""
    if edit.before and edit.after:
        return f"{edit.after} instead of {edit.before}{f' ({edit.subject})' if edit.subject else ''}"
    return edit.subject or "another value"


def edits_text(edits: Sequence[EditFacts]) -> str:
    """Return several edits in one line."""
    return "; and ".join(map(edit_text, edits))


def answer_lines(answer: FixAnswer) -> list[str]:
    """Return the report of a repair."""
    if answer.status is FixStatus.AGREE:
        return [f"outputs agree with {answer.reference} already (within {answer.ratio:.2g} of the tolerance)"]
    lines = [_difference(answer)]
    if answer.status is FixStatus.REPAIRED:
        lines += _repairs(answer)
    else:
        lines += _unexplained(answer)
    return lines


def _difference(answer: FixAnswer) -> str:
    outputs = ", ".join(map(str, answer.differing))
    what = f"output {outputs}" if outputs else "the run fails or does not end"
    text = f"outputs differ from {answer.reference}: {what}"
    text += f", relative error {answer.distance:.2g}"
    if answer.loop is not None:
        text += f", first in iteration {answer.iteration} of {answer.loop}"
    return text


def _repairs(answer: FixAnswer) -> list[str]:
    lines = list[str]()
    for index, repair in enumerate(answer.repairs, 1):
        lines.append(f"{index}. {edits_text(repair.edits)}")
        made = f"all {answer.numbers:,} numbers agree (within {repair.ratio:.2g} of the tolerance)"
        if repair.verified:
            made += f"; verified on {counted(repair.verified, 'other input')}"
        lines.append(f"   {made}")
        shown = repair.equivalents[:_MOST_EQUIVALENTS]
        lines += [f"   equal on all inputs tried: {edits_text(one)}" for one in shown]
        if len(repair.equivalents) > len(shown):
            lines.append(f"   and {len(repair.equivalents) - len(shown)} more with equal outputs")
    if answer.refuted:
        lines.append(f"{counted(answer.refuted, 'other edit')} agreed on the given inputs and differed on other inputs")
    lines.append(_effort(answer))
    return lines


_MOST_EQUIVALENTS = 3


def _unexplained(answer: FixAnswer) -> list[str]:
    pairs = f" and {counted(answer.pairs, 'pair')}" if answer.pairs else ""
    lines = [f"none of {counted(answer.tried, 'single edit')}{pairs} explains the difference"]
    lines += [f"closest: {edits_text(one.edits)}: relative error {one.distance:.2g}" for one in answer.closest]
    return [*lines, _effort(answer)]


def _effort(answer: FixAnswer) -> str:
    end = "interrupted" if answer.is_interrupted else "" if answer.is_complete else "time is up"
    text = f"compared {answer.tried:,} of {counted(answer.singles, 'edit')} in {answer.seconds:.1f} s"
    return f"{text}; {end}" if end else text


def heal_lines(answer: HealAnswer) -> list[str]:
    """Return the report of rewrites without a reference."""
    if not answer.iterations:
        return ["nothing to heal: no output and no carried value has NaN or Inf"]
    lines = [f"{counted(answer.iterations, 'iteration')} with NaN or Inf in an output or a carried value"]
    for index, heal in enumerate(answer.heals, 1):
        lines.append(f"{index}. {edit_text(heal.edit)}")
        unchanged = f"outputs of {counted(heal.healthy, 'healthy input')} change by at most {heal.ulp} ulp"
        unchanged = unchanged if heal.healthy else "no healthy input was found to compare"
        lines.append(f"   heals {heal.healed} of {counted(heal.iterations, 'iteration')}; {unchanged}")
    if answer.refused:
        lines.append(f"{counted(answer.refused, 'rewrite')} would heal the run and change healthy outputs: refused")
    if not answer.heals:
        lines.append(f"none of {counted(answer.tried, 'rewrite')} heals the run")
    return lines


def progress_text(progress: SearchProgress) -> str:
    """Return the line of progress."""
    found = f", {counted(progress.found, 'repair')}" if progress.found else ""
    return f"tried {progress.tried:,} of {progress.count:,}{found}, {progress.seconds:.0f} s"
