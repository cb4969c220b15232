"""Build the four pages and pictures of them: `python -m tests.pages.build OUT`.

A page whose program is missing is left out.
"""

from __future__ import annotations

import importlib
import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from stepper.cli import main as stepper

SOURCES: Final = Path(__file__).parent / "sources"
SAMPLES: Final = Path(__file__).parents[2] / "sample_models"
CHROMIUM: Final = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
PDFLATEX: Final = shutil.which("pdflatex")
HAS_SPHINX: Final = importlib.util.find_spec("sphinx") is not None
HAS_MARKDOWN: Final = importlib.util.find_spec("markdown") is not None
PACKAGES: Final = (
    "fncychap.sty",
    "tabulary.sty",
    "capt-of.sty",
    "varwidth.sty",
    "extarticle.cls",
    "tikz.sty",
    "helvet.sty",
    "phvr8t.tfm",
)
"""What the pages need of LaTeX.

Debian has all in texlive-latex-extra, texlive-pictures and texlive-fonts-recommended.
"""


def has_latex() -> bool:
    """True if LaTeX is installed with the packages of the pages."""
    kpsewhich = shutil.which("kpsewhich")
    if PDFLATEX is None or kpsewhich is None:
        return False
    found = subprocess.run([kpsewhich, *PACKAGES], capture_output=True, text=True, timeout=60, check=False)
    return len(found.stdout.split()) == len(PACKAGES)


def figures(out: Path) -> None:
    """Copy the sources and draw their figures."""
    shutil.copytree(SOURCES, out, dirs_exist_ok=True)
    for name in ("while_loop", "date_normaliser", "nested_loop", "reverse"):
        shutil.copytree(
            SAMPLES / name, out / "models" / name, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.svg")
        )
    assert stepper(["figures", "--file", str(out / "figures.toml"), "--quiet"]) == 0


def readme(out: Path) -> Mapping[str, Path]:
    """Return pictures of the README on a light and a dark page."""
    if not HAS_MARKDOWN or CHROMIUM is None:
        return {}
    markdown = importlib.import_module("markdown")
    body = markdown.markdown((out / "README.md").read_text(encoding="utf-8"), extensions=["tables", "md_in_html"])
    head = '<!DOCTYPE html><html lang="en"><meta charset="utf-8"><link rel="stylesheet" href="page.css">'
    (out / "readme.html").write_text(f"{head}<main>{body}</main></html>", encoding="utf-8")
    return {
        scheme: shot(out / "readme.html", out / f"readme-{scheme}.png", (952, 3000), dark=scheme == "dark")
        for scheme in ("light", "dark")
    }


def documentation(out: Path) -> Mapping[str, Path]:
    """Return the documentation of Sphinx, which draws its figures, as pictures of its HTML and as PDF."""
    made: dict[str, Path] = {}
    if not HAS_SPHINX:
        return made
    for builder in ("html", "latex"):
        words = ["-m", "sphinx", "-q", "-W", "-b", builder, str(out / "sphinx"), str(out / builder)]
        run([sys.executable, *words], out)
    if CHROMIUM is not None:
        for name, dark in (("html", False), ("html for readers of dark pages", True)):
            made[name] = shot(out / "html" / "index.html", out / f"sphinx{'-dark' * dark}.png", (1000, 2400), dark=dark)
    if has_latex():
        made["pdf"] = latex(out / "latex", "loops")
    return made


def paper(out: Path) -> Mapping[str, Path]:
    """Return the paper as PDF."""
    return {"pdf": latex(out / "paper", "paper")} if has_latex() else {}


def slide(out: Path) -> Mapping[str, Path]:
    """Return a picture of the slides, light above dark."""
    return {} if CHROMIUM is None else {"png": shot(out / "slide.html", out / "slide.png", (1280, 1440))}


def shot(page: Path, picture: Path, size: tuple[int, int], *, dark: bool = False) -> Path:
    """Return a picture of a page as Chromium shows it."""
    assert CHROMIUM is not None
    words = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--force-color-profile=srgb"]
    words += [f"--blink-settings=preferredColorScheme={0 if dark else 1}", f"--screenshot={picture}"]
    run([*words, f"--window-size={size[0]},{size[1]}", page.resolve().as_uri()], picture.parent)
    return picture


def latex(folder: Path, name: str) -> Path:
    """Return a document as PDF; twice, for its references."""
    assert PDFLATEX is not None
    for _ in range(2):
        run([PDFLATEX, "-interaction=nonstopmode", "-halt-on-error", f"{name}.tex"], folder)
    return folder / f"{name}.pdf"


def run(words: list[str], folder: Path) -> None:
    """Run a program in a folder. Raise RuntimeError with what it says where it fails."""
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, errors="replace", timeout=180, check=False)
    if done.returncode:
        raise RuntimeError(f"{words[0]} ended with {done.returncode}: {(done.stdout + done.stderr)[-2000:]}")


def main(out: Path) -> None:
    """Build all pages and print where they are."""
    figures(out)
    for name, build in (("README", readme), ("documentation", documentation), ("paper", paper), ("slide", slide)):
        made = build(out)
        print(f"{name}: {', '.join(map(str, made.values())) or 'left out, a program is missing'}")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
