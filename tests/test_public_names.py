"""The public names of the package: what `dir` and `help` show, that their types can be read, how they refuse."""

from __future__ import annotations

import inspect
import pydoc
import subprocess
import sys
import typing
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepper
from stepper import errors
from tests.tables import each_row

ROOT = Path(__file__).parents[1]
SAMPLE = ROOT / "sample_models" / "for_loop" / "model.xml"
INPUTS = {"principal": np.ones(3, np.float32), "rate": np.ones(3, np.float32)}


def callables() -> Iterator[tuple[str, Any]]:
    """Every public name, and every public method and property of the classes among them."""
    for name in stepper.__all__:
        value = getattr(stepper, name)
        yield name, value
        for member, found in inspect.getmembers(value) if inspect.isclass(value) else ():
            if not member.startswith("_") and (inspect.isroutine(found) or isinstance(found, property)):
                yield f"{name}.{member}", found.fget if isinstance(found, property) else found


OURS = [(name, value) for name, value in callables() if (getattr(value, "__module__", "") or "").startswith("stepper")]


@each_row(("name", "value"), OURS, ids=[name for name, _ in OURS])
def test_types_and_signature_can_be_read(name: str, value: Any) -> None:
    hints = typing.get_type_hints(value)
    if inspect.isroutine(value):
        parameters = set(inspect.signature(value).parameters) - {"self", "cls"}
        assert parameters | {"return"} == set(hints), name


def test_members_of_the_classes_can_be_asked_of_the_classes() -> None:
    for value in (getattr(stepper, name) for name in stepper.__all__):
        for member in dir(value) if inspect.isclass(value) else ():
            if member != "__abstractmethods__":
                getattr(value, member)
    assert "Another run to compare with" in (inspect.getdoc(stepper.Debugger.reference) or "")


def test_dir_shows_the_names_and_nothing_else() -> None:
    assert sorted(name for name in dir(stepper) if not name.startswith("_")) == sorted(stepper.__all__)
    kinds = {name for name, value in vars(errors).items() if inspect.isclass(value)}
    public = {name for name in kinds if issubclass(getattr(errors, name), errors.StepperError)}
    assert public <= set(stepper.__all__)


def test_help_shows_the_names_by_what_one_does() -> None:
    text = pydoc.plain(pydoc.render_doc(stepper))
    for word in ("Read.", "Run.", "Debug.", "Draw.", "Compare.", "class Debugger", "run(model", "open_model(source"):
        assert word in text, word
    assert (ROOT / "stepper" / "py.typed").exists()


def test_importing_the_package_loads_nothing() -> None:
    code = "import sys, stepper; sys.exit(str([name for name in ('numpy', 'msgspec', 'lxml') if name in sys.modules]))"
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.stderr.strip() == "[]"


def test_a_path_will_do_where_a_model_is_expected() -> None:
    for source in (SAMPLE, str(SAMPLE)):
        expected = stepper.run(stepper.read_model(SAMPLE), INPUTS)
        assert {name: value.tolist() for name, value in stepper.run(source, INPUTS).items()} == {
            name: value.tolist() for name, value in expected.items()
        }
        assert stepper.run(stepper.compile_model(source), INPUTS).keys() == expected.keys()
        assert stepper.Debugger(source, INPUTS).model.path == SAMPLE
        assert stepper.open_debugger(source, INPUTS).model.path == SAMPLE
        assert b"<svg" in stepper.draw(source, INPUTS).written("svg")
        assert stepper.open_sequences(source).path == SAMPLE
        assert [array.tolist() for array in stepper.bind_inputs(source, INPUTS)] == [[1, 1, 1], [1, 1, 1]]
        assert not stepper.compare_models(source, source, INPUTS).differs


def debugger() -> stepper.Debugger:
    return stepper.Debugger(SAMPLE, INPUTS)


WRONG: list[tuple[type[Exception], str, Callable[[], object]]] = [
    (TypeError, "name is a str, not None", lambda: debugger().branch(None)),
    (TypeError, "count is an int, not the str 'x'", lambda: debugger().step("x")),
    (TypeError, "count is an int, not the float 1.5", lambda: debugger().next_iteration(1.5)),
    (TypeError, "tick is an int", lambda: debugger().goto_tick("7")),
    (TypeError, "expression is a str", lambda: debugger().evaluate(7)),
    (TypeError, "target is a str", lambda: debugger().break_at(None)),
    (TypeError, "expression is a str, not None", lambda: debugger().find(None)),
    (TypeError, "limit is an int, not the str 'x'", lambda: debugger().find("nan", limit="x")),
    (TypeError, "address is a str or an Address, not None", lambda: debugger().chain_of(None)),
    (TypeError, "address is a str or an Address, not the int 7", lambda: debugger().value(7)),
    (TypeError, "address is a str or an Address, not the float 7.5", lambda: debugger().over_iterations(7.5)),
    (TypeError, "address is a str or an Address, not the list [1]", lambda: debugger().previous_value([1])),
    (TypeError, "address is a str or an Address, not the int 0", lambda: debugger().set_value(0, 1)),
    (TypeError, "hear is a function, not the int 7", lambda: debugger().continue_(7)),
    (TypeError, "name is a str, not the list []", lambda: debugger().delete_branch([])),
    (TypeError, "to is a str, not None", lambda: debugger().rename_branch("a", None)),
    (TypeError, "inputs is a dict", lambda: stepper.run(SAMPLE, [1, 2])),
    (TypeError, "states is a dict", lambda: stepper.run(SAMPLE, INPUTS, states=[1])),
    (TypeError, "NoneType is not a model", lambda: stepper.run(None, INPUTS)),
    (TypeError, "unexpected keyword argument 'memmory'", lambda: stepper.open_debugger(SAMPLE, INPUTS, memmory=1)),
    (TypeError, "compiled is a CompiledModel", lambda: stepper.Machine(stepper.read_model(SAMPLE), [])),
    (ValueError, "inputs are 0 arrays, the model has 2", lambda: stepper.Machine(stepper.compile_model(SAMPLE), [])),
    (ValueError, "'pngs' is none of", lambda: stepper.draw(SAMPLE, view="pngs")),
    (ValueError, "a repeat count is 1 or more", lambda: debugger().step(0)),
    (ValueError, "max_iterations is -1; it must be 1 or more", lambda: stepper.run(SAMPLE, INPUTS, max_iterations=-1)),
    (ValueError, "max_iterations is 0", lambda: stepper.Debugger(SAMPLE, INPUTS, max_iterations=0)),
    (ValueError, "memory is -1; it must be 1 or more", lambda: stepper.Debugger(SAMPLE, INPUTS, memory=-1)),
    (ValueError, "there is no rule book 'x'; choose spec or openvino", lambda: stepper.run(SAMPLE, INPUTS, rules="x")),
    (TypeError, "rules is a str, not the int 7", lambda: stepper.compile_model(SAMPLE, 7)),
    (ValueError, "inputs={'rate': array}", lambda: stepper.run(SAMPLE, {"principal": INPUTS["principal"]})),
    (ValueError, "hit is -1", lambda: debugger().break_at("balance_next", hit=-1)),
    (
        ValueError,
        "the model has no variable 'v'; it has no variables",
        lambda: stepper.run(SAMPLE, INPUTS, states={"v": 1}),
    ),
]


@each_row(("kind", "text", "call"), WRONG, ids=[text for _, text, _ in WRONG])
def test_a_wrong_argument_is_refused_in_the_words_of_python(
    kind: type[Exception], text: str, call: Callable[[], object]
) -> None:
    with pytest.raises(kind) as caught:
        call()
    assert text in str(caught.value) and "--" not in str(caught.value)
    assert isinstance(caught.value, stepper.StepperError) or "unexpected keyword" in text
