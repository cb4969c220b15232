"""The findings: what is wrong with the file and the run, the gravest first; Enter goes to the moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, Final

from stepper.diagnosis.findings import Finding, Severity
from stepper.diagnosis.rule import rules
from stepper.diagnosis.texts import consequence, remedy, sentence
from stepper.ir.model import LayerSite
from stepper.query.address_syntax import exact_name
from stepper.wording import counted
from tui.paint.columns import TableColumn, written
from tui.paint.list_pane import ListPane
from tui.paint.names import layer_name
from tui.paint.pane import Pane
from tui.paint.rows import Row, clip_end, clip_head, printable, width_of
from tui.screens.list_screen import ListScreen
from tui.screens.lists.detail import ChosenDetail

_SEVERITY: Final = 9
_RULE: Final = 6
_TONES: Final = {Severity.ERROR: "bad", Severity.WARNING: "edit", Severity.NOTE: "dim"}


class FindingList(ListPane[Finding]):
    """One row a finding."""

    kind: ClassVar[str] = "findings"
    title = "findings"
    leads_to_moment: ClassVar[bool] = True
    when_empty: ClassVar[str] = "nothing was found (0 shows the run)"
    help_text: ClassVar[str] = (
        "What the rules of stepper lint find in the file, and those of stepper check in the run of the overview, the\n"
        "most severe first. Enter goes to the moment at which one shows. The heading lists what was looked for."
    )

    def entries(self) -> Sequence[Finding]:
        """Return all."""
        return self.state.lists.findings

    def heading(self, width: int) -> list[Row]:
        """Return how many there are."""
        checked = ", ".join(self.state.lists.checked)
        self.note = f"{len(self.entries())} {f'  checked: {checked} ' if checked else ''}"
        return super().heading(width)

    def columns(self) -> Sequence[TableColumn[Finding]]:
        """Severity, rule, loop and iteration, what is wrong."""
        return (
            TableColumn("severity", _SEVERITY, lambda one, width: written(one.severity, width, _TONES[one.severity])),
            TableColumn("rule", _RULE, lambda one, width: written(rules()[one.rule].id, width, "dim")),
            TableColumn("where", lambda width: min(max(width // 5, 14), 28), _where),
            TableColumn("what", None, _what),
        )

    def line_to_open(self, item: Finding) -> str:
        """Go to the moment at which it shows; of the file to where its layer runs first."""
        return f"goto {item.address or _place_in_the_run(item)}"


def _place_in_the_run(item: Finding) -> str:
    layer = item.spot.layer or item.spot.loop
    if layer is None or layer.type in ("Result", "Parameter", "Constant", "Const"):
        layer = item.spot.loop
    if layer is None:
        return "first"
    inside = item.spot.path and item.spot.path[-1] != layer
    return f"{exact_name(layer.name)}{'@0' if inside else ''}"


def _where(item: Finding, width: int) -> Row:
    loop = "the model" if item.spot.loop is None else layer_name(item.spot.loop)
    iterations = "".join(f" @{one}" for one in item.iterations)
    return written(clip_head(printable(loop), width - 1 - len(iterations)) + iterations, width, "")


def _what(item: Finding, width: int) -> Row:
    return written(clip_end(printable(sentence(item)), width - 1), width, "")


class FindingDetail(ChosenDetail):
    """All that there is to say of the chosen finding."""

    help_text: ClassVar[str] = "What is wrong, what comes of it, what to do, and where it stands in the file."

    @property
    def name_for_tab(self) -> str:
        """Not its title, which is long."""
        return "finding"

    def titled(self, chosen: Finding) -> tuple[str, str]:
        """Return its rule."""
        return f"{rules()[chosen.rule].id} {chosen.rule}", ""

    def texts(self, chosen: Finding) -> tuple[tuple[str, str], ...]:
        """Return what it is, what to do, and where."""
        where = f"{chosen.spot.file}, line {chosen.spot.line}" if chosen.spot.line else chosen.spot.file
        return (
            ("what", sentence(chosen)),
            ("so", consequence(chosen)),
            ("do", remedy(chosen)),
            ("in", where),
            ("see", rules()[chosen.rule].source),
        )


class FindingsScreen(ListScreen):
    """The findings, with what is to be done."""

    view_name = "findings"
    pane_class = FindingList

    def more_about(self, listed: Any) -> Pane:
        """Return the chosen finding in full."""
        return FindingDetail(self.host, listed)


def findings_of(found: Sequence[Finding], loop: LayerSite) -> list[Finding]:
    """Return the errors and warnings about a loop, the gravest first."""
    mine = [one for one in found if one.spot.loop == loop and one.severity is not Severity.NOTE]
    return sorted(mine, key=lambda one: one.severity is not Severity.ERROR)


def finding_row(found: Sequence[Finding], width: int, key: str) -> Row:
    """Return the gravest of some findings in a line, and how many more there are; a `key` leads to all."""
    first, more = found[0], len(found) - 1
    rest: Row = [(f"  +{more} more" if more else "", "dim"), *([("  ", ""), (key, "key")] if key else [])]
    room = width - len(first.severity) - 2 - (width_of(rest))
    told = clip_end(printable(sentence(first)), max(room, 8))
    return [(str(first.severity), _TONES[first.severity]), (": ", "dim"), (told, ""), *rest]


def found_words(found: Sequence[Finding]) -> tuple[str, str]:
    """Return how many errors and warnings there are in words, and a tone; empty without any."""
    counts = [
        (severity, sum(one.severity is severity for one in found)) for severity in (Severity.ERROR, Severity.WARNING)
    ]
    told = [(severity, count) for severity, count in counts if count]
    return ", ".join(counted(count, str(severity)) for severity, count in told), _TONES[told[0][0]] if told else ""
