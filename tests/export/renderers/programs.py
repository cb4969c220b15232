"""Programs that draw SVG, each as a function from SVG text to pixels; None where a program is not installed."""

from __future__ import annotations

import base64
import importlib
import io
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pypdfium2 as pdfium  # type: ignore[import-untyped]
from PIL import Image

Pixels = np.ndarray[Any, Any]
Draw = Callable[[str], Pixels]
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)


def size_of(svg: str) -> tuple[int, int]:
    found = re.search(r'width="([\d.]+)" height="([\d.]+)"', svg)
    assert found is not None
    return round(float(found[1])), round(float(found[2]))


def pixels(content: bytes) -> Pixels:
    image = Image.open(io.BytesIO(content)).convert("RGBA")
    ground = Image.new("RGBA", image.size, "white")
    return np.asarray(Image.alpha_composite(ground, image).convert("RGB"), np.float64)


def with_rsvg(svg: str) -> Pixels:
    found = subprocess.run(["rsvg-convert"], input=svg.encode(), capture_output=True, check=True, timeout=120)
    return pixels(found.stdout)


def with_cairosvg(svg: str) -> Pixels:
    return pixels(importlib.import_module("cairosvg").svg2png(bytestring=svg.encode()))


def pdf_of_weasyprint(svg: str) -> Any:
    """The page of a PDF with the figure as an image."""
    wide, high = size_of(svg)
    source = base64.b64encode(svg.encode()).decode()
    page = (
        f"<style>@page {{ size: {wide}px {high}px; margin: 0 }} body {{ margin: 0 }} img {{ display: block }}</style>"
    )
    html = importlib.import_module("weasyprint").HTML(string=f'{page}<img src="data:image/svg+xml;base64,{source}">')
    return pdfium.PdfDocument(html.write_pdf())[0]


def with_weasyprint(svg: str) -> Pixels:
    image = pdf_of_weasyprint(svg).render(scale=96 / 72).to_pil().convert("RGB").resize(size_of(svg))
    return np.asarray(image, np.float64)


def with_chromium(svg: str) -> Pixels:
    wide, high = size_of(svg)
    with TemporaryDirectory() as folder:
        page, shot = Path(folder) / "page.html", Path(folder) / "shot.png"
        (Path(folder) / "figure.svg").write_text(svg, encoding="utf-8")
        page.write_text('<body style="margin:0"><img src="figure.svg" style="display:block">', encoding="utf-8")
        words = [str(CHROMIUM), "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        words += ["--font-render-hinting=none", f"--window-size={wide},{high}", f"--screenshot={shot}", page.as_uri()]
        subprocess.run(words, capture_output=True, check=True, timeout=120)
        return pixels(shot.read_bytes())[:high, :wide]


def with_inkscape(svg: str) -> Pixels:
    words = ["inkscape", "--pipe", "--export-type=png", "--export-filename=-"]
    return pixels(subprocess.run(words, input=svg.encode(), capture_output=True, check=True, timeout=120).stdout)


def _imports(name: str) -> bool:
    try:
        importlib.import_module(name)
    except (ImportError, OSError):
        return False
    return True


PROGRAMS: dict[str, Draw | None] = {
    "rsvg-convert": with_rsvg if shutil.which("rsvg-convert") else None,
    "CairoSVG": with_cairosvg if _imports("cairosvg") else None,
    "WeasyPrint": with_weasyprint if _imports("weasyprint") else None,
    "Chromium": with_chromium if CHROMIUM else None,
    "Inkscape": with_inkscape if shutil.which("inkscape") else None,
}


def has_font() -> bool:
    """Whether programs that take their fonts from the system find one with the widths of the figure's."""
    if shutil.which("fc-match") is None:
        return False
    found = subprocess.run(["fc-match", "Liberation Sans"], capture_output=True, text=True, check=True, timeout=60)
    return any(name in found.stdout for name in ("Liberation Sans", "Arimo", "Arial"))
