"""Searching operations, loops and values over all levels: the frame that is looked at, those around it, nested bodies.

One that is in a frame of the stack is selected there. One that does not run now cannot be: the layer that has it in its
body is selected, and run to, break and watch mean the one that was found.
"""

from __future__ import annotations

from stepper.engine.program import CompiledModel, Program
from stepper.errors import UsageError
from stepper.query.known_names import Hit, found_in_all_levels
from tui.actions.registry import action
from tui.application import Application
from tui.paint.names import carried_name, operation_names
from tui.paint.rows import printable


@action(
    "search",
    syntax="TEXT",
    help="select the next operation, loop or value, of any level, whose name or type has the text",
)
def _search(app: Application, text: str) -> None:
    if not text:
        raise UsageError("what to search is missing")
    is_new, app.sought = app.sought != text, text
    _search_on(app, 1, is_new=is_new)


@action("search-next", help="the next operation found")
def _search_next(app: Application, _text: str) -> None:
    _search_on(app, 1)


@action("search-previous", help="the operation found before")
def _search_previous(app: Application, _text: str) -> None:
    _search_on(app, -1)


def _search_on(app: Application, direction: int, *, is_new: bool = False) -> None:
    if not app.sought:
        raise UsageError("nothing was searched yet; type search TEXT")
    found = found_in_all_levels(app.driver.compiled, app.sought)
    if not found:
        raise UsageError(f"nothing in the model has '{app.sought}' in its name or type")
    exact = [hit for hit in found if app.sought in (_name(hit), hit.layer.name, hit.result)]
    if is_new and exact:  # those of that very name come before longer ones
        number = found.index(exact[_following(app, exact, direction)])
    else:
        number = _following(app, found, direction)
    _show(app, found[number], f"{number + 1} of {len(found)}")


def _following(app: Application, found: list[Hit], direction: int) -> int:
    """Return the number of the one that comes next after what is shown; from the innermost level it goes on outside."""
    order = {id(program): place for place, program in enumerate(_levels(app.driver.compiled))}
    places = [(order[id(hit.program)], hit.index) for hit in found]
    present = next((place for hit, place in zip(found, places, strict=True) if _address(app, hit) == app.found), None)
    if present is None:
        frame, cursor = app.state.frame, app.state.cursor
        present = (0, -1) if frame is None or cursor is None else (order[id(frame.program)], cursor)
    if direction > 0:
        return next((number for number, place in enumerate(places) if place > present), 0)
    earlier = [number for number, place in enumerate(places) if place < present]
    return earlier[-1] if earlier else len(places) - 1


def _levels(compiled: CompiledModel) -> list[Program]:
    return sorted(compiled.programs, key=lambda program: len(program.path))


def _name(hit: Hit) -> str:
    return operation_names(hit.program)[hit.index] if hit.index >= 0 else carried_name(hit.layer)


def _address(app: Application, hit: Hit) -> str:
    return hit.address(app.driver.compiled)


def _show(app: Application, hit: Hit, which: str) -> None:
    name = _name(hit)
    frames = app.state.frames
    depth = next((depth for depth, frame in enumerate(frames) if frame.program is hit.program), None)
    into = "t goes into its first iteration" if hit.layer.is_loop else "t runs to it"
    if hit.index < 0 and not hit.program.path:
        into = f":open {_address(app, hit)} shows it"
    if hit.result:
        name += f", the output {printable(hit.result)}"
    pane = app.focused_pane
    app.found_from = "" if pane is None else pane.chosen_address
    if depth is not None and hit.index >= 0:
        app.look_at(depth, hit.index)
        if app.found_from:
            app.found = _address(app, hit)
        app.say(f"{which}: {name}; {into}")
        return
    around = next(
        (depth for depth in reversed(range(len(frames))) if _is_inside(hit.program, frames[depth].program)), 0
    )
    if frames and depth is None:
        program, path = frames[around].program, hit.program.path
        step = path[len(program.path)].id if len(path) > len(program.path) else None
        holder = next((index for index, layer in enumerate(program.layers) if layer.id == step), None)
        if holder is not None:
            app.look_at(around, holder)
    app.found = _address(app, hit)
    levels = " › ".join(printable(step.name) for step in hit.program.path)
    where = f"in the body of {levels}" if levels else "in the model's own graph"
    where += "" if depth is not None else ", which does not run now"
    what = "" if hit.index >= 0 else " carried or given" if levels else ", an input,"
    app.say(f"{which}: {name}{what} {where}; {into}")


def _is_inside(program: Program, around: Program) -> bool:
    return program.path[: len(around.path)] == around.path
