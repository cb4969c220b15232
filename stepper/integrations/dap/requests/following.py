"""Requests that the protocol does not have, of a view beside the editor: what follows the session, for a page."""

from __future__ import annotations

from typing import Any

from stepper.integrations.dap.messages import FigureArguments, NoArguments
from stepper.integrations.dap.requests.registry import request
from stepper.integrations.dap.session import DapSession
from stepper.records import as_data


@request("stepper/stop", arguments=NoArguments)
def _stop(session: DapSession, _arguments: NoArguments) -> dict[str, Any]:
    """Answer with where the session stands: the number of a figure, the id of a box in it, a column's `data-goto`."""
    found: dict[str, Any] = as_data(session.run.follower.stop())
    return found


@request("stepper/figure", arguments=FigureArguments)
def _figure(session: DapSession, arguments: FigureArguments) -> dict[str, Any]:
    """Answer with a figure: SVG, and the addresses of its boxes by their ids."""
    found: dict[str, Any] = as_data(session.run.follower.figure(arguments.figure))
    return found


@request("stepper/overview", arguments=NoArguments)
def _overview(session: DapSession, _arguments: NoArguments) -> dict[str, Any]:
    """Answer with the overview of the run as HTML, without a script: columns have `data-goto`."""
    with session.working():
        return {"html": session.run.follower.overview()}
