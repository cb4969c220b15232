"""The description of the distribution on an index: the README without pictures and links that lead nowhere there.

Hatch calls it when it builds (`[tool.hatch.metadata.hooks.custom]` of pyproject.toml).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

PICTURE = re.compile(r"^!\[[^]]*\]\((?!https?:)[^)]*\)\n\n?", re.MULTILINE)
LINK = re.compile(r"\[([^]]*)\]\((?!https?:|#)[^)]*\)")


def description(readme: str) -> str:
    """Return the text of a README in which pictures of the repository are left out and links to it are words."""
    return LINK.sub(r"\1", PICTURE.sub("", readme))


class IndexPage(MetadataHookInterface):
    """Sets `readme` of the metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the description."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": description(text)}
