"""Hooks of mkdocs: pages and pictures that lie beside docs/ belong to the site, and links lead to them there."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"(!?)\[((?:[^][]|\[[^][]*\])*)\]\(([^)\s]+)\)")


def beside() -> Iterator[Path]:
    """Yield the files outside of docs/ that are part of the site."""
    yield from (ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md")
    yield from sorted((ROOT / "sample_models").glob("*.md"))
    yield from sorted((ROOT / "sample_models").glob("*/**/*.svg"))
    yield from sorted((ROOT / "sample_models").glob("*/*.html"))


def on_files(files: Any, config: Any) -> Any:
    """Add them under their own paths."""
    for path in beside():
        files.append(File.generated(config, path.relative_to(ROOT).as_posix(), abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Return the text with links that hold in the site; one to a file that is no part of it becomes its text."""
    source = page.file.src_uri
    at = source if page.file.generated_by else f"docs/{source}"

    def led(match: re.Match[str]) -> str:
        image, text, link = match.groups()
        parts = urlsplit(link)
        if parts.scheme or not parts.path or parts.path.startswith("/"):
            return match[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(at), parts.path))
        place = target.removeprefix("docs/")
        if files.get_file_from_path(place) is not None:
            relative = posixpath.relpath(place, posixpath.dirname(source) or ".")
            return f"{image}[{text}]({relative}{'#' + parts.fragment if parts.fragment else ''})"
        return text if (ROOT / target).exists() and not image else match[0]

    return LINK.sub(led, markdown)
