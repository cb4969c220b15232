"""The stack: a frame a level of loops, the innermost first, with the line of the listing at which it stands."""

from __future__ import annotations

from stepper.debug.debugger import Debugger
from stepper.debug.inspection.views import FrameView, LevelView, frame_views
from stepper.engine.program import Program
from stepper.errors import UsageError
from stepper.integrations.dap.listing import ModelListing
from stepper.integrations.dap.messages import ShownFrame, ShownSource


def shown_frames(debugger: Debugger, listing: ModelListing, source: ShownSource) -> list[ShownFrame]:
    """Return the frames at this stop; at the end of the run one that says so."""
    levels = debugger.view(differences=False).levels
    if not levels:
        line = len(listing.lines)
        return [ShownFrame(1, f"end of the run, tick {debugger.stop.tick}", line, 1, source, can_restart=True)]
    frames = frame_views(debugger.machine.stack)
    return [
        ShownFrame(level.depth + 1, _name(level), _line(listing, frame), 1, source, can_restart=True)
        for level, frame in reversed(list(zip(levels, frames, strict=True)))
    ]


def _line(listing: ModelListing, frame: FrameView) -> int:
    return listing.line_of(frame.program, frame.moment, closed=frame.closed)


def _name(level: LevelView) -> str:
    if level.depth == 0:
        return "model"
    count = f" ({level.count})" if level.count else ""
    return f"{level.name} @{level.iteration}{count}" if level.iteration is not None else f"{level.name}: {level.phase}"


def restart_tick(debugger: Debugger, depth: int) -> int:
    """Return the tick at which the frame at a depth was entered, 0 for the model's own graph. UsageError."""
    if depth == 0:
        return 0
    stack = debugger.machine.stack
    activation = stack[depth].activation if 0 < depth < len(stack) else None
    if activation is None or activation.entered == 0:
        raise UsageError(f"there is no frame {depth + 1} here whose beginning is known")
    return activation.entered


def program_of(debugger: Debugger, frame: int | None) -> Program:
    """Return the graph of a frame, by its number, from which names are seen; without one that of the innermost."""
    stack = debugger.machine.stack
    if frame is None or not stack:
        return debugger.machine.program
    if not 0 < frame <= len(stack):
        raise UsageError(f"there is no frame {frame} at this stop")
    return stack[frame - 1].program
