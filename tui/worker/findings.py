"""Findings for the screen: of the file, once; of the run that the overview shows, when that is over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stepper.debug.overview.facts import Overview, RunState

if TYPE_CHECKING:
    from stepper.debug.debugger import Debugger
    from stepper.diagnosis.check.checking import CheckedRun
    from stepper.diagnosis.findings import Finding

_SECONDS: Final = 0.25
"""Seconds for which a run is repeated to look at what its operations compute."""
_MOST_LAYERS: Final = 5_000
"""Layers of a model up to which its file is held against the rules without being asked for: it takes a while."""


class KnownFindings:
    """Lives in the worker; `known` costs nothing."""

    def __init__(self, debugger: Debugger) -> None:
        self._debugger = debugger
        self._of_file: tuple[Finding, ...] | None = None
        self._of_run: CheckedRun | None = None
        self._overview: Overview | None = None

    @property
    def known(self) -> tuple[tuple[Finding, ...], tuple[str, ...]]:
        """Return what was found, the most severe first, and what was looked for; nothing of a run that is gone."""
        if self._overview is None or self._of_run is None:
            return (), ()
        overview = self._debugger.overview()
        is_same = self._overview.ticks == overview.ticks
        is_same = is_same and overview.state not in (RunState.NOT_RUN, RunState.RUNNING)
        from stepper.diagnosis.check.checking import ranked

        found = ranked((*(self._of_file or ()), *(self._of_run.findings if is_same else ())))
        return found, self._of_run.checked if is_same else ()

    def look(self, overview: Overview) -> None:
        """Look for what is wrong with the file and with a run that is over."""
        if overview is self._overview:
            return
        from stepper.diagnosis.check.checking import check_overview
        from stepper.diagnosis.lint.linting import lint

        model = self._debugger.model
        if self._of_file is None:
            count = sum(len(graph.layers) for _path, graph in model.graphs())
            is_file = model.path.suffix == ".xml" and model.path.is_file()
            self._of_file = lint(model.path) if is_file and count <= _MOST_LAYERS else ()
        self._of_run = check_overview(self._debugger, overview, _SECONDS)
        self._overview = overview
