"""Actions of the session: keep it, run anew, export what is on the screen, evaluate Python."""

from __future__ import annotations

import re
from functools import partial
from pathlib import Path

from stepper.errors import UsageError
from stepper.files.kinds import SVG
from stepper.files.output import OutputFile
from tui.actions.registry import action
from tui.application import Application
from tui.screens.sheet.screen import SheetScreen
from tui.worker.python_prompt import EvaluatePython


@action("save-session", help="keep breakpoints, watches, marks, branches, layout and this place")
def _save_session(app: Application, _text: str) -> None:
    app.session.save()


@action("rerun", help="read model and inputs anew and run to this place; breakpoints and watches stay")
def _rerun(app: Application, _text: str) -> None:
    app.session.rerun()


@action("export", help="write what is on the screen into a file, whose name can be changed before")
def _export(app: Application, _text: str) -> None:
    pane = app.focused_pane
    if isinstance(app.front, SheetScreen) and app.front.model.story is not None:
        app.open_prompt(f"export-story {_file_name(app)}")
        return
    is_figure = pane is not None and pane.kind == "graph" and app.state.loop is not None
    app.open_prompt(f"export-{'figure' if is_figure else 'screen'} {_file_name(app)}{' rolled' if is_figure else ''}")


@action("export-screen", syntax="FILE.svg", help="write what is on the screen into an SVG file")
def _export_screen(app: Application, text: str) -> None:
    if not text.endswith(".svg"):
        raise UsageError("the name of a file that ends in .svg is expected")
    picture = app.export_screenshot(title=app.state.model)
    OutputFile(Path(text), SVG, app.driver.protected).write(picture.encode())
    app.say(f"{text} written")


@action("!", syntax="PYTHON", help="Python with vals (values by name), it (the iteration), np; the only place for it")
def _python(app: Application, text: str) -> None:
    if not text:
        app.open_prompt("! ")
        return
    app.driver.ask(EvaluatePython(app.python, text, app.state.depth), partial(_answer, app, text))


def _answer(app: Application, text: str, lines: tuple[str, ...]) -> None:
    if len(lines) > 1:
        app.show_card(f"! {text}", lines)
    else:
        app.say(lines[0] if lines else "done", "")


def _file_name(app: Application) -> str:
    view = app.state.view
    word = re.sub(r"[^A-Za-z0-9_.-]+", "_", app.state.model).strip("._") or "model"
    return f"{word}-tick{0 if view is None else view.tick}.svg"


@action(
    "export-figure", syntax="FILE [VIEW]", help="draw the loop for a document: svg, pdf, md; rolled, ports, unrolled"
)
def _export_figure(app: Application, text: str) -> None:
    from tui.actions.figures import export_figure  # the writers of figures are not needed before

    export_figure(app, text)
