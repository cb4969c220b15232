"""A value with labels is read like a text: in the timeline, in the value strip, and where outputs grow."""

from __future__ import annotations

from tests.debug.debugged import SAMPLES
from tests.tui.driven import DECODER, Driven, drive
from tui.paint.names import carried_name

VOCABULARY = SAMPLES / "date_normaliser" / "vocab.json"


def test_the_date_is_read_as_it_is_written() -> None:
    async def script(driven: Driven) -> None:
        loop = driven.state.loop
        assert loop is not None
        names = {carried_name(edge.parameter.layer): edge.parameter.name for edge in loop.back_edges}
        growing = next(line for line in driven.text("scans").splitlines() if " toks " in line)
        assert "2 0 2 6 10 1 1" in growing
        await driven.type(f"labels {names['tok']} {VOCABULARY} output")
        assert "11 labels" in driven.text("answer")
        await driven.filled()
        growing = next(line for line in driven.text("scans").splitlines() if " toks " in line)
        assert "2026-11" in growing
        track = next(line for line in driven.text("time").splitlines() if line.split()[:1] == ["tok'"])
        assert track.split()[1:8] == ["2", "0", "2", "6", "-", "1", "1"] and track.endswith("'1'")  # as `toks` has it
        await driven.type(f"labels `aten::argmax/Squeeze` {VOCABULARY} output")
        await driven.type("run-to `aten::argmax/Squeeze`")
        assert "'-'" in driven.text("value")
        await driven.type(f"labels {names['tok']} nowhere.txt")
        assert "cannot be read" in driven.text("answer")

    drive("date_normaliser", script, lines=(f"run-to {DECODER}@0", "iter 7", "run-to `aten::softmax/Softmax`"))
