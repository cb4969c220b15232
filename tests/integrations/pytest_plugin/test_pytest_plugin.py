"""The plugin in tests of a user, which `pytester` runs: what passes, what fails, and what a failure says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from stepper.cli import main
from stepper.integrations import pytest_plugin
from stepper.recording import open_recording

ROOT = Path(__file__).parents[3]
SAMPLES = ROOT / "sample_models"
pytest_plugins = ["pytester"]

HEAD = f"""
import numpy as np
YEARS = {str(SAMPLES / "for_loop/model.xml")!r}
MIXING = {str(SAMPLES / "rwkv_overflow/model.xml")!r}
with np.load({str(SAMPLES / "for_loop/inputs.npz")!r}) as kept:
    of_years = dict(kept)
with np.load({str(SAMPLES / "rwkv_overflow/inputs.npz")!r}) as kept:
    of_mixing = dict(kept)
"""

Ran = Callable[..., pytest.RunResult]
KEPT = ("stepper", "numpy", "msgspec", "lxml", "ml_dtypes", "re2", "sqlite3", "_sqlite3", "openvino")


class LoadedModules:
    """Modules that a run inside of this process loads; pytester would take them away, from under those that stay."""

    def __init__(self) -> None:
        self.found: dict[str, ModuleType] = {}

    def pytest_unconfigure(self) -> None:
        self.found |= {name: one for name, one in sys.modules.items() if name.split(".")[0] in KEPT}


@pytest.fixture(autouse=True)
def loaded(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoadedModules]:
    """Made before `pytester`, and so ended after it. On a machine of CI, pytest's summary repeats whole failures."""
    for variable in ("CI", "BUILD_NUMBER"):
        monkeypatch.delenv(variable, raising=False)
    modules = LoadedModules()
    yield modules
    sys.modules.update(modules.found)


@pytest.fixture
def ran(loaded: LoadedModules, pytester: pytest.Pytester) -> Ran:
    """Runs tests that use a fixture, each with one of these lines as its body."""

    def run(*bodies: str, words: tuple[str, ...] = (), fixture: str = "stepper_run") -> pytest.RunResult:
        tests = [f"def test_{number}({fixture}):\n    {body}\n" for number, body in enumerate(bodies)]
        pytester.makepyfile(HEAD + "\n".join(tests))
        alone = ("-p", "no:cacheprovider", "-p", "no:stepper", "-p", "no:xdist")
        result = pytester.runpytest_inprocess(*alone, *words, plugins=[pytest_plugin, loaded])
        sys.modules.update(loaded.found)
        return result

    return run


def test_a_run_that_keeps_its_word_passes_with_the_outputs_of_the_run(ran: Ran) -> None:
    asked = "never=('nan', 'inf'), always='abs(balance) < 1e4', iterations=10"
    result = ran(
        f"assert np.isclose(stepper_run(YEARS, of_years, {asked})['final_balance'][0], 1104.62)",
        "assert stepper_run(YEARS, of_years, iterations={'years': 10}).loops[0].iterations == 10",
    )
    result.assert_outcomes(passed=2)


def test_a_failure_says_place_layer_and_cause_and_the_command_that_opens_it(ran: Ran) -> None:
    result = ran("stepper_run(MIXING, of_mixing, never='nan')")
    result.assert_outcomes(failed=1)
    text = result.stdout.str()
    assert "tick 201  model > Loop 'time_mixing' #8" in text
    assert "NaN appears in Divide 'wkv' in iteration 8 of Loop 'time_mixing'" in text
    assert "exp(89.2) > f32 maximum exp(88.72)" in text
    assert "Failed: NaN appears in Divide 'wkv'" in text  # the cause begins the line of the summary
    assert "stepper_run(MIXING" in text  # the line of the test
    assert "pytest_plugin/running.py" not in text  # and none of ours
    command = shlex.split(re.search(r"open it: (.*)", text)[1])  # type: ignore[index]
    assert command[:2] == ["stepper", str(SAMPLES / "rwkv_overflow/model.xml")]
    with (
        np.load(command[command.index("--inputs") + 1]) as kept,
        np.load(SAMPLES / "rwkv_overflow/inputs.npz") as given,
    ):
        assert {name: kept[name].tobytes() for name in kept} == {name: given[name].tobytes() for name in given}
    assert "in it: break nan, continue" in text


def test_what_must_always_hold_is_looked_at_element_by_element_in_each_iteration(ran: Ran) -> None:
    result = ran("stepper_run(YEARS, of_years, always='abs(balance) < 1200')")
    result.assert_outcomes(failed=1)
    with np.load(SAMPLES / "for_loop/inputs.npz") as kept:
        balance = dict(kept)
    # an independent account: the first year at the beginning of which one of the balances is 1200 or more
    now, years = balance["principal"].astype(np.float64), 0
    while (np.abs(now) < 1200).all():
        now, years = now * (1 + balance["rate"]), years + 1
    result.stdout.fnmatch_lines([f"*model > Loop 'years' [#]{years}"])
    shown = r"\s*,\s*".join(re.escape(f"{value:.2f}"[:5]) + "[0-9]*" for value in now)
    assert re.search(rf"balance is .*{shown}.* of Parameter 'balance' \(line [0-9]+\)", result.stdout.str())


def test_loops_that_run_otherwise_fail_with_what_ended_them(ran: Ran) -> None:
    result = ran("stepper_run(YEARS, of_years, iterations=9)", "stepper_run(YEARS, of_years, iterations={'days': 9})")
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["*Loop 'years' ran 10 iterations, not 9: trip count reached (line *)"])
    result.stdout.fnmatch_lines(["*no loop 'days' ran; those that did: 'years'"])


def test_a_recording_is_made_where_it_is_asked_for_up_to_the_stop(
    ran: Ran, pytester: pytest.Pytester, capsys: pytest.CaptureFixture[str]
) -> None:
    for _again in range(2):
        result = ran(
            "stepper_run(MIXING, of_mixing)", "stepper_run(YEARS, of_years)", words=("--stepper-trace", "kept")
        )
        result.assert_outcomes(failed=1, passed=1)
    (file,) = (pytester.path / "kept").rglob("*.sqlite")
    assert f"recorded up to there: {file}" in result.stdout.str()
    with open_recording(file) as recording:
        ((last,),) = recording.query("SELECT max(iteration) FROM statistics")
        assert last == 7  # the Inf is born in iteration 7, which is not closed
    assert main(["print", str(file), "exp_key@7"]) == 0 and "inf" in capsys.readouterr().out
    assert main(["print", str(file), "numerator_next@7"]) != 0  # comes after it
    capsys.readouterr()
    assert main(["find", str(file), "inf"]) == 1 and "#7  time_mixing::exp_key: 1 Inf of 8" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("fixture", "call"),
    [
        ("stepper_check", "stepper_check(MIXING, of_mixing)"),
        ("stepper_agree", "stepper_agree(YEARS, 'other.npz', of_years)"),
    ],
)
def test_other_runs_that_fail_are_recorded_to_their_end(
    ran: Ran, pytester: pytest.Pytester, fixture: str, call: str
) -> None:
    np.savez(pytester.path / "other.npz", final_balance=np.zeros(3, np.float32))
    result = ran(call, fixture=fixture, words=("--stepper-trace", "kept"))
    result.assert_outcomes(failed=1)
    (file,) = (pytester.path / "kept").rglob("*.sqlite")
    assert f"recorded: {file}" in result.stdout.str()
    with open_recording(file) as recording:
        ((last,),) = recording.query("SELECT max(iteration) FROM statistics")
    assert last == (11 if fixture == "stepper_check" else 9)


def test_inputs_may_be_an_archive(ran: Ran, pytester: pytest.Pytester) -> None:
    np.savez(pytester.path / "wrong.npz", rates=np.zeros(3, np.float32))
    given = str(SAMPLES / "for_loop/inputs.npz")
    result = ran(
        f"assert np.isclose(stepper_run(YEARS, {given!r})['final_balance'][0], 1104.62)",
        "stepper_run(YEARS, 'wrong.npz')",
        "stepper_run(YEARS, 'none.npz')",
    )
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(["*no input 'rates'*", "*none.npz*"])


def test_wrong_use_is_one_sentence(ran: Ran) -> None:
    result = ran("stepper_run(YEARS, {})", "stepper_run('none.xml', {})", "stepper_run(YEARS, of_years, never='nam')")
    result.assert_outcomes(failed=3)
    assert "Traceback" not in result.stdout.str() and "stepper/engine" not in result.stdout.str()


def test_models_agree_with_themselves_and_not_with_others(ran: Ran, tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", final_balance=np.zeros(3, np.float32))
    archive = str(SAMPLES / "for_loop/expected.npz")
    result = ran(
        "stepper_agree(YEARS, YEARS, of_years)",
        f"stepper_agree(YEARS, {archive!r}, of_years, rtol=1e-5)",
        f"stepper_agree(YEARS, {str(tmp_path / 'other.npz')!r}, of_years)",
        fixture="stepper_agree",
    )
    result.assert_outcomes(passed=2, failed=1)
    result.stdout.fnmatch_lines([f"*open it: stepper *model.xml --inputs *inputs.npz --reference {tmp_path}/other.npz"])


def test_a_golden_run_is_recorded_compared_and_recorded_anew(ran: Ran, pytester: pytest.Pytester) -> None:
    same, other = (
        f"stepper_golden('g.sqlite', YEARS, {inputs})"
        for inputs in ("of_years", "{**of_years, 'rate': of_years['rate'] * 2}")
    )
    ran(same, fixture="stepper_golden").assert_outcomes(failed=1)  # there is none
    ran(same, fixture="stepper_golden", words=("--stepper-update",)).assert_outcomes(passed=1)
    ran(same, fixture="stepper_golden").assert_outcomes(passed=1)
    differing = ran(other, fixture="stepper_golden")
    differing.assert_outcomes(failed=1)
    differing.stdout.fnmatch_lines(["*pytest --stepper-update records it again*"])
    ran(other, fixture="stepper_golden", words=("--stepper-update",)).assert_outcomes(passed=1)
    ran(other, fixture="stepper_golden").assert_outcomes(passed=1)
    pytester.path.joinpath("g.sqlite").write_text("mine")
    ran(same, fixture="stepper_golden", words=("--stepper-update",)).assert_outcomes(failed=1)
    assert pytester.path.joinpath("g.sqlite").read_text() == "mine"


def test_findings_fail_a_test_by_their_gravity(ran: Ran) -> None:
    result = ran(
        "assert not [one for one in stepper_check(YEARS) if one.severity == 'error']",
        "stepper_check(MIXING, of_mixing)",
        "stepper_check(YEARS, fail_on='bad')",
        fixture="stepper_check",
    )
    result.assert_outcomes(passed=1, failed=2)
    result.stdout.fnmatch_lines(
        ["*Failed: error D202 inf-born: *rwkv_overflow/model.xml:610)", "*so: *", "*do: *", "*open it: stepper *"]
    )


def test_it_costs_a_run_of_pytest_that_uses_none_of_it_nothing() -> None:
    code = (
        "import sys, stepper.integrations.pytest_plugin; "
        "own = {name for name in sys.modules if name.split('.')[0] == 'stepper'}; "
        "assert own == {'stepper', 'stepper.integrations', 'stepper.integrations.pytest_plugin'}, own; "
        "assert 'numpy' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, check=True)


def test_pytest_finds_it_by_its_entry_point_and_this_suite_leaves_that_of_an_installed_copy_alone() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert project["project"]["entry-points"]["pytest11"] == {"stepper": pytest_plugin.__name__}
    options = project["tool"]["pytest"]["ini_options"]["addopts"]
    assert options[options.index("-p") + 1] == "no:stepper"


def test_processes_of_xdist_keep_their_runs_apart(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("xdist")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    body = "import pytest\n@pytest.mark.parametrize('n', range(4))\ndef test(stepper_run, n):\n"
    pytester.makepyfile(HEAD + body + "    stepper_run(MIXING, of_mixing)\n")
    words = ("-p", "no:stepper", "-p", pytest_plugin.__name__, "-p", "no:cacheprovider", "-n", "2")
    result = pytester.runpytest_subprocess(*words, "--stepper-trace", "kept")
    result.assert_outcomes(failed=4)
    assert len(list((pytester.path / "kept").rglob("run.sqlite"))) == 4
    assert result.stdout.str().count("open it: stepper") == 4


def test_the_command_has_the_options_of_the_run(ran: Ran) -> None:
    result = ran("stepper_run(YEARS, of_years, iterations=10, rules='openvino', max_iterations=3)")
    text = result.stdout.str()
    command = shlex.split(re.search(r"open it: (.*)", text)[1])  # type: ignore[index]
    assert command[command.index("--rules") + 1] == "openvino" and command[command.index("--max-iterations") + 1] == "3"


def test_processes_of_xdist_may_have_one_golden_file(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("xdist")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    body = "import pytest\n@pytest.mark.parametrize('n', range(6))\ndef test(stepper_golden, n):\n"
    pytester.makepyfile(HEAD + body + "    stepper_golden('shared.sqlite', YEARS, of_years)\n")
    words = ("-p", "no:stepper", "-p", pytest_plugin.__name__, "-p", "no:cacheprovider", "-n", "2")
    for more in (["--stepper-update"], ["--stepper-update"], []):
        pytester.runpytest_subprocess(*words, *more).assert_outcomes(passed=6)
    assert [path.name for path in pytester.path.glob("*.sqlite*")] == ["shared.sqlite"]
