"""Figures as part of a page of HTML."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

_NAME: Final = re.compile(r'<svg [^>]*class="stepper (s[0-9a-f]{8})"')
_FITTING: Final = 'style="max-width:100%;height:auto" '


class InlineFigures:
    """The figures of one page: their ids differ, also where one figure stands there twice."""

    def __init__(self) -> None:
        self._seen: dict[str, int] = {}

    def svg(self, file: Path) -> str:
        """Return the text of a drawing, which takes no more room than the page has."""
        text = file.read_text(encoding="utf-8").strip()
        text = text.replace("<svg ", f"<svg {_FITTING}", 1)
        match = _NAME.search(text)
        if match is None:  # Graphviz has no ids of ours
            return text
        name = match[1]
        self._seen[name] = count = self._seen.get(name, 0) + 1
        return text if count == 1 else text.replace(name, f"{name}_{count}")
