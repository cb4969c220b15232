"""Sphinx and MkDocs build pages with figures that they draw themselves; they need the extra `docs`."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from PIL import Image

from stepper.export.options import Theme
from stepper.export.styles import PALETTES
from tests.pages.build import CHROMIUM, shot

SAMPLES = Path(__file__).parents[2] / "sample_models"
GUIDE = Path(__file__).parents[2] / "docs" / "guide" / "figures-in-documents.md"
SECONDS = 180


def snippet(language: str, number: int = 0) -> str:
    """What the guide says in one of its blocks of this language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)[number]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with a model as the guide names it."""
    models = tmp_path / "models"
    models.mkdir()
    for name, target in (("model.xml", "gru.xml"), ("model.bin", "gru.bin"), ("inputs.npz", "gru.npz")):
        shutil.copy(SAMPLES / "reverse" / name, models / target)
    return tmp_path


def ran(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=SECONDS, check=False)


# --- Sphinx ---------------------------------------------------------------------------------------------------------

needs_sphinx = pytest.mark.skipif(find_spec("sphinx") is None, reason="Sphinx, of the extra docs, is not installed")


@pytest.fixture
def sphinx(project: Path) -> Path:
    """A project of Sphinx made of what the guide says."""
    (project / "conf.py").write_text(snippet("python") + 'project = "Loops"\nnumfig = True\n')
    (project / "index.rst").write_text("Loops\n=====\n\nSee :numref:`gru-run`.\n\n" + snippet("rst"))
    return project


@needs_sphinx
def test_sphinx_shows_the_figure_of_the_guide_in_html_and_latex(sphinx: Path) -> None:
    built = ran(sphinx, "sphinx", "-W", "-q", "-b", "html", ".", "out")
    assert built.returncode == 0 and not built.stderr, built.stderr
    page = (sphinx / "out" / "index.html").read_text()
    assert page.count("<svg") == 1 and "Fig. 1" in page and "iteration by iteration" in page
    discounted = 0.9**2 - 2 * 0.9**4 + 10 * 0.9**7  # the rewards of the sample that are not 0
    assert f">{discounted:.3f}<" in page, "a value of the run: text that can be searched"
    built = ran(sphinx, "sphinx", "-W", "-q", "-b", "latex", ".", "tex")
    assert built.returncode == 0, built.stderr
    (name,) = re.findall(
        r"\\sphinxincludegraphics\{\{(stepper-\w+)\}\.pdf\}", (sphinx / "tex" / "loops.tex").read_text()
    )
    assert (sphinx / "tex" / f"{name}.pdf").read_bytes().startswith(b"%PDF")
    for builder in ("text", "man", "texinfo", "epub"):
        built = ran(sphinx, "sphinx", "-q", "-b", builder, ".", builder)
        assert built.returncode == 0 and "Traceback" not in built.stderr, built.stderr


@needs_sphinx
def test_sphinx_draws_again_when_the_weights_change(sphinx: Path) -> None:
    def built() -> str:
        done = ran(sphinx, "sphinx", "-W", "-b", "html", ".", "out")
        assert done.returncode == 0, done.stderr
        return done.stdout

    built()
    assert "updating environment: 0 added, 0 changed" in built()
    weights = sphinx / "models" / "gru.bin"
    content = bytearray(weights.read_bytes())
    at = content.find(b"\x66\x66\x66\x3f")  # 0.9 in f32
    content[at : at + 4] = b"\x00\x00\x00\x3f"  # 0.5
    before = (sphinx / "out" / "index.html").read_text()
    weights.write_bytes(content)
    assert "0 added, 1 changed" in built()
    after = (sphinx / "out" / "index.html").read_text()
    assert "0.9" in before and "· 0.5" in re.sub("<[^>]*>", "", after)


@needs_sphinx
def test_sphinx_warns_with_the_line_and_builds_the_rest_with_several_processes(sphinx: Path) -> None:
    page = "\n\n.. stepper:: {}\n   :view: {}\n"
    for number in range(6):
        (sphinx / f"page_{number}.rst").write_text(f":orphan:\n\nPage\n====\n{page.format('models/gru.xml', 'rolled')}")
    bad = (
        page.format("models/gru.xml", "rolld")
        + page.format("models/none.xml", "rolled")
        + page.format("/models/gru.xml", "ports")
    )
    (sphinx / "bad.rst").write_text(f":orphan:\n\nBad\n===\n{bad}")
    built = ran(sphinx, "sphinx", "-q", "-j", "2", "-b", "html", ".", "out")
    assert built.returncode == 0 and "Traceback" not in built.stderr
    assert "bad.rst:7: WARNING: --view: 'rolld' is none of" in built.stderr
    assert "bad.rst:11: WARNING: models/none.xml: cannot be read" in built.stderr
    assert len(built.stderr.strip().splitlines()) == 2, built.stderr
    assert (sphinx / "out" / "bad.html").read_text().count("<svg") == 1, "the path with a slash is one of the sources"
    assert ran(sphinx, "sphinx", "-q", "-W", "-b", "html", ".", "strict").returncode == 1


@needs_sphinx
def test_sphinx_warns_in_each_build_until_the_figure_can_be_drawn(sphinx: Path) -> None:
    (sphinx / "late.rst").write_text(":orphan:\n\nLate\n====\n\n.. stepper:: models/late.xml\n\n   To *come*.\n")
    for _ in range(2):
        built = ran(sphinx, "sphinx", "-q", "-W", "-b", "html", ".", "out")
        assert built.returncode == 1 and "late.rst:6: WARNING: models/late.xml: cannot be read" in built.stderr
    page = (sphinx / "out" / "late.html").read_text()
    assert "This figure was not drawn: models/late.xml" in page and "To <em>come</em>" in page
    shutil.copy(sphinx / "models" / "gru.xml", sphinx / "models" / "late.xml")
    shutil.copy(sphinx / "models" / "gru.bin", sphinx / "models" / "late.bin")
    built = ran(sphinx, "sphinx", "-W", "-b", "html", ".", "out")
    assert built.returncode == 0, built.stderr
    assert "0 added, 1 changed" in built.stdout and "<svg" in (sphinx / "out" / "late.html").read_text()
    built = ran(sphinx, "sphinx", "-W", "-b", "html", ".", "out")
    assert "0 added, 0 changed" in built.stdout


@needs_sphinx
def test_sphinx_reads_pages_again_that_another_version_has_drawn(sphinx: Path) -> None:
    words = ("-W", "-b", "html", ".", "out")
    assert ran(sphinx, "sphinx", *words).returncode == 0
    (sphinx / "plain.rst").write_text(":orphan:\n\nPlain\n=====\n")
    older = "import stepper; stepper.__version__ = '0'; from sphinx.cmd.build import main; raise SystemExit(main())"
    command = [sys.executable, "-c", older, *words]
    built = subprocess.run(command, cwd=sphinx, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert built.returncode == 0 and "2 added, 0 changed" in built.stdout, built.stderr


@needs_sphinx
def test_sphinx_has_pictures_where_it_has_no_svg_and_words_where_it_has_no_pictures(sphinx: Path) -> None:
    page = sphinx / "index.rst"
    page.write_text(page.read_text().replace("   :view:", "   :alt: How it runs\n   :view:", 1))
    for builder in ("texinfo", "text", "xml", "dummy", "singlehtml"):
        built = ran(sphinx, "sphinx", "-W", "-q", "-b", builder, ".", builder)
        assert built.returncode == 0, built.stderr
    (picture,) = (sphinx / "texinfo").glob("*-figures/stepper-*.png")
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert "[image: How it runs]" in (sphinx / "text" / "index.txt").read_text()
    assert (sphinx / "singlehtml" / "index.html").read_text().count("<svg") == 1


@needs_sphinx
@pytest.mark.parametrize(("first", "second", "page", "suffix"), [
    ("html", "latex", "loops.tex", ".pdf"), ("latex", "html", "index.html", ".svg"),
])  # fmt: skip
def test_a_figure_that_another_builder_alone_cannot_draw_is_a_warning_there(
    sphinx: Path, first: str, second: str, page: str, suffix: str
) -> None:
    settings = (sphinx / "conf.py").read_text()
    assert ran(sphinx, "sphinx", "-q", "-W", "-d", "trees", "-b", first, ".", "first").returncode == 0
    (sphinx / "conf.py").write_text(f"""{settings}
from stepper.integrations import documents as figure

whole = figure.draw

def draw(words, folder, target):
    if target.suffix == {suffix!r}:
        raise figure.FigureFailed("no <room>")
    whole(words, folder, target)

figure.draw = draw
""")
    built = ran(sphinx, "sphinx", "-q", "-j", "2", "-d", "trees", "-b", second, ".", "second")
    assert built.returncode == 0 and "Traceback" not in built.stderr
    assert re.search(r"index\.rst:6: WARNING: no <room>", built.stderr), built.stderr
    text = (sphinx / "second" / page).read_text()
    assert "This figure was not drawn" in text and "iteration by iteration" in text, "the caption stays"


# --- MkDocs ---------------------------------------------------------------------------------------------------------

needs_mkdocs = pytest.mark.skipif(find_spec("mkdocs") is None, reason="MkDocs, of the extra docs, is not installed")


@pytest.fixture
def mkdocs(project: Path) -> Path:
    """A project of MkDocs made of what the guide says."""
    (project / "mkdocs.yml").write_text(f"site_name: Loops\nuse_directory_urls: false\n{snippet('yaml')}")
    fence = re.findall(r"^````markdown\n(```stepper.*?```\n)````$", GUIDE.read_text(), re.MULTILINE | re.DOTALL)[0]
    fence = fence.replace("sample_models/reverse/model.xml", "models/gru.xml")
    fence = fence.replace("sample_models/reverse/inputs.npz", "models/gru.npz")
    (project / "docs").mkdir()
    (project / "docs" / "index.md").write_text(
        f"# Loops\n\n{fence}\n* once more:\n\n    {fence.replace(chr(10), chr(10) + '    ')}"
    )
    return project


@needs_mkdocs
def test_mkdocs_shows_the_figure_of_the_guide_in_a_page_and_in_a_list(mkdocs: Path) -> None:
    built = ran(mkdocs, "mkdocs", "build", "--strict")
    assert built.returncode == 0, built.stderr
    page = (mkdocs / "site" / "index.html").read_text()
    assert page.count("<svg") == page.count("<figcaption>") == 2
    identifiers = re.findall(r'<\w+[^>]* id="(s[0-9a-f]{8}[^"]*)"', page)
    assert len(identifiers) >= 4 and len(set(identifiers)) == len(identifiers)
    assert len(list((mkdocs / ".cache" / "stepper").glob("*.svg"))) == 1, "drawn once"


@needs_mkdocs
def test_links_lead_to_a_figure_with_a_name(mkdocs: Path) -> None:
    text = "# Named\n\n[There](#run) and [here](#body).\n\n"
    text += "```stepper\nmodels/gru.xml\nview: ports\nname: run\nclass: wide new\n```\n\n"
    text += "```{.stepper #body .wide}\nmodels/gru.xml\nview: rolled\ncarried\n```\n"
    (mkdocs / "docs" / "named.md").write_text(text)
    (mkdocs / "mkdocs.yml").write_text((mkdocs / "mkdocs.yml").read_text() + "validation: {links: {anchors: warn}}\n")
    built = ran(mkdocs, "mkdocs", "build", "--strict")
    page = (mkdocs / "site" / "named.html").read_text()
    assert '<figure id="run" class="stepper wide new">' in page and '<figure id="body" class="stepper wide">' in page
    assert built.returncode == 0, built.stderr


@needs_mkdocs
def test_mkdocs_warns_with_page_and_line(mkdocs: Path) -> None:
    text = "# Bad\n\nText.\n\n```stepper\nmodels/gru.xml\nview: <rolld>\n```\n\n```stepper\n```\n"
    (mkdocs / "docs" / "bad.md").write_text(text)
    built = ran(mkdocs, "mkdocs", "build")
    assert built.returncode == 0
    assert "bad.md:5: --view: '<rolld>' is none of" in built.stderr
    assert "bad.md:10: a figure needs a model" in built.stderr
    page = (mkdocs / "site" / "bad.html").read_text()
    assert page.count('stepper-error"') == 2 and "<rolld>" not in page
    assert ran(mkdocs, "mkdocs", "build", "--strict").returncode == 1


@needs_mkdocs
@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize(("scheme", "theme"), [("default", Theme.LIGHT), ("slate", Theme.DARK)])
@pytest.mark.parametrize("is_dark", [False, True], ids=["light reader", "dark reader"])
def test_a_figure_is_light_or_dark_as_the_page_is(mkdocs: Path, scheme: str, theme: Theme, is_dark: bool) -> None:
    settings = mkdocs / "mkdocs.yml"
    look = f"theme: {{name: material, font: false, palette: {{scheme: {scheme}}}}}\n"
    settings.write_text(settings.read_text() + look)
    built = ran(mkdocs, "mkdocs", "build", "--strict")
    assert built.returncode == 0, built.stderr
    picture = shot(mkdocs / "site" / "index.html", mkdocs / "page.png", (1300, 900), dark=is_dark)
    with Image.open(picture) as image:
        found = {f"#{r:02x}{g:02x}{b:02x}" for _, (r, g, b) in image.convert("RGB").getcolors(1 << 24)}  # type: ignore[misc]
    other = Theme.LIGHT if theme is Theme.DARK else Theme.DARK
    assert {PALETTES[theme]["in"], PALETTES[theme]["out"]} <= found
    assert not {PALETTES[other]["in"], PALETTES[other]["out"]} & found
