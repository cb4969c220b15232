"""Actions of the sheet: rows, order, search, the cursor; and what it is compared with."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from stepper.commands.command_completion import Completion
from stepper.debug.debugger import Debugger
from stepper.debug.provenance.question import forward_address
from stepper.debug.story.story_facts import StoryQuestion
from stepper.debug.story.story_texts import story_lines
from stepper.debug.table.row_sets import RowSet, about_column
from stepper.errors import UsageError
from stepper.records import Record
from stepper.tensors.tolerances import Tolerances
from stepper.wording import counted
from stepper_tui.actions.values import subject_of
from stepper_tui.paint.rows import layer_name
from stepper_tui.registry import WAYS, action, integer
from stepper_tui.screens.sheet.headline import count_of, loop_facts
from stepper_tui.screens.sheet.model import SheetModel
from stepper_tui.state import CompareWithin

if TYPE_CHECKING:
    from stepper_tui.app import StepperApp

_FAR = 2**40
_MOST_COPIED = 2**21
"""Letters of rows that are copied."""


def _model(app: StepperApp) -> SheetModel:
    """Return the model of the sheet, which comes to the front."""
    return app.sheet().model


@action(
    "sheet",
    syntax="[ADDR, ...]",
    help="values over the iterations: x, P, h[0,:8]@10:20, rms(*); else what the loop carries",
)
def _sheet(app: StepperApp, text: str) -> None:
    app.open_sheet(text)


@action("rows", syntax=f"[{'|'.join(RowSet)}]", help="choose the rows of the sheet; without a word the next set")
def _rows(app: StepperApp, text: str) -> None:
    if text and text not in list(RowSet):
        raise UsageError(f"'{text}' is no set of rows; there are {', '.join(RowSet)}")
    if text:
        _model(app).show_rows(RowSet(text))
    else:
        _model(app).show_next_rows()


@action("tree", help="the loops, Ifs and bodies of the model, to go to one")
def _tree(app: StepperApp, _text: str) -> None:
    picks = [
        Completion(f"body {k}", "  " * depth + name, what=what) for k, (depth, name, what) in enumerate(_bodies(app))
    ]
    app.front.pick("loops and branches", picks)


def _bodies(app: StepperApp) -> Iterator[tuple[int, str, str]]:
    """Yield how deep each graph of the model is, its name, and what is known of its runs."""
    compiled, overview = app.driver.compiled, app.state.overview
    for program in compiled.programs:
        if not program.path:
            yield 0, app.state.model, f"{counted(len(program.operations), 'operation')}"
            continue
        layer = program.path[-1]
        facts = None if overview is None or not layer.is_loop else loop_facts(overview, compiled, program)
        ran = "" if facts is None else "".join(text for text, _ in count_of(facts)) + "   "
        role = next(body.role for body in layer.bodies if body.graph is program.graph)
        side = "" if layer.is_loop else f" {role.removesuffix('_body')} side"
        yield (
            len(program.path),
            f"{layer_name(layer)}{side}",
            f"{ran}{layer.type}, {counted(len(program.operations), 'operation')}",
        )


@action("body", syntax="N", help="the graph of this number in the tree")
def _body(app: StepperApp, text: str) -> None:
    programs = app.driver.compiled.programs
    if not text.isdecimal() or int(text) >= len(programs):
        raise UsageError(f"a number below {len(programs)} is expected")
    _model(app).go_to_body(programs[int(text)])


@action("sheet-move", syntax="WAY [N]", help="another cell of the sheet: up, down, left, right, page, first, last, ...")
def _move(app: StepperApp, text: str) -> None:
    model = _model(app)
    word, _, count = text.partition(" ")
    times = integer(count) if count else 1
    page = max(model.room - 1, 1)
    ends = {"home": (0, -_FAR), "end": (0, _FAR), "first": (-_FAR, 0), "last": (_FAR, 0)}
    if word in WAYS:
        model.move(WAYS[word][0] * times, WAYS[word][1] * times)
    elif word in ("page", "-page"):
        model.move((page if word == "page" else -page) * times, 0)
    elif word in ends:
        model.move(*ends[word])
    else:
        raise UsageError(f"'{word}' is not a direction; there are {', '.join((*WAYS, 'page', '-page', *ends))}")


@action("sheet-sort", syntax="down|up [ROW]", help="order the iterations by a row; once more: as they ran")
def _sort(app: StepperApp, text: str) -> None:
    word, _, name = text.partition(" ")
    if word not in ("down", "up"):
        raise UsageError("sort down or up")
    model, row = _model(app), None
    if name.strip():
        view = model.view
        names = [] if view is None else [one.name for one in view.columns]
        if name.strip() not in names:
            raise UsageError(f"there is no row '{name.strip()}'")
        row = names.index(name.strip())
    model.sort(descending=word == "down", row=row)


@action(
    "filter",
    syntax="[CONDITION|off]",
    help="only the iterations where it holds: > 5, abs > 10, x[0] < 2, nan; off: all of them",
)
def _filter(app: StepperApp, text: str) -> None:
    model = _model(app)
    column = model.at
    model.filter(text if column is None else about_column(text, column.name))


@action("filter-prompt", help="type the filter of the sheet")
def _filter_prompt(app: StepperApp, _text: str) -> None:
    app.open_prompt(f"filter {_model(app).level.filter}")


@action(
    "search", syntax="TEXT", help="go to an operation or loop by name or type, or to the next iteration of a condition"
)
def _search(app: StepperApp, text: str) -> None:
    _model(app).search(text)


@action("search-next", help="the next one found")
def _search_next(app: StepperApp, _text: str) -> None:
    _model(app).search("")


@action("search-previous", help="the one found before")
def _search_previous(app: StepperApp, _text: str) -> None:
    _model(app).search("", backward=True)


@action("sheet-finding", syntax="next|previous", help="the next finding of the run or of the file, or the one before")
def _finding(app: StepperApp, text: str) -> None:
    _model(app).seek_finding(backward=text == "previous")


@action("sheet-open", help="go into the loop, the branch that ran, or the tensor of the row")
def _open(app: StepperApp, _text: str) -> None:
    if not _model(app).go_into():
        app.perform("value")


@action("value", syntax="[ADDR]", help="the whole value, full screen: of the cell of the cursor, or at an address")
def _value(app: StepperApp, text: str) -> None:
    if not text:
        model = _model(app)
        text = model.moment
        for line in model.line_to_moment:
            app.perform(line)
    app.open_value(subject_of(app, text))


@action("sheet-why", help="the path of the cell in the rows")
def _why(app: StepperApp, _text: str) -> None:
    _model(app).show_rows(RowSet.WHY)


@action("sheet-wider", syntax="N|-N", help="follow so many operands more of the value of the cursor on its path")
def _wider(app: StepperApp, text: str) -> None:
    _model(app).widen(integer(text or "1"))


@action("sheet-mark", syntax="LETTER", help="A is the iteration of the cursor; other letters mark the position")
def _mark(app: StepperApp, text: str) -> None:
    if text != "A":
        app.perform(f"mark {text}")
        return
    app.perform(f"A {_model(app).moment}")


@action("sheet-copy", syntax="[address]", help="copy the rows as CSV, an iteration a line; or the address of the cell")
def _copy(app: StepperApp, text: str) -> None:
    model = _model(app)

    def copy_lines(lines: str) -> None:
        if len(lines) > _MOST_COPIED:
            app.say("the sheet is too large to be copied; save FILE.csv writes it", "bad")
            return
        app.copy_to_clipboard(lines)
        app.say(f"copied {counted(lines.count(chr(10)) - 1, 'iteration')} as CSV")

    if text == "address":
        address = str(model.address())
        app.copy_to_clipboard(address)
        app.say(f"copied {address}")
    elif model.story is not None:
        app.copy_to_clipboard("\n".join(story_lines(model.story)))
        app.say("the path is copied as text", "")
    else:
        model.copy(copy_lines)


@action("sheet-save", syntax="FILE.npy|FILE.csv", help="write the rows; on the sheet `save FILE` is enough")
def _save(app: StepperApp, text: str) -> None:
    _model(app).save(text, lambda rows: app.say(f"{counted(rows, 'iteration')} written into {text}"))


@action(
    "why",
    syntax="ADDR | shape of ADDR | condition | end [LOOP] | failure",
    help="where a value or its shape comes from, across iterations; `why end`, `why 11 iterations`: why the loop "
    "ended, `why failure`: what the operation was given that fails next",
)
def _why_of(app: StepperApp, text: str) -> None:
    if not text:
        raise UsageError("nothing to explain: why ADDRESS, or why end")
    if forward_address(text):
        raise UsageError(f"an element goes many ways, which no path has: uses {forward_address(text)} lists them")
    _model(app).ask(StoryQuestion(fails=True) if text == "failure" else StoryQuestion(text))


@action("export-story", syntax="FILE", help="draw the path for a document: svg, pdf, png, md, mmd, dot, json")
def _export_story(app: StepperApp, text: str) -> None:
    from stepper_tui.actions.figures import export_story  # the writers of figures are not needed before

    story = _model(app).story
    if story is None:
        raise UsageError("no path is on the screen (why ADDRESS shows one)")
    export_story(app, story, text)


@action("sequences", help="open the recurrent sequences of the model as loops, or close them again")
def _sequences(app: StepperApp, _text: str) -> None:
    app.session.toggle_sequences()


class OpenReference(Record):
    """Open a reference; the answer is its title."""

    file: str

    def answer(self, debugger: Debugger) -> str:
        """Return its title; empty for a branch, which A is then. UsageError or InputError for what is none."""
        if self.file in debugger.branches:
            debugger.pin(self.file)
            return ""
        from stepper.compare.references.reference_opening import set_reference  # loads what compares

        return set_reference(debugger, self.file)


@action(
    "compare",
    syntax="FILE|BRANCH",
    help="compare with another model, a recorded run, an .npz, or a branch: its rows are those that differ",
)
def _compare(app: StepperApp, text: str) -> None:
    def opened(title: str) -> None:
        app.perform("A reference" if title else "A")
        app.sheet().model.show_rows(RowSet.CHANGED)

    if not text:
        raise UsageError("expected a model (.xml), a recorded run, an .npz with keys NAME@ITERATION, or a branch")
    app.driver.ask(OpenReference(text), opened)


@action("tolerance", syntax="RTOL [ATOL]", help="how far values may be from the reference")
def _tolerance(app: StepperApp, text: str) -> None:
    try:
        numbers = [float(word) for word in text.split()]
    except ValueError:
        numbers = []
    if not 1 <= len(numbers) <= 2 or not all(0 <= one < float("inf") for one in numbers):
        raise UsageError("expected a relative tolerance, and maybe an absolute one, such as tolerance 1e-4 1e-6")
    wanted = Tolerances(relative=numbers[0], absolute=numbers[1] if len(numbers) == 2 else 0.0)
    app.driver.adjust(CompareWithin(wanted))
