"""The documentation as a site: `python -m docs.site FOLDER [--no-outputs]`, with `pip install '.[docs]'`.

Zensical builds it from a copy of the pages: pages and pictures beside docs/ belong to the site, and notebooks become
pages with their outputs. `--no-outputs` shows notebooks without running them. A broken link or figure is an error.
"""

from __future__ import annotations

import argparse
import json
import posixpath
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

ROOT: Final = Path(__file__).parents[1]
LINK: Final = re.compile(r"(!?)\[((?:[^][]|\[[^][]*\])*)\]\(([^)\s]+)\)")
LEFT_OUT: Final = shutil.ignore_patterns("*.py", "*.yml", "*.1", "__pycache__", "measured", "notebooks")


def beside() -> Iterator[Path]:
    """Yield the files outside of docs/ that are part of the site."""
    yield from (ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md")
    for pattern in ("*.md", "*/**/*.svg", "*/*.html"):
        yield from sorted((ROOT / "sample_models").glob(pattern))


def copy_pages(folder: Path, *, with_outputs: bool) -> None:
    """Copy all pages below `folder`/docs, with links that hold there."""
    pages = folder / "docs"
    shutil.copytree(ROOT / "docs", pages, ignore=LEFT_OUT)
    origins = {path: path for path in pages.rglob("*.md")}
    for path in origins:
        origins[path] = ROOT / "docs" / path.relative_to(pages)
    for path in beside():
        copy = pages / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
        if path.suffix == ".md":
            origins[copy] = path
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        copy = pages / "notebooks" / f"{path.stem}.md"
        copy.parent.mkdir(exist_ok=True)
        copy.write_text("".join(notebook_lines(path, with_outputs=with_outputs)), encoding="utf-8")
        origins[copy] = path
    for copy, origin in origins.items():
        copy.write_text(with_links(copy, origin, pages), encoding="utf-8")
    settings = (ROOT / "docs" / "site.yml").read_text(encoding="utf-8")
    (folder / "mkdocs.yml").write_text(settings, encoding="utf-8")
    (folder / "sample_models").symlink_to(ROOT / "sample_models")


def with_links(copy: Path, origin: Path, pages: Path) -> str:
    """Return the text of a copied page; a link to a file outside of the site becomes its text."""
    at, source = origin.relative_to(ROOT).as_posix(), copy.relative_to(pages).as_posix()

    def led(match: re.Match[str]) -> str:
        image, text, link = match.groups()
        parts = urlsplit(link)
        if parts.scheme or not parts.path or parts.path.startswith("/"):
            return match[0]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(at), parts.path))
        place = target.removeprefix("docs/").replace(".ipynb", ".md")
        if (pages / place).exists():
            relative = posixpath.relpath(place, posixpath.dirname(source) or ".")
            return f"{image}[{text}]({relative}{'#' + parts.fragment if parts.fragment else ''})"
        return text if (ROOT / target).exists() and not image else match[0]

    return LINK.sub(led, copy.read_text(encoding="utf-8"))


def notebook_lines(path: Path, *, with_outputs: bool) -> Iterator[str]:
    """Yield a notebook as Markdown: text, code and, if asked for, what the cells show."""
    notebook: Any = json.loads(path.read_text(encoding="utf-8"))
    if with_outputs:
        import nbformat
        from nbclient import NotebookClient

        notebook = nbformat.reads(path.read_text(encoding="utf-8"), as_version=4)
        NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(path.parent)}}).execute()
    for cell in notebook["cells"]:
        source = "".join(cell["source"])
        yield f"{source}\n\n" if cell["cell_type"] == "markdown" else f"```python\n{source}\n```\n\n"
        for output in cell.get("outputs", ()):
            yield shown(output)


def shown(output: Any) -> str:
    """Return an output of a cell as a block of Markdown."""
    data = output.get("data", {})
    for kind in ("text/html", "image/svg+xml"):
        if kind in data:
            # a blank line would end a block of HTML
            block = re.sub(r"\n\s*\n", "\n", "".join(data[kind]))
            return f'<div class="output">{block}</div>\n\n'
    text = "".join(data.get("text/plain", output.get("text", "")))
    return f'```text title="output"\n{text.rstrip()}\n```\n\n' if text.strip() else ""


def build(site: Path, *, with_outputs: bool) -> None:
    """Build the site. RuntimeError for a broken link, a figure that cannot be drawn, or what a network serves."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_pages(folder, with_outputs=with_outputs)
        words = [sys.executable, "-m", "zensical", "build", "--strict"]
        done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(done.stdout + done.stderr)
        shutil.rmtree(site, ignore_errors=True)
        shutil.copytree(folder / "site", site)
    loaded = re.compile(r"<(?:script|link|img|iframe)[^>]* (?:src|href)=.(?:https?:)?//")
    for path in site.rglob("*.html"):
        text = path.read_text(encoding="utf-8")
        if "stepper-error" in text:
            raise RuntimeError(f"{path.relative_to(site)}: a figure was not drawn")
        if loaded.search(text):
            raise RuntimeError(f"{path.relative_to(site)}: something comes from a network")


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    options.add_argument("folder", type=Path, help="where the site is written; an older one there is replaced")
    options.add_argument("--no-outputs", action="store_true", help="do not run the notebooks")
    given = options.parse_args()
    build(given.folder, with_outputs=not given.no_outputs)
