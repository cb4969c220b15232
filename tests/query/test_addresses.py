"""What addresses mean: written, read, and found in models."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from stepper import compile_model, read_model
from stepper.engine.program import CompiledModel, Program
from stepper.query.address_resolution import ResolutionError, Target, address_of, layer_address, resolve, resolve_all
from stepper.query.address_syntax import (
    ALL_ITERATIONS,
    Address,
    AddressError,
    IterationRange,
    Level,
    Name,
    NameKind,
    Range,
    exact_name,
    numpy_index,
    parse_address,
    without_element,
)
from tests.models import Graph, Side, carried, joined, last
from tests.tables import each_row

SAMPLES = Path(__file__).parents[2] / "sample_models"


def plain(text: str) -> Name:
    return Name(NameKind.PLAIN, text)


@each_row(
    ("text", "expected"),
    [
        ("h_next", Address((), plain("h_next"))),
        ("h_next@7", Address((), plain("h_next"), None, 7)),
        ("h_next@2:5", Address((), plain("h_next"), None, IterationRange(2, 5))),
        ("h@-3:", Address((), plain("h"), None, IterationRange(-3, None))),
        ("h_next[0,3]@7", Address((), plain("h_next"), None, 7, (0, 3))),
        ("@-1", Address(iterations=-1)),
        ("@*", Address(iterations=ALL_ITERATIONS)),
        (
            "my_loop::h_next:0@7[0,:8]",
            Address((Level(plain("my_loop")),), plain("h_next"), 0, 7, (0, Range(None, 8, None))),
        ),
        ("outer@3::inner@0::h", Address((Level(plain("outer"), 3), Level(plain("inner"), 0)), plain("h"))),
        ("a::b::@2", Address((Level(plain("a")), Level(plain("b"))), None, None, 2)),
        ("id=12:1", Address((), Name(NameKind.ID, "12"), 1)),
        ("lstm*/h?", Address((), Name(NameKind.GLOB, "lstm*/h?"))),
        ("/gate_[ifo]$/", Address((), Name(NameKind.REGEX, "gate_[ifo]$"))),
        (r"/a\/b:@/@1", Address((), Name(NameKind.REGEX, r"a\/b:@"), None, 1)),
        ("/rnn/Add", Address((), plain("/rnn/Add"))),
        ("while/LoopCond/Iterator_/h.1", Address((), plain("while/LoopCond/Iterator_/h.1"))),
        ("`odd name:0@[``]`@1", Address((), Name(NameKind.QUOTED, "odd name:0@[`]"), None, 1)),
        ("38", Address((), plain("38"))),
        ("h'", Address((), Name(NameKind.PLAIN, "h", is_next=True))),
        (
            "loop@1::h'@7[0]",
            Address((Level(plain("loop"), 1),), Name(NameKind.PLAIN, "h", is_next=True), None, 7, (0,)),
        ),
        ("`odd name`'@1", Address((), Name(NameKind.QUOTED, "odd name", is_next=True), None, 1)),
        ("id=3'", Address((), Name(NameKind.ID, "3", is_next=True))),
        ("`h'`", Address((), Name(NameKind.QUOTED, "h'"))),
        ("h'x", Address((), plain("h'x"))),
        (" x[-1, ..., ::2, 1:-1] ", Address((), plain("x"), index=(-1, ..., Range(None, None, 2), Range(1, -1, None)))),
        ("größe", Address((), plain("größe"))),
    ],
)
def test_an_address_is_read_and_written(text: str, expected: Address) -> None:
    address = parse_address(text)
    assert address == expected
    assert hash(address) == hash(expected)
    assert parse_address(str(address)) == address


def test_every_address_can_be_read_from_its_text() -> None:
    generator = random.Random(7)
    letters = "ab1_./:@`[] *?=-é"
    for _ in range(5000):
        names = ["".join(generator.choice(letters) for _ in range(generator.randrange(1, 6))) for _ in range(3)]
        levels = tuple(Level(exact_name(name), generator.choice([None, 3, -1, ALL_ITERATIONS])) for name in names[1:])
        index = tuple(
            generator.choice([1, -2, Range(1, None, None), Range(None, -3, 2)]) for _ in range(generator.randrange(3))
        )
        address = Address(
            levels[: generator.randrange(3)],
            exact_name(names[0]),
            generator.choice([None, 0, 5]),
            generator.choice([None, 0, -1, ALL_ITERATIONS, IterationRange(1, 4), IterationRange(None, -2)]),
            index,
        )
        assert parse_address(str(address)) == address, str(address)


def test_random_texts_are_addresses_or_refused() -> None:
    generator = random.Random(8)
    pieces = [
        "a",
        "b/c",
        "::",
        ":",
        "0",
        "@",
        "-1",
        "*",
        "[",
        "]",
        ",",
        "`",
        "/",
        "id=",
        "?",
        " ",
        "...",
        "\\",
        "9" * 30,
    ]
    for _ in range(20_000):
        text = "".join(generator.choice(pieces) for _ in range(generator.randrange(1, 12)))
        try:
            address = parse_address(text)
        except AddressError as error:
            assert "^" in str(error)
        else:
            assert parse_address(str(address)) == address, text


@each_row(
    ("text", "position", "words"),
    [
        ("", 0, "expected an address"),
        ("a:b", 2, "number of an output port"),
        ("a@x", 2, "expected an iteration"),
        ("a::", 3, "expected a name"),
        ("::a", 0, "before '::'"),
        ("a:0::b", 0, "a level has no port"),
        ("a[0", 1, "not closed"),
        ("a[]", 2, "expected a number"),
        ("a[x]", 2, "found 'x'"),
        ("a[::0]", 2, "must not be 0"),
        ("a[0]b", 4, "found 'b'"),
        ("a@1[0]@2", 6, "found '@'"),
        ("`a", 0, "closing backquote"),
        ("a b", 1, "found white space .*backquotes"),
        ("a'::b", 0, "a level has no port and no '"),
        ("a':0", 2, "has no port"),
        ("a''", 2, 'found "\'"'),
        ("x" * 1001, 1000, "at most 1000"),
        ("a::" * 40 + "a", 99, "at most 32 levels"),
    ],
)
def test_what_is_no_address_is_refused_with_the_place(text: str, position: int, words: str) -> None:
    with pytest.raises(AddressError, match=words) as caught:
        parse_address(text)
    assert caught.value.position == position


def test_iterations_and_indices_count_as_python_does() -> None:
    for text in ("2:5", ":", "-3:", ":-1", "4:2", "*"):
        iterations = parse_address(f"x@{text}").iterations
        assert isinstance(iterations, IterationRange)
        expected = list(range(10)) if text == "*" else eval(f"list(range(10))[{text}]")
        assert list(iterations.numbers(10)) == expected
    index = parse_address("x[0, ..., 1:5:2, :]").index
    assert numpy_index(index) == (0, ..., slice(1, 5, 2), slice(None))


# --- in models ------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def nested(tmp_path_factory: pytest.TempPathFactory) -> CompiledModel:
    """Two loops called `outer` and `other` with a `h` each; in the former an If whose sides both have a `same`."""
    graph = Graph()
    x = graph.parameter("x", "f32", (2,), names="x_tensor,first")
    flag = graph.constant(True, name="flag")
    body = graph.body()
    h = body.parameter("h", "f32", (2,))
    condition = body.constant(True, name="condition")
    then, otherwise = body.body(), body.body()
    t, e = then.parameter("t", "f32", (2,)), otherwise.parameter("e", "f32", (2,))
    then_result = then.result(then.apply("Add", then.apply("Abs", t, name="only_then"), t, name="same"))
    else_result = otherwise.result(otherwise.apply("Multiply", e, e, name="same"))
    (picked,) = body.branch(
        "pick", condition, Side(then, [(h, t)], [then_result]), Side(otherwise, [(h, e)], [else_result])
    )
    body.apply("Relu", h, name="dead")
    h_next = body.apply("Add", picked, h, name="cell/h_next")
    h_result = body.result(h_next, "h_result")
    outer = graph.loop("outer", body, 3, flag, [carried(x, h, h_result)], [last(h_result), joined(h_result)])
    second = graph.body()
    g = second.parameter("h", "f32", (2,))
    g_result = second.result(second.apply("Add", g, g, name="aten::add/Add"), "g_result")
    (other,) = graph.loop("prim::Loop/other", second, 2, flag, [carried(outer[0], g, g_result)], [last(g_result)])
    graph.result(graph.apply("Add", other, x, name="odd name"), "sum")
    graph.result(outer[1], "pieces")
    return compile_model(graph.read(tmp_path_factory.mktemp("nested")))


def program_of(compiled: CompiledModel, name: str) -> Program:
    return next(program for program in compiled.programs if program.name.endswith(name))


def found(compiled: CompiledModel, text: str, where: str = "model") -> str:
    """Where an address leads, by the name of the program, the layer and the output."""
    target = resolve(parse_address(text), compiled, program_of(compiled, where))
    assert target.program.slots[target.layer.id, target.output] == target.slot
    return f"{target.program.path[-1].name if target.program.path else 'model'}.{target.layer.name}:{target.output}"


@pytest.mark.parametrize(
    ("text", "where", "expected"),
    [
        ("x", "model", "model.x:0"),
        ("x_tensor", "model", "model.x:0"),
        ("x", "'outer'", "model.x:0"),
        ("h", "'outer'", "outer.h:0"),
        ("h", "other'", "prim::Loop/other.h:0"),
        ("outer::h", "other'", "outer.h:0"),
        ("outer::h", "model", "outer.h:0"),
        ("h_next", "model", "outer.cell/h_next:0"),
        ("cell/h_next", "model", "outer.cell/h_next:0"),
        ("outer::h_result", "model", "outer.cell/h_next:0"),
        ("sum", "model", "model.odd name:0"),
        ("`odd name`", "model", "model.odd name:0"),
        ("outer:1", "model", "model.outer:1"),
        ("pieces", "'pick'", "model.outer:1"),
        ("only_then", "model", "pick.only_then:0"),
        ("outer::pick::only_then", "model", "pick.only_then:0"),
        ("outer::only_then", "model", "pick.only_then:0"),
        ("pick::then::same", "model", "pick.same:0"),
        ("outer@2::pick::else::same", "model", "pick.same:0"),
        ("model::x", "'pick'", "model.x:0"),
        ("aten::add/Add", "model", "prim::Loop/other.aten::add/Add:0"),
        ("prim::Loop/other::aten::add/Add:0@1", "model", "prim::Loop/other.aten::add/Add:0"),
        ("other::Add", "model", "prim::Loop/other.aten::add/Add:0"),
        ("`prim::Loop/other`::`aten::add/Add`", "model", "prim::Loop/other.aten::add/Add:0"),
        ("cell*", "model", "outer.cell/h_next:0"),
        ("/_next$/", "model", "outer.cell/h_next:0"),
        ("outer::id=0", "other'", "outer.h:0"),
        ("id=0", "'outer'", "outer.h:0"),
        ("id=00", "model", "model.x:0"),
        ("condition", "model", "outer.condition:0"),
    ],
)
def test_an_address_is_found(nested: CompiledModel, text: str, where: str, expected: str) -> None:
    assert found(nested, text, where) == expected


def test_sides_of_an_if_are_told_apart(nested: CompiledModel) -> None:
    types = [resolve(parse_address(f"pick::{side}::same"), nested).layer.type for side in ("then", "else")]
    assert types == ["Add", "Multiply"]


def test_iterations_belong_to_the_loops_of_the_path(nested: CompiledModel) -> None:
    target = resolve(parse_address("outer@3::pick::then::same"), nested)
    assert [layer.name for layer in target.program.path] == ["outer", "pick"]
    assert target.iterations == (3, None)
    assert resolve(parse_address("only_then@2:5"), nested).iterations == (IterationRange(2, 5), None)
    assert resolve(parse_address("x"), nested).iterations == ()


def test_a_result_means_its_source(nested: CompiledModel) -> None:
    target = resolve(parse_address("sum"), nested)
    assert (target.named.type, target.layer.type) == ("Result", "Add")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("h", r"ambiguous; it may be\n  outer::h  \(Parameter\)\n  `prim::Loop/other`::h  \(Parameter\)$"),
        ("same", "outer::pick::then::same .*\n  outer::pick::else::same"),
        ("hh", "there is nothing called 'hh'; near is h"),
        ("outer::cell_next", "nothing called 'cell_next' in 'outer'; near are .*`cell/h_next`"),
        ("id=99", "no layer with the id 99"),
        ("nothing*", "nothing has a name that fits"),
        ("outr::h", "no loop or If 'outr'; near are outer"),
        ("aten::sub/Add", "nothing called '`aten::sub/Add`'; near is `aten::add/Add`"),
        ("prim::Loop/other::aten::ad", "nothing called '`aten::ad`'; near is .*`aten::add/Add`"),
        ("x::h", "Parameter 'x' is neither a loop nor an If"),
        ("outer::dead", "never computed"),
        ("outer:2", "outputs 0 to 1; there is no port 2"),
        ("x:1", "output 0 only"),
        ("sum:1", "has one value"),
        ("x@1", "is in no loop"),
        ("outer@1::h@2", "an iteration of 'outer' twice"),
        ("outer::pick@1::only_then", "If, which has no iterations"),
        ("pick::then@1::same", "branch of an If, which has no iterations"),
        ("model@1::x", "which has no iterations"),
        ("@3", "names no operation"),
        ("/(a/", "missing \\)"),
    ],
)
def test_what_leads_nowhere_or_to_several_places_is_explained(nested: CompiledModel, text: str, words: str) -> None:
    with pytest.raises((ResolutionError, AddressError), match=words) as caught:
        resolve(parse_address(text), nested)
    assert len(str(caught.value).splitlines()) <= 12


def test_of_many_candidates_ten_are_listed(tmp_path: Path) -> None:
    graph = Graph()
    value = graph.parameter("x", "f32", (2,))
    for number in range(14):
        value = graph.apply("Abs", value, name=f"step_{number}")
    graph.result(value, "y")
    compiled = compile_model(graph.read(tmp_path))
    with pytest.raises(ResolutionError, match=r"step_9  \(Abs\)\n  and 4 more$"):
        resolve(parse_address("step_*"), compiled)


def test_a_pattern_may_mean_several_places(nested: CompiledModel) -> None:
    targets = resolve_all(parse_address("outer::/^[hc]/"), nested)
    assert {target.layer.name for target in targets} == {"h", "condition", "cell/h_next"}
    assert len(resolve_all(parse_address("same"), nested)) == 2


@each_row("path", sorted(SAMPLES.glob("*/model.xml")), ids=lambda path: path.parent.name)
def test_every_place_of_a_sample_is_found_again_by_its_address(path: Path) -> None:
    compiled = compile_model(read_model(path))
    for program in compiled.programs:
        for (identity, output), slot in program.slots.items():
            layer = program.graph.by_id[identity]
            if layer.type == "Result":
                continue
            address = address_of(Target(program, layer, output, slot, layer, ()), compiled)
            target = resolve(parse_address(str(address)), compiled)
            assert target.program is program, str(address)
            assert (target.layer, target.slot) == (layer, slot), str(address)


@each_row("path", sorted(SAMPLES.glob("*/model.xml")), ids=lambda path: path.parent.name)
def test_a_name_with_a_prime_means_the_result_that_the_back_edge_of_the_file_names(path: Path) -> None:
    compiled = compile_model(read_model(path))
    for program in compiled.programs:
        edges = program.path[-1].bodies[0].back_edges if program.path and program.path[-1].is_loop else ()
        for edge in edges:
            parameter, result = (program.graph.by_id[id] for id in (edge.to_layer, edge.from_layer))
            address = str(
                address_of(Target(program, parameter, 0, program.slots[parameter.id, 0], parameter, ()), compiled)
            )
            found = resolve(parse_address(f"{address}'"), compiled)
            assert found.program is program
            assert (found.named, found.slot) == (result, program.slots[result.id, 0])
        for layer in program.graph.layers:
            if layer.id not in {edge.to_layer for edge in edges} and (layer.id, 0) in program.slots:
                with pytest.raises(ResolutionError, match=r"is not carried; (carried are .*'|nothing is)$"):
                    resolve(parse_address(f"{layer_address(layer, program, compiled)}'"), compiled)


@each_row(("text", "depth"), [("wkv", 0), ("wkv@5", 1), ("/^wkv$/@5", 1), ("wkv@5[0,3]", 1)])
def test_a_name_with_an_iteration_is_that_in_a_loop_although_a_result_of_the_model_has_it_too(
    text: str, depth: int
) -> None:
    compiled = compile_model(read_model(SAMPLES / "rwkv_overflow" / "model.xml"))
    assert len(resolve(parse_address(text), compiled).program.path) == depth


@each_row(
    ("text", "place"),
    [
        ("h@7[0,3]", "h@7"),
        ("h@7", "h@7"),
        ("outer@1::`a[0]`:1@3[1:2,...]", "outer@1::`a[0]`:1@3"),
        ("`a[0]`", "`a[0]`"),
    ],
)
def test_an_address_without_its_element_keeps_brackets_of_its_name(text: str, place: str) -> None:
    assert parse_address(without_element(text)) == parse_address(place)
