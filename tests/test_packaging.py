"""The wheel and the source archive: what is in them, and that a wheel alone runs."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parent.parent

pytestmark = pytest.mark.skipif(
    find_spec("build") is None or find_spec("hatchling") is None,
    reason="needs the packages build and hatchling; runs in the second part of .ci/run",
)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dist")
    command = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(folder), str(REPOSITORY)]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    return folder


@pytest.mark.parametrize(
    ("program", "words", "files"),
    [
        ("twine", ["check", "--strict"], "*"),
        ("check_wheel_contents", [], "*.whl"),
        ("pyroma", ["--min", "10", "--skip-tests", "AuthorEmail"], "*.tar.gz"),  # the project has no address
    ],
)
def test_an_index_takes_what_is_built(program: str, words: list[str], files: str, built: Path) -> None:
    pytest.importorskip(program, reason="of the extra dev, is not installed")
    command = [sys.executable, "-m", program, *words, *map(str, built.glob(files))]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_wheel_holds_the_two_packages_and_nothing_else(built: Path) -> None:
    names = zipfile.ZipFile(next(built.glob("*.whl"))).namelist()
    tops = {name.split("/")[0] for name in names}
    beside = (".dist-info", ".data")
    assert {top for top in tops if not top.endswith(beside)} == {"stepper", "stepper_tui"}
    assert [name.partition("/")[2] for name in names if ".data/" in name] == ["data/share/man/man1/stepper.1"]
    inside = [name for name in names if not name.partition("/")[0].endswith(beside)]
    kinds = {Path(name).suffix for name in inside if Path(name).name != "LICENSE"}
    assert kinds <= {".py", ".json", ".toml", ".typed", ".tcss", ".ttf", ".js", ".css", ".html", ".xml", ".bin", ".npz"}
    pieces = {"html.js", "html.css", "html_buttons.html"}
    assert {f"stepper/export/writers/{name}" for name in pieces} <= set(names)
    fonts = {"LiberationSans-Regular.ttf", "LiberationSans-Bold.ttf", "LICENSE"}
    assert {f"stepper/export/fonts/{name}" for name in fonts} <= set(names)
    sources = {
        str(path.relative_to(place))
        for place, top in ((REPOSITORY, "stepper"), (REPOSITORY / "tui", "stepper_tui"))
        for path in (place / top).rglob("*.py")
    }
    assert {name for name in names if name.endswith(".py")} == sources
    assert any(name.endswith("licenses/LICENSE") for name in names)


def test_the_source_archive_builds_and_tests_itself(built: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        names = archive.getnames()
    tops = {name.split("/")[1] for name in names if "/" in name}
    assert {
        "LICENSE",
        "README.md",
        "CHANGELOG.md",
        "pyproject.toml",
        "stepper",
        "tui",
        "tests",
        "sample_models",
    } <= tops
    assert not [name for name in names if "__pycache__" in name or "/.venv" in name]


def test_a_users_own_modules_of_like_names_change_nothing(tmp_path: Path) -> None:
    for name in ("tui", "json", "numbers", "helper"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('my own')")
    sample = REPOSITORY / "sample_models" / "for_loop"
    words = ["run", str(sample / "model.xml"), "--inputs", str(sample / "inputs.npz")]
    for program in ([str(Path(sys.executable).with_name("stepper"))], [sys.executable, "-P", "-m", "stepper"]):
        ran = subprocess.run([*program, *words], cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False)
        assert ran.returncode == 0, ran.stderr
    (tmp_path / "json.py").unlink()
    (tmp_path / "numbers.py").unlink()
    words = [sys.executable, "-c", "import stepper_tui.app"]
    subprocess.run(words, cwd=tmp_path, capture_output=True, timeout=120, check=True)


def test_an_unpacked_wheel_runs_a_sample(built: Path, tmp_path: Path) -> None:
    zipfile.ZipFile(next(built.glob("*.whl"))).extractall(tmp_path)
    sample = REPOSITORY / "sample_models" / "for_loop"
    ran = subprocess.run(
        [sys.executable, "-m", "stepper", "run", str(sample / "model.xml"), "--inputs", str(sample / "inputs.npz")],
        cwd=tmp_path,
        env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "iterations" in ran.stdout


def test_the_page_on_an_index_has_no_link_into_the_repository(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as wheel:
        (name,) = (one for one in wheel.namelist() if one.endswith(".dist-info/METADATA"))
        text = wheel.read(name).decode()
    assert "## Where does the NaN come from? A tour" in text and "Description-Content-Type: text/markdown" in text
    assert [link for link in re.findall(r"\]\(([^)]*)\)", text) if not link.startswith("https://")] == []
