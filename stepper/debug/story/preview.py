"""A story told with the values of another branch: what becomes of its path after an edit, link by link."""

from __future__ import annotations

from msgspec.structs import replace

from stepper.debug.causes.cause import Location
from stepper.debug.story.facts import LinkRole, Story, StoryLink, is_bad
from stepper.debug.story.histories import ElementHistories, HistoryWish, Path
from stepper.debug.timeline import Timeline
from stepper.engine.program import CompiledModel, Program


def previewed(timeline: Timeline, story: Story) -> Story:
    """Return the same rows, columns and links with the values that they have in the run as it is edited now.

    Each link keeps the value that it had as `before`, and says nothing of its operands, which may be others now.
    """
    compiled = timeline.machine.compiled
    programs = [_program_of(compiled, link.location) for link in story.links]
    slots = [
        program.slot(link.location.operation.id, link.location.output or 0)
        if link.location.operation is not None
        else -1
        for program, link in zip(programs, story.links, strict=True)
    ]
    histories = ElementHistories(timeline)
    paths = [column.path for column in story.columns if column.path]
    wanted = [
        None if link.element is None else HistoryWish(program, slot, link.element, link.is_shape)
        for program, slot, link in zip(programs, slots, story.links, strict=True)
    ]
    inside = [one for one in wanted if one is not None and one.program.path]
    if paths and inside:
        histories.record(inside, story.entered, paths)
    links = []
    for one, link in zip(wanted, story.links, strict=True):
        values = () if one is None else histories.of(one)
        links.append(_told(link, dict(zip(histories.iterations, values, strict=True)), story.columns[link.column].path))
    rows = list(story.rows)
    for program, slot, link in zip(programs, slots, story.links, strict=True):
        row = rows[link.row]
        if row.element is not None:
            rows[link.row] = replace(row, history=histories.of(HistoryWish(program, slot, row.element, row.is_shape)))
    return replace(
        story,
        rows=tuple(rows),
        links=tuple(links),
        iterations=tuple(histories.iterations),
        total=histories.total,
        counts_all=histories.counts_all,
        is_preview=True,
    )


def _told(link: StoryLink, values: dict[Path, str | float | bool | int | None], path: Path) -> StoryLink:
    now = next((value for at, value in values.items() if at[: len(path)] == path), link.value)
    is_mended = link.role is LinkRole.BORN and not is_bad(now)
    role = LinkRole.PATH if is_mended else link.role
    return replace(
        link,
        value=now,
        before=link.value,
        role=role,
        operands=(),
        count=0,
        formula="",
        limit=None,
        share=None,
        groups=(),
    )


def _slot_of(program: Program, location: Location) -> int:
    assert location.operation is not None, "a link is of one"
    return program.slot(location.operation.id, location.output or 0)


def _program_of(compiled: CompiledModel, location: Location) -> Program:
    path = tuple(place.layer.id for place in location.path)
    roles = tuple(place.body for place in location.path)
    found = [one for one in compiled.programs if tuple(layer.id for layer in one.path) == path]
    return next(one for one in found if _roles(one) == roles or len(found) == 1)


def _roles(program: Program) -> tuple[str, ...]:
    """Return which body of each layer around it a program is in."""
    if not program.path:
        return ()
    last = next((body.role for body in program.path[-1].bodies if body.graph is program.graph), "body")
    return (*("body" for _ in program.path[:-1]), last)
