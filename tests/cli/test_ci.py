"""`lint` and `check` where commits and pipelines call them: changed files, hooks, JUnit, the step of an action."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from stepper.cli.parser import parsed
from stepper.diagnosis.rule import rules
from stepper.files import work_tree
from tests.cli.conftest import Call
from tests.diagnosis.lint.rule_examples import broken, sound, weights

ROOT = Path(__file__).parents[2]
SOUND = sound("counting")
ODD = 'a "b"\n\tü\\$(touch x).xml'


def faulty(name: str = "two-back-edges-to-one-parameter") -> str:
    example = rules()[name].example
    assert example is not None
    return broken(example)


def git(*words: str) -> None:
    settings = (
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "-c",
        "commit.gpgsign=false",
        "-c",
        "core.hooksPath=/dev/null",
    )
    subprocess.run(["git", *settings, *words], check=True, capture_output=True, timeout=60)


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository in which models and other XML are committed."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    folder = tmp_path / "repository"
    (folder / "inner").mkdir(parents=True)
    monkeypatch.chdir(folder)
    for name in ("kept.xml", "gone.xml", "inner/model.xml", ODD):
        Path(name).write_text(SOUND)
    Path("inner/model.bin").write_bytes(weights("counting"))
    Path("pom.xml").write_text("<!-- <net> --><project/>")
    git("init", "-q")
    git("add", ".")
    git("commit", "-q", "-m", "first")
    return folder


def files(call: Call, *words: str) -> set[str]:
    """The files that are looked at, as JUnit names them."""
    answer = call("lint", *words, "--junit", "found.xml")
    assert answer.code in (0, 1), answer.err
    suites = ElementTree.parse("found.xml").getroot().iter("testsuite")
    return {str(suite.get("name")) for suite in suites if suite.get("file")}


def test_models_that_differ_from_a_commit_are_looked_at_and_nothing_else(
    call: Call, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert call("lint", "--changed", "--junit", "none.xml").out == "nothing is wrong in 0 models\n"
    suites = ElementTree.parse("none.xml").getroot()
    assert suites.get("tests") == "1" and len(suites.findall("testsuite/testcase")) == 1, "Jenkins fails without a test"
    Path("none.xml").unlink()
    (repository / ODD).write_text(faulty())
    Path("pom.xml").write_text("<project>other</project>")
    Path("new.xml").write_text(SOUND)
    Path(".gitignore").write_text("ignored.xml\nfound.xml\n")
    Path("ignored.xml").write_text(SOUND)
    Path("gone.xml").unlink()
    odd = "".join(letter if letter.isprintable() else " " for letter in ODD)
    assert files(call, "--changed") == {odd, "new.xml"}
    assert call("lint", "--changed").code == 1 and not (repository / "x").exists()
    git("add", ".")
    assert files(call, "--changed") == {odd, "new.xml"}, "what is staged differs, too"
    git("commit", "-q", "-m", "second")
    assert files(call, "--changed") == set()
    assert files(call, "--changed", "HEAD~1") == {odd, "new.xml"}
    Path("inner/model.bin").write_bytes(b"")
    monkeypatch.chdir("inner")
    assert files(call, "--changed") == {"model.xml"}, "its weights are part of a model"


def test_links_and_pipes_are_neither_followed_out_of_the_repository_nor_waited_for(
    call: Call, repository: Path
) -> None:
    (repository.parent / "outside.xml").write_text(faulty())
    Path("out.xml").symlink_to("../outside.xml")
    Path("linked.xml").symlink_to("kept.xml")
    os.mkfifo(".git/pipe")
    Path("pipe.xml").symlink_to(".git/pipe")
    assert files(call, "--changed") == {"linked.xml"}
    assert call("lint", "kept.xml", "--junit", os.devnull).code == 0


@pytest.mark.parametrize("key", ["clean", "process"])
def test_programs_that_the_settings_of_a_repository_name_are_not_started(
    call: Call, repository: Path, key: str
) -> None:
    Path(".git/info/attributes").write_text("*.xml filter=a=b.c\n")
    git("config", f"filter.a=b.c.{key}", "touch ../started; cat")
    git("config", "filter.a=b.c.required", "true")
    git("config", "core.fsmonitor", "touch ../started")
    Path("kept.xml").write_text(faulty())
    assert files(call, "--changed") == {"kept.xml"}
    assert not list(repository.parent.glob("**/started"))


def test_before_the_first_commit_every_model_is_new(call: Call, repository: Path) -> None:
    git("checkout", "-q", "--orphan", "other")
    assert {"kept.xml", "inner/model.xml"} <= files(call, "--changed")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--changed", "nowhere"), "stepper: --changed: git knows no commit 'nowhere' here\n"),
        (("--changed=--output=x",), "stepper: --changed: git knows no commit '--output=x' here\n"),
        (("kept.xml", "--changed"), "stepper: --changed finds the models itself: leave MODEL out, or name a commit"),
    ],
)
def test_what_git_does_not_know_is_one_sentence(
    call: Call, repository: Path, words: tuple[str, ...], message: str
) -> None:
    answer = call("lint", *words)
    assert answer.code == 2 and answer.err.startswith(message) and answer.err.count("\n") == 1
    assert not (repository / "x").exists()


def test_without_a_work_tree_without_git_and_where_git_hangs_one_sentence_says_so(
    call: Call, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(repository.parent)
    assert call("lint", "--changed").err.startswith("stepper: --changed needs a work tree of git around ")
    monkeypatch.setattr(work_tree, "_SECONDS", 0.2)
    (repository / "git").write_text("#!/bin/sh\nexec sleep 20\n")
    (repository / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{repository}:{os.environ['PATH']}")
    assert "git rev-parse did not answer within" in call("lint", "--changed").err
    monkeypatch.setenv("PATH", str(repository / "inner"))
    answer = call("lint", "--changed")
    assert answer.code == 2 and answer.err.startswith("stepper: --changed: git cannot be asked: ")


def test_no_program_that_a_repository_names_is_started(call: Call, repository: Path) -> None:
    Path("program").write_text(f"#!/bin/sh\ntouch {shlex.quote(str(repository / 'started'))}\n")
    Path("program").chmod(0o755)
    Path(".gitattributes").write_text("*.xml diff=own\n")
    for name in ("core.fsmonitor", "diff.external", "diff.own.textconv", "diff.own.command", "core.pager"):
        git("config", name, str(repository / "program"))
    (repository / "started").unlink(missing_ok=True)
    Path("kept.xml").write_text(faulty())
    assert call("lint", "--changed").code == 1 and not (repository / "started").exists()


JUNIT = {
    "testsuites": (("name", "tests", "failures", "errors", "time"), (), ("testsuite",)),
    "testsuite": (("file", "time", "skipped"), ("name", "tests", "failures", "errors"), ("testcase", "system-out")),
    "testcase": (("classname", "time"), ("name",), ("failure", "error", "skipped", "system-out")),
    "failure": (("type", "message"), (), ()),
    "system-out": ((), (), ()),
}
"""Of each element: attributes that it may have, those that it must have, and the elements that may stand in it."""


def test_junit_has_what_its_readers_ask_for(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What may stand where in junit-10.xsd of Jenkins' xUnit plugin; GitLab reads names, classes, texts of failures."""
    monkeypatch.chdir(tmp_path)
    Path("good.xml").write_text(SOUND)
    Path("bad.xml").write_text(faulty())
    Path("noted.xml").write_text(faulty("output-from-old-state"))
    for name in ("good.bin", "bad.bin", "noted.bin"):
        Path(name).write_bytes(weights("counting"))
    assert call("lint", "good.xml", "bad.xml", "noted.xml", "--junit", "found.xml").code == 1
    root = ElementTree.parse("found.xml").getroot()
    assert (root.tag, root.get("tests"), root.get("failures"), root.get("errors")) == ("testsuites", "4", "1", "0")
    for element in root.iter():
        may_have, must_have, may_hold = JUNIT[element.tag]
        assert {*must_have} <= {*element.keys()} <= {*must_have, *may_have}, element.tag
        assert {child.tag for child in element} <= {*may_hold}, element.tag
    for suite in root:
        cases = suite.findall("testcase")
        assert suite.get("tests") == str(len(cases)) and suite.get("failures") == str(len(suite.findall("*/failure")))
        assert all(case.get("name") and case.get("classname") == suite.get("name") for case in cases)
    (failure,) = root.iter("failure")
    (case,) = root.findall("testsuite[@name='bad.xml']/testcase")
    assert case.get("name") == "B201 two-back-edges-to-one-parameter" and case.find("failure") is failure
    assert failure.get("type") == "error" and "counting" in str(failure.get("message"))
    assert re.match(r"bad\.xml:\d+: error: .*\nso: .*\ndo: ", str(failure.text))
    told = [str(one.text) for one in root.iter("system-out")]
    assert len(told) == 2 and all(text.startswith("noted.xml:") for text in told), "notes do not fail"


def test_check_fails_in_junit_from_the_severity_on_that_is_asked_for(call: Call, tmp_path: Path) -> None:
    model = ROOT / "sample_models" / "rwkv_overflow" / "model.xml"
    words = ("check", model, "--inputs", model.with_name("inputs.npz"), "--with", "none", "--junit", tmp_path / "a.xml")
    assert call(*words).code == 1
    (failure,) = ElementTree.parse(tmp_path / "a.xml").getroot().iter("failure")
    assert failure.get("type") == "error" and "iteration 7" in str(failure.get("message"))
    assert "see: goto exp_key@7" in str(failure.text)


def test_junit_is_not_written_over_a_model(call: Call, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("one.xml", "two.xml"):
        Path(name).write_text(SOUND)
    for name in ("one.xml", "two.xml"):
        answer = call("lint", "one.xml", "--junit", name)
        assert answer.code == 2 and "that is " in answer.err and Path(name).read_text() == SOUND


def test_a_server_shows_the_help_of_a_rule(call: Call, tmp_path: Path) -> None:
    (tmp_path / "model.xml").write_text(SOUND)
    assert call("lint", tmp_path / "model.xml", "--sarif", tmp_path / "log").code == 0
    (run,) = json.loads((tmp_path / "log").read_text())["runs"]
    known = {one["name"]: one for one in run["tool"]["driver"]["rules"]}
    for name, rule in known.items():
        markdown = rule["help"]["markdown"]
        assert "**So:** " in markdown and "**Do:** " in markdown and "```xml\n" in markdown, name
        outside = re.sub(r"```xml\n.*?```", "", markdown, flags=re.DOTALL)
        assert not re.search(r"(?<!\\)[<>`|]", outside), name
    assert known["ConditionNeverChanges"]["helpUri"].endswith("/loop-5.html")
    assert "helpUri" not in known["NotAnIr"], "no page says it"


# --- hooks and the action ---------------------------------------------------------------------------------------------


def hooks() -> dict[str, dict[str, str]]:
    """The hooks by id: a list of plain words, of which each stands in a line."""
    text = (ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    entries = [
        dict(re.findall(r"^(?:- |  )(\w+): (.*)$", entry, re.MULTILINE))
        for entry in re.split(r"^(?=- )", text, flags=re.MULTILINE)[1:]
    ]
    return {entry["id"]: entry for entry in entries}


def test_a_hook_gets_the_files_of_a_commit(call: Call, repository: Path) -> None:
    """pre-commit calls the entry with the staged files that `files` fits, and takes every code but 0 as a failure."""
    hook = hooks()["stepper-lint"]
    Path("kept.xml").write_text(faulty())
    staged = [name for name in ("kept.xml", "pom.xml", "inner/model.bin", ODD) if re.search(hook["files"], name)]
    assert staged == ["kept.xml", "pom.xml", ODD] and hook["language"] == "python"
    answer = call(*shlex.split(hook["entry"])[1:], *staged)
    assert answer.code == 1 and "B201" in answer.out and "pom.xml" not in answer.out
    assert call(*shlex.split(hook["entry"])[1:], "pom.xml").code == 0
    check = hooks()["stepper-check"]
    sample = ROOT / "sample_models" / "for_loop"
    arguments = ("--with", "none", str(sample / "model.xml"), "--inputs", str(sample / "inputs.npz"))
    assert check["pass_filenames"] == "false" and re.search(check["files"], "inputs.npz")
    assert call(*shlex.split(check["entry"])[1:], *arguments).out.startswith("nothing is wrong\nchecked: NaN, Inf")


def test_the_step_of_the_action_runs_the_command_and_keeps_its_code(repository: Path) -> None:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    steps = re.findall(r"^      run: (.*)$", text, re.MULTILINE)
    assert len(steps) == 2 and not [step for step in steps if "${{" in step], "values come as variables alone"
    given = dict(re.findall(r"^        (STEPPER_\w+): \$\{\{ inputs\.(\w+) \}\}$", text, re.MULTILINE))
    defaults = dict(re.findall(r"^  (\w+):\n    description: .*\n    default: (.*)$", text, re.MULTILINE))
    Path("bad $(touch x).xml").write_text(faulty())
    tools = repository.parent / "tools"
    tools.mkdir()
    (tools / "stepper").write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m stepper "$@"\n')
    (tools / "python").write_text('#!/bin/sh\nfor word; do :; done; printf %s "$word"\n')
    for tool in tools.iterdir():
        tool.chmod(0o755)

    def step(number: int = 1, **inputs: str) -> tuple[int, str]:
        values = {variable: {**defaults, **inputs}[name] for variable, name in given.items()}
        for name in ("output", "summary"):
            (repository.parent / name).write_text("")
        environment = {
            **os.environ, **values,
            "PATH": f"{tools}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT), "GITHUB_ACTION_PATH": str(ROOT),
            "GITHUB_OUTPUT": str(repository.parent / "output"),
            "GITHUB_STEP_SUMMARY": str(repository.parent / "summary"),
        }  # fmt: skip
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", steps[number]]  # as the runner does
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout + done.stderr

    code, printed = step(0, arguments="")
    assert code == 0 and Path(printed).resolve() == ROOT and (ROOT / "pyproject.toml").is_file(), "what pip installs"
    code, printed = step(arguments="kept.xml\r\nbad $(touch x).xml\n")
    assert code == 1 and "B201" in printed and not Path("x").exists()
    assert (repository.parent / "output").read_text() == "sarif=stepper.sarif\njunit=stepper-junit.xml\n"
    assert "    bad $(touch x).xml:" in (repository.parent / "summary").read_text()
    assert ElementTree.parse("stepper-junit.xml").getroot().get("failures") == "1" and Path("stepper.sarif").is_file()
    assert step(arguments="kept.xml")[0] == 0
    assert step(arguments="absent.xml")[0] == 3 and not (repository.parent / "output").read_text()
    assert step(arguments="")[0] == 2
    code, printed = step(command="run; touch x", arguments="kept.xml")
    assert code == 2 and "is neither lint nor check" in printed and not Path("x").exists()


def test_a_commit_may_stand_behind_changed_or_nothing() -> None:
    assert parsed(["lint", "--changed"]).changed == "HEAD" and parsed(["lint", "--changed", "main"]).changed == "main"
