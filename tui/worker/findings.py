"""Findings for the screen: of the file, once; of the run that the overview shows, when that is over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stepper.debug.overview.facts import Overview, RunState

if TYPE_CHECKING:
    from stepper.debug.debugger import Debugger
    from stepper.diagnosis.findings import Finding

_MOST_LAYERS: Final = 5_000
"""Layers of a model up to which its file is held against the rules without being asked for: it takes a while."""


class KnownFindings:
    """Lives in the worker; `known` costs nothing."""

    def __init__(self, debugger: Debugger) -> None:
        self._debugger = debugger
        self._of_file: tuple[Finding, ...] | None = None
        self._of_run: tuple[Finding, ...] = ()
        self._overview: Overview | None = None

    @property
    def known(self) -> tuple[Finding, ...]:
        """Return what was found, the gravest first; nothing of a run that is another one by now."""
        if self._overview is None:
            return ()
        overview = self._debugger.overview()
        is_same = self._overview.ticks == overview.ticks
        is_same = is_same and overview.state not in (RunState.NOT_RUN, RunState.RUNNING)
        from stepper.diagnosis.check.checking import ranked

        return ranked((*(self._of_file or ()), *(self._of_run if is_same else ())))

    def look(self, overview: Overview) -> None:
        """Look for what is wrong with the file and with a run that is over."""
        if overview is self._overview:
            return
        from stepper.diagnosis.check.checking import findings_of_facts
        from stepper.diagnosis.lint.linting import lint

        model = self._debugger.model
        if self._of_file is None:
            count = sum(len(graph.layers) for _path, graph in model.graphs())
            is_file = model.path.suffix == ".xml" and model.path.is_file()
            self._of_file = lint(model.path) if is_file and count <= _MOST_LAYERS else ()
        self._of_run = findings_of_facts(model, overview)
        self._overview = overview
