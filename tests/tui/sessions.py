"""One session of the application from start to end, with a state folder of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from stepper_tui.app import StepperApp

from stepper.debug.debugger import Debugger
from stepper.session.autosave import Autosave
from tests.tui.driven import Driven, Script, debugger_of_sample


def session(
    script: Script,
    autosave: Autosave | None = None,
    debugger: Debugger | None = None,
    reopen: Callable[[], Debugger] | None = None,
) -> str:
    """One session from start to end, as launch does it; what it says at its end."""

    async def run() -> StepperApp:
        app = StepperApp(
            debugger or debugger_of_sample("date_normaliser"),
            "date_normaliser",
            autosave=autosave or Autosave(),
            reopen=reopen,
        )
        async with app.run_test(size=(160, 48)) as pilot:
            driven = Driven(app, pilot)
            await driven.settle()
            await driven.settle()
            await script(driven)
            app.leave()
        return app

    return asyncio.run(run()).session.save_at_end()
