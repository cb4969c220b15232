"""Write the facts of a run (`Debugger.overview`) as a part of an HTML page.

The part shows the inputs, a card per loop, the outputs, and the findings. It has its own style and no script, and loads
nothing from a network. It follows the light or dark scheme of the page, and escapes every name. Columns are buttons
with `data-goto`: the moment that they show, as an argument of `goto`.

Pictures of values have a column per iteration, and a row per element or bucket. Shades, scales and bars match the
application (`stepper.tensors.tensor_pictures`): numbers above zero are warm, numbers below zero cool, and zero has the
background colour; NaN and Inf are filled.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from html import escape

import numpy as np

from stepper.debug.causes.cause_texts import how_sentence, title
from stepper.debug.causes.loop_ends import end_text
from stepper.debug.inspection.text import constants_text, none_born, state_sentence
from stepper.debug.overview.overview_facts import (
    ActivationFacts,
    LoopFacts,
    ModelPortFacts,
    Overview,
    Row,
    RowKind,
    RunState,
    address_in_loop,
    in_order,
    programs_of,
)
from stepper.element_types import Array
from stepper.engine.program import CompiledModel
from stepper.export.writers.drawings import png_chunk
from stepper.ir.model import LayerSite
from stepper.query.short_names import last_part, without_number
from stepper.tensors.histories import KeptStatistic, ValueHistory
from stepper.tensors.number_text import number_text
from stepper.tensors.tensor_pictures import (
    Form,
    ScaleKind,
    bar_scale,
    form_of,
    heights,
    letters,
    scale_of,
    shades,
    share_text,
)
from stepper.wording import counted, excerpt

_WARM = (214, 128, 28)
_COOL = (62, 118, 209)
_NAN = (200, 30, 60)
_INF = (222, 84, 140)
_MOST_NUMBERS = 64
"""Columns up to which numbers are written."""


def strip(history: ValueHistory, inner: str = "") -> str:
    """Return the picture of a value, of the width of all its columns; `inner` is laid over it."""
    numbers = _numbers(history)
    columns = numbers.shape[0]
    form = form_of(history.type, numbers.shape[1], is_whole=history.is_whole)
    if not columns or form is Form.WORDS:
        words = escape(f"{history.type}[{','.join(map(str, history.shape))}]")
        return f'<span class="words">{words}</span>'
    if form in (Form.TRUTH, Form.NUMBERS) and columns <= _MOST_NUMBERS:
        return _cells([("FT"[bool(one)] if form is Form.TRUTH else f"{one:.0f}") for one in numbers[:, 0]]) + inner
    if form in (Form.TRUTH, Form.NUMBERS, Form.BARS):
        return _bars(numbers[:, 0]) + inner
    return f'<img alt="" src="{_png(_colours(numbers.T))}">{inner}'


def scale_text(history: ValueHistory) -> str:
    """Return between which numbers the shades or bars of a value are; empty where its numbers are written.

    Where not all of the numbers are between them, also how many are.
    """
    numbers = _numbers(history)
    form = form_of(history.type, numbers.shape[1] if numbers.size else 0, is_whole=history.is_whole)
    if form is Form.PICTURE:
        scale = scale_of(numbers)
        if not scale.share or not scale.low:
            return "0" if scale.share else ""
        ends = f"{'±' if scale.signed else '0 to '}{number_text(float(scale.full))}"
        return ends + _tail(scale.share, is_log=scale.kind is ScaleKind.LOG)
    if form is Form.BARS:
        bars = bar_scale(numbers)
        if not bars.share:
            return ""
        both = " to ".join(dict.fromkeys((number_text(bars.low), number_text(bars.high))))
        return both + _tail(bars.share, is_log=bars.log)
    return ""


def _tail(share: float, *, is_log: bool) -> str:
    return f"{' log' if is_log else ''}{f' {told}' if (told := share_text(share)) else ''}"


def _numbers(history: ValueHistory) -> Array:
    """Return the numbers of a history, [column, element or bucket]; of buckets their largest."""
    kept: Array = history.numbers[0 if history.is_whole else KeptStatistic.LARGEST]
    return np.asarray(kept, np.float64).reshape(len(kept), -1)


def _cells(words: Sequence[str]) -> str:
    return f'<span class="cells">{"".join(f"<span>{escape(word)}</span>" for word in words)}</span>'


def _bars(numbers: Array) -> str:
    scale = bar_scale(numbers)
    found = heights(numbers, scale)
    parts = []
    for column, (height, letter) in enumerate(zip(found, letters(numbers), strict=True)):
        high = 1.0 if letter else 0.06 + 0.94 * float(height)
        name = {"N": ' class="nan"', "I": ' class="inf"'}.get(str(letter), "")
        parts.append(f'<rect{name} x="{column}" y="{1 - high:.3f}" width="0.92" height="{high:.3f}"/>')
    box = f'viewBox="0 0 {len(numbers)} 1" preserveAspectRatio="none"'
    return f'<svg class="bars" aria-hidden="true" {box}>{"".join(parts)}</svg>'


def _colours(numbers: Array) -> Array:
    """Return the pixels of numbers as [row, column, RGBA] of bytes."""
    found = shades(numbers, scale_of(numbers))
    pixels = np.zeros((*numbers.shape, 4), np.uint8)
    pixels[found > 0, :3], pixels[found < 0, :3] = _WARM, _COOL
    strength = np.where(np.isfinite(found), np.abs(np.nan_to_num(found)), 1.0)
    pixels[..., 3] = np.rint(255 * strength)
    pixels[np.isinf(numbers)] = (*_INF, 255)
    pixels[np.isnan(numbers)] = (*_NAN, 255)
    return pixels


def _png(pixels: Array) -> str:
    """Return pixels as the address of an image that carries its own bytes."""
    height, width = pixels.shape[:2]
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    header = struct.pack(">2I5B", width, height, 8, 6, 0, 0, 0)
    parts = ((b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b""))
    content = b"\x89PNG\r\n\x1a\n" + b"".join(png_chunk(*part) for part in parts)
    return f"data:image/png;base64,{base64.b64encode(content).decode()}"


_MOST_CARDS = 60
_MOST_ROWS = 24
_MOST_MARKS = 24
"""Numbers on a ruler."""
_MOST_FOUND = 4
_GROUPS = {  # in the order of rows
    RowKind.CONDITION: "goes on?",
    RowKind.BIRTH: "!",
    RowKind.BACK_EDGE: "↺",
    RowKind.CONCATENATED: "⊞",
    RowKind.LAST_VALUE: "→",
    RowKind.SLICE: "◫",
}
_STATES = {
    RunState.NOT_RUN: "not run yet",
    RunState.RUNNING: "running",
    RunState.FAILED: "failed",
    RunState.PAUSED: "paused",
    RunState.OUT_OF_TIME: "paused: out of time",
    RunState.OUT_OF_MEMORY: "paused: out of memory",
}

STYLE = """
.stepper-overview {
  color: var(--ink); background: var(--ground); padding: 8px;
  font: 12px/1.5 system-ui, "Liberation Sans", Arial, sans-serif; container-type: inline-size;
}
.stepper-overview p { margin: 0 0 4px; }
.stepper-overview .quiet { color: var(--quiet); }
.stepper-overview .bad { color: var(--bad); font-weight: 600; }
.stepper-overview section { border-top: 1px solid var(--line); padding: 6px 0 8px; }
.stepper-overview table { border-collapse: collapse; width: 100%; table-layout: fixed; background: none; }
.stepper-overview td {
  padding: 1px 4px; text-align: left; vertical-align: middle; border: 0; background: none;
  overflow: hidden; text-overflow: ellipsis; white-space: nowrap;
}
.stepper-overview .name { width: 13em; }
.stepper-overview .end { width: 9em; color: var(--quiet); }
@container (max-width: 480px) {
  .stepper-overview .name { width: 9em; }
  .stepper-overview .end { width: 6em; }
}
.stepper-overview td.strip { position: relative; padding: 1px 0; }
.stepper-overview .strip > img {
  display: block; width: 100%; max-width: none; height: var(--high, 20px); image-rendering: pixelated;
}
.stepper-overview .bars { display: block; width: 100%; height: 22px; }
.stepper-overview .bars rect { fill: #7d93b2; }
.stepper-overview .bars .nan { fill: #c81e3c; }
.stepper-overview .bars .inf { fill: #de548c; }
.stepper-overview :is(.cells, .columns) { display: grid; grid-auto-flow: column; grid-auto-columns: minmax(0, 1fr); }
.stepper-overview .cells { text-align: center; font-variant-numeric: tabular-nums; }
.stepper-overview .columns { position: absolute; inset: 0; }
.stepper-overview .columns > * { border: 0; padding: 0; background: none; cursor: pointer; min-width: 0; }
.stepper-overview .columns > :is(:hover, :focus-visible) { outline: 1px solid var(--accent); background: #5cc8bc33; }
.stepper-overview .columns > .now { box-shadow: inset 2px 0 var(--accent), inset -2px 0 var(--accent); }
"""


_LIGHT = "--ground: #fff; --ink: #1f2328; --quiet: #57606a; --line: #d0d7de; --bad: #b3123f; --accent: #0b7a70;"
_DARK = "--ground: #14171c; --ink: #d5dae3; --quiet: #97a1b0; --line: #39414d; --bad: #ff8494; --accent: #5cc8bc;"
_SCHEMES = f"""
.stepper-overview {{ {_LIGHT} }}
@media (prefers-color-scheme: dark) {{ .stepper-overview {{ {_DARK} }} }}
:is([data-jp-theme-light="true"], [data-theme="light"], .vscode-light) .stepper-overview {{ {_LIGHT} }}
:is([data-jp-theme-light="false"], [data-theme="dark"], .vscode-dark, .vscode-high-contrast) .stepper-overview {{
  {_DARK}
}}
"""
"""Colours of the page: the system's scheme, or the scheme of JupyterLab, themes and VS Code."""


def overview_html(
    overview: Overview, compiled: CompiledModel, found: Sequence[str] = (), checked: Sequence[str] = ()
) -> str:
    """Return the overview of a run of this model as a `div` with its style.

    `found` are sentences on findings other than the first NaN and Inf; `checked` lists the checks.
    """
    loops = "".join(_cards(overview, compiled))
    more = len(overview.loops) - _MOST_CARDS
    rest = f'<p class="quiet">… {more} more loops</p>' if more > 0 else ""
    return (
        f'<div class="stepper-overview"><style>{_SCHEMES}{STYLE}</style>{_head(overview)}{loops}{rest}'
        f"<section>{_ports('after', overview.outputs)}{_found(overview, found, checked)}</section></div>"
    )


def _head(overview: Overview) -> str:
    state = _STATES.get(overview.state, "")
    ran = (
        f"{state + ', ' if state else ''}{counted(overview.iterations, 'iteration')}, {counted(overview.ticks, 'tick')}"
    )
    count = sum(overview.operations.values())
    operations = f'<p><span class="quiet">then</span> {counted(count, "operation")}</p>' if count else ""
    failure = overview.failure
    failed = "" if failure is None else f'<p class="bad">{escape(excerpt(failure.message, 400))}</p>'
    return f'<p class="quiet">{escape(ran)}</p>{_ports("before", overview.inputs)}{operations}{failed}'


def _ports(word: str, ports: Sequence[ModelPortFacts]) -> str:
    texts = []
    for port in ports[:12]:
        value = "" if port.brief is None else f" {escape(port.brief.text)}"
        bad = [f"NaN in {port.nan:,}"] * bool(port.nan) + [f"Inf in {port.infinite:,}"] * bool(port.infinite)
        fault = f' <span class="bad">{", ".join(bad)} of {port.size:,}</span>' if bad else ""
        texts.append(f"<b>{escape(excerpt(port.name))}</b>{value}{fault}")
    more = f" … {len(ports) - 12} more" if len(ports) > 12 else ""
    return f'<p><span class="quiet">{word}</span> {" · ".join(texts)}{more}</p>' if texts else ""


def _found(overview: Overview, found: Sequence[str], checked: Sequence[str]) -> str:
    lines = [
        f'<span class="bad">{escape(title(birth.cause))}</span> {escape(how_sentence(birth.cause))}'
        for birth in overview.births[:_MOST_FOUND]
    ]
    told = constants_text(overview, _name_of) if lines else none_born(overview, _name_of)
    lines += [escape(told)] if told and overview.births_complete else []
    lines += [escape(one) for one in found[:_MOST_FOUND]]
    lines += [f"{len(found) - _MOST_FOUND} more"] if len(found) > _MOST_FOUND else []
    texts = [("found", one) for one in lines] + ([("checked", escape(", ".join(checked)))] if checked else [])
    return "".join(f'<p><span class="quiet">{word}</span> {text}</p>' for word, text in texts)


def _name_of(layer: LayerSite) -> str:
    return excerpt(last_part(layer.name))


# --- a card ---------------------------------------------------------------------------------------------------------


def _cards(overview: Overview, compiled: CompiledModel) -> Iterator[str]:
    programs = programs_of(compiled)
    for index in in_order(compiled)[:_MOST_CARDS]:
        facts, program = overview.loops[index], programs[index]
        runs = facts.activations
        told = ""
        if runs:
            told = _run(facts, runs[-1], partial(address_in_loop, program, runs[-1].outer, compiled=compiled))
        inner = "".join(f", {count} {name}" for name, count in facts.inner.items())
        about = f"{facts.layer.type} {facts.layer.id} · {counted(facts.operations, 'operation')}{inner}"
        yield (
            f'<section style="margin-left: {min(facts.depth, 8)}em"><p><b>{escape(excerpt(facts.layer.name))}</b> '
            f'<span class="quiet">{escape(about)} · {escape(_count(facts))}</span></p>'
            f"{told}</section>"
        )


def _count(facts: LoopFacts) -> str:
    if not facts.runs:
        return "not run"
    total = counted(facts.total, facts.iteration_word)
    return total if facts.runs == 1 else f"{total} in {facts.runs:,} runs; this is the last"


def _run(facts: LoopFacts, run: ActivationFacts, address: Callable[[int], str]) -> str:
    """Return why a run of a loop ended, and its rows over the iterations."""
    rows = [(row, history) for row, history in zip(facts.rows, run.values, strict=False) if _is_shown(row, history)]
    rows.sort(key=lambda one: list(_GROUPS).index(one[0].kind))
    spans: list[list[int]] = max(
        (history.spans.tolist() for _row, history in rows if history is not None), key=len, default=[]
    )
    table = _table(facts, rows[:_MOST_ROWS], spans, address) if spans else ""
    more = f'<p class="quiet">… {len(rows) - _MOST_ROWS} more rows</p>' if len(rows) > _MOST_ROWS else ""
    return f"<p>{escape(_ended(facts, run))}</p>{table}{more}"


def _is_shown(row: Row, history: ValueHistory | None) -> bool:
    return history is not None and history.count > 0 and row.same_as is None and row.kind in _GROUPS


def _ended(facts: LoopFacts, run: ActivationFacts) -> str:
    ending = run.ending
    if ending is None and not facts.never_ends:
        return "not at its end"
    if ending is None:
        again = run.recurrence
        told = [] if again is not None and again.decides else ["nothing changes its condition"]
        told += [] if again is None else [state_sentence(again, _name_of)]
        return f"it can never end: {', '.join(told)}"
    why = end_text(ending.reason, ending.limit, ending.verdict, is_set=ending.is_set)
    return f"did not begin: {why}" if ending.iteration < 0 else f"ended after iteration {ending.iteration:,}: {why}"


def _table(
    facts: LoopFacts,
    rows: Sequence[tuple[Row, ValueHistory | None]],
    spans: list[list[int]],
    address: Callable[[int], str],
) -> str:
    word = facts.iteration_word
    each, columns = -(-len(spans) // _MOST_MARKS), ""
    for first, last in spans:  # what stands over a column answers to a click and says which iterations it is
        text = f"{word} {first:,}" + (f" to {last - 1:,}" if last - first > 1 else "")
        goto = escape(address(first))
        columns += f'<button type="button" data-goto="{goto}" title="{text}" aria-label="{text}"></button>'
    marks = _cells([str(first) if number % each == 0 else "" for number, (first, _last) in enumerate(spans)])
    ruler = f'<td class="name">{word}</td><td>{marks}</td><td class="end"></td>'
    lines = [f'<tr class="quiet">{ruler}</tr>']
    for row, history in rows:
        assert history is not None, "_is_shown has seen to it"
        high = min(max(history.elements, 2), 64) * (5 if history.elements <= 12 else 2)
        over = f'<span class="columns">{columns}</span>' if len(history.spans) == len(spans) else ""
        lines.append(
            f'<tr><td class="name" title="{escape(row.inner.name)}">{_GROUPS[row.kind]} {escape(_name(row))} '
            f'<span class="quiet">{"×".join(map(str, history.shape))}</span></td>'
            f'<td class="strip" style="--high: {high}px">{strip(history, over)}</td>'
            f'<td class="end">{escape(scale_text(history))}</td></tr>'
        )
    return f"<table>{''.join(lines)}</table>"


def _name(row: Row) -> str:
    named = row.inner if row.producer is None or row.kind in (RowKind.BACK_EDGE, RowKind.SLICE) else row.producer
    is_carried = row.kind is RowKind.BACK_EDGE and not row.appends
    return excerpt(without_number(last_part(named.name)), 24) + "'" * is_carried
