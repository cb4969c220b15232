"""A repository of a user, made from nothing as the pages of the documentation say: test, hooks, pages with a figure."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.test_docs import fences

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "sample_models" / "for_loop"
GUIDE, PYTEST, CI = (
    ROOT / "docs" / page for page in ("guide/figures-in-documents.md", "guide/pytest.md", "tasks/use-it-in-ci.md")
)
PACKED = ("stepper", "tui", "docs", "pyproject.toml", "README.md", "LICENSE", ".pre-commit-hooks.yaml")
LAST = f">{1000 * 1.05**10:.2f} at 1<"
SECONDS = 300

pytestmark = pytest.mark.skipif(shutil.which("git") is None, reason="needs git")


def snippet(page: Path, language: str, having: str = "") -> str:
    """What a page has in the first fence of a language that has some text."""
    return next(fence.text for fence in fences(page) if fence.language == language and having in fence.text)


class UsersRepository:
    """A repository with a model; its programs run as a user calls them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("GIT_", "PYTEST_"))
        }
        self.environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "CI": ""}
        self.git("init", "-q")
        for name in ("model.xml", "model.bin", "inputs.npz"):
            shutil.copy(SAMPLE / name, folder / name)

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        """What a command does."""
        return subprocess.run(
            words, cwd=self.folder, env=self.environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )

    def python(self, *words: str) -> subprocess.CompletedProcess[str]:
        """What a program of this environment does."""
        return self.run(sys.executable, "-m", *words)

    def git(self, *words: str) -> str:
        """What git says."""
        settings = ("-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false")
        done = self.run("git", *settings, *words)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def write(self, name: str, text: str) -> None:
        """Write a file of the repository."""
        (self.folder / name).parent.mkdir(exist_ok=True, parents=True)
        (self.folder / name).write_text(text, encoding="utf-8")

    def change_model(self, text: str, other: str) -> None:
        """Put another text into the model."""
        model = (self.folder / "model.xml").read_text(encoding="utf-8")
        assert text in model
        self.write("model.xml", model.replace(text, other))


@pytest.fixture
def repository(tmp_path: Path) -> UsersRepository:
    return UsersRepository(tmp_path / "repository")


# --- pytest -----------------------------------------------------------------------------------------------------------


@pytest.mark.skipif(not list(entry_points(group="pytest11", name="stepper")), reason="stepper is not installed")
def test_the_tests_of_the_page_pass_and_fail_with_what_it_shows(repository: UsersRepository) -> None:
    repository.write("test_loops.py", snippet(PYTEST, 'py title="test_loops.py"'))
    first = repository.python("pytest", "-q")
    assert first.returncode == 1 and "pytest --stepper-update records it from this run" in first.stdout
    assert repository.python("pytest", "--stepper-update", "-q").returncode == 0
    again = repository.python("pytest", "-q")
    assert again.returncode == 0 and "3 passed" in again.stdout, again.stdout
    assert "?? good_run.sqlite" in repository.git("status", "--short").splitlines(), "a file to commit"

    shown = snippet(PYTEST, "text", "E       Failed")
    (call,) = re.findall(r"^>       (.*)$", shown, re.MULTILINE)
    repository.write("test_loops.py", f"def test_the_loop_runs_ten_years(stepper_run):\n    {call}\n")
    failed = repository.python("pytest", "-q", "--stepper-trace", "kept")
    lines = [line for line in shown.splitlines() if line.startswith(("E", ">"))]
    assert len(lines) == 7
    for line in lines:
        assert line.partition(" --inputs ")[0] in failed.stdout, failed.stdout
    assert {path.name for path in (repository.folder / "kept").rglob("*.*") if path.is_file()} == {
        "inputs.npz",
        "run.sqlite",
    }
    (command,) = re.findall(r"open it: stepper (.*)", failed.stdout)
    opened = repository.python("stepper", "run", *command.split())
    assert opened.returncode == 0 and "10 iterations" in opened.stdout, opened.stderr


# --- pages ------------------------------------------------------------------------------------------------------------


def named_as_here(text: str) -> str:
    """A snippet with the names of this repository."""
    for name in ("models/gru", "sample_models/reverse/model"):
        text = text.replace(f"{name}.xml", "model.xml").replace(f"{name}.npz", "inputs.npz")
    return text.replace("sample_models/reverse/inputs.npz", "inputs.npz").replace("[models]", "[model.xml]")


@pytest.mark.skipif(find_spec("sphinx") is None, reason="Sphinx, of the extra docs, is not installed")
def test_a_page_of_sphinx_has_the_figure(repository: UsersRepository) -> None:
    repository.write("conf.py", snippet(GUIDE, "python"))
    repository.write("index.rst", f"Loops\n=====\n\n{named_as_here(snippet(GUIDE, 'rst'))}")
    built = repository.python("sphinx", "-q", "-W", "-b", "html", ".", "_build")
    assert built.returncode == 0, built.stderr
    page = (repository.folder / "_build" / "index.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 1 and LAST in page, "the largest balance after ten years"


@pytest.mark.skipif(find_spec("material") is None, reason="MkDocs, of the extra docs, is not installed")
def test_a_page_of_mkdocs_has_the_figure(repository: UsersRepository) -> None:
    repository.write("mkdocs.yml", f"site_name: Loops\n{named_as_here(snippet(GUIDE, 'yaml'))}")
    text = GUIDE.read_text(encoding="utf-8")
    (fence,) = re.findall(r"^````markdown\n(```stepper.*?)^````$", text, re.MULTILINE | re.DOTALL)
    repository.write("docs/index.md", f"# Loops\n\n{named_as_here(fence)}")
    built = repository.python("mkdocs", "build", "-q", "--strict")
    assert built.returncode == 0, built.stderr
    page = (repository.folder / "site" / "index.html").read_text(encoding="utf-8")
    assert page.count("<svg") == 1 and LAST in page, "the largest balance after ten years"
    assert not [line for line in repository.git("status", "--short").splitlines() if ".cache" in line]


def test_what_quarto_runs_before_it_renders_writes_what_its_pages_name(repository: UsersRepository) -> None:
    repository.write("figures.toml", named_as_here(snippet(GUIDE, "toml")))
    settings, page = snippet(GUIDE, 'yaml title="_quarto.yml"'), snippet(GUIDE, "markdown", "{#fig-")
    (command,) = re.findall(r"pre-render: stepper (.*)", settings)
    drawn = repository.python("stepper", *command.split())
    assert drawn.returncode == 0, drawn.stderr
    (figure,) = re.findall(r"\]\((.*?)\)\{#fig-", page)
    for kind, begins in (("svg", b"<svg"), ("pdf", b"%PDF")):
        assert f"default-image-extension: {kind}" in settings
        assert (repository.folder / f"{figure}.{kind}").read_bytes().startswith(begins)


# --- hooks ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def hooks(tmp_path: Path) -> UsersRepository:
    """This project as a repository that pre-commit clones: its files may be those of an archive without one."""
    cloned = UsersRepository(tmp_path / "stepper")
    for name in PACKED:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, cloned.folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(ROOT / name, cloned.folder / name)
    cloned.git("add", "--all")
    cloned.git("commit", "-q", "--message", "As it is here")
    return cloned


@pytest.mark.skipif(find_spec("pre_commit") is None, reason="pre-commit, of the extra dev, is not installed")
@pytest.mark.skipif(os.environ.get("STEPPER_CLIENTS") != "all", reason="needs minutes; STEPPER_CLIENTS=all runs it")
def test_hooks_stop_the_commit_of_a_model_with_a_fault(
    repository: UsersRepository, hooks: UsersRepository, tmp_path: Path
) -> None:
    packages = repository.python("pip", "download", "-q", "--no-deps", "-d", str(tmp_path / "packages"), "hatchling")
    if packages.returncode:
        pytest.skip("no registry of packages is reached, from which pre-commit installs what a hook needs")
    said = snippet(CI, "yaml", "stepper-lint")
    said = said.replace("https://example.org/stepper", str(hooks.folder))
    said = said.replace("rev: REVISION", f"rev: {hooks.git('rev-parse', 'HEAD').strip()}")
    repository.write(".pre-commit-config.yaml", said)
    repository.write("pom.xml", "<project/>\n")
    repository.environment["PRE_COMMIT_HOME"] = str(tmp_path / "hooks")
    repository.environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    installed = repository.run("pre-commit", "install", "--install-hooks")
    assert installed.returncode == 0, installed.stdout + installed.stderr

    repository.git("add", "--all")
    repository.git("commit", "--message", "A model")
    assert repository.git("status", "--short") == ""
    repository.change_model('from-layer="11" to-layer="1"', 'from-layer="77" to-layer="1"')
    refused = repository.run("git", "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-a", "--message", "Broken")
    said = refused.stdout + refused.stderr
    assert refused.returncode == 1 and "model.xml:43: error B101 back-edge-from-no-result" in said, said
    assert "stepper check" in said and said.count("Failed") == 2, said
    assert repository.git("log", "--format=%s").splitlines() == ["A model"]
