"""Pages with iterations as tests read them: their data, and what Chromium makes of them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


def chromium(*words: str) -> str:
    made = subprocess.run(
        [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", *words],
        capture_output=True,
        check=True,
        timeout=120,
    )
    return made.stdout.decode()


def page_data(page: str) -> Any:
    """The data of the page's script."""
    found = re.search(r"const DATA = (.*);\n", page)
    assert found is not None
    return json.loads(found[1])


def states_at(things: Mapping[str, Any], index: int) -> list[Any]:
    """The states of boxes or frames at a stop of the slider."""
    return [one["states"][one["at"][index] if "at" in one else 0] for one in things.values()]
