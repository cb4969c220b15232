"""Animated SVG of screens: frames in, one file out that plays in an `<img>`, and stands still in print.

A row of the screen that several frames share is in the file once. Readers who want no motion see the last frame.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final
from xml.etree import ElementTree

from stepper.export.stepping import motion_rules, visible_times

_ROW: Final = 24.4
"""Height of a row of the terminal in Textual's pictures."""
_CLASS: Final = re.compile(r"\.(r\d+) \{ ([^}]*) \}")


def animated(frames: Sequence[str], seconds: Sequence[float]) -> str:
    """Return frames (SVG of `tour.compact`, all of one size), each shown for so many seconds, as an endless loop."""
    if not frames or len(frames) != len(seconds):
        raise ValueError(f"{len(frames)} frames, {len(seconds)} durations")
    styles: dict[str, str] = {}
    shown: dict[str, set[int]] = {}
    for index, frame in enumerate(frames):
        for row in _rows(frame, styles):
            shown.setdefault(row, set()).add(index)
    head, tail = _frame(frames[-1])
    groups: dict[frozenset[int], list[str]] = {}
    for row, where in shown.items():
        groups.setdefault(frozenset(where), []).append(row)
    rules = [f".{name} {{ {style} }}" for style, name in styles.items()]
    body, times = [], []
    for number, (where, rows) in enumerate(groups.items()):
        if len(where) == len(frames):
            body.append(f"<g>{''.join(rows)}</g>")
            continue
        times.append(visible_times(f"f{number}", where, seconds))
        hidden = "" if len(frames) - 1 in where else ' visibility="hidden"'
        body.append(f'<g class="f{number}"{hidden}>{"".join(rows)}</g>')
    head = head.replace("</style>", "\n".join([*rules, motion_rules(times, sum(seconds))]) + "</style>", 1)
    return head + "\n".join(body) + tail


def _frame(svg: str) -> tuple[str, str]:
    """Return what stands before and behind the rows of a picture, without the styles of its texts."""
    root = _CLASS.sub("", svg)
    begin = root.index('<g transform="translate(9, 41)"')
    begin = root.index(">", begin) + 1
    return re.sub(r"\n+", "\n", root[:begin]) + '\n<g class="matrix">\n', "\n</g>\n</g>\n</svg>\n"


def _rows(svg: str, styles: dict[str, str]) -> list[str]:
    """Return the rows of a picture as SVG text; `styles` has the class of each style, and gets new ones."""
    classes = {name: styles.setdefault(style, f"s{len(styles)}") for name, style in _CLASS.findall(svg)}
    rows: dict[int, list[str]] = {}
    root = ElementTree.fromstring(svg)
    for element in root.iter():
        tag = element.tag.rpartition("}")[2]
        y = float(element.get("y", -1))
        if tag == "text" and element.get("class") in classes:
            element.set("class", classes[element.get("class", "")])
            rows.setdefault(round((y - 20) / _ROW), []).append(_markup(tag, element))
        elif tag == "rect" and element.get("height") == "24.6":
            rows.setdefault(round((y - 1.5) / _ROW), []).append(_markup(tag, element))
    return ["".join(sorted(parts, key=lambda part: not part.startswith("<rect"))) for _, parts in sorted(rows.items())]


def _markup(tag: str, element: ElementTree.Element) -> str:
    attributes = "".join(f' {name}="{value}"' for name, value in element.attrib.items())
    text = (element.text or "").replace("&", "&amp;").replace("<", "&lt;")
    return f"<{tag}{attributes}>{text}</{tag}>" if text else f"<{tag}{attributes}/>"
