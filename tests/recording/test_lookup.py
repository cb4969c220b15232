"""Addresses in a recording: they mean what they mean in the model, and give the values that the run computed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stepper.element_types import Array
from stepper.engine.frames import Every
from stepper.query.address_resolution import ResolutionError
from stepper.recording import Pace, open_recording
from stepper.recording.queries import RecordedValue, nothing_there, select
from stepper.recording.reading import Catalogue, Recording
from stepper.tensors.statistics import statistics
from tests.debug.sample_twins import bubble_sort, collatz
from tests.models import Graph, joined, sliced
from tests.recording.recorded import case, sample
from tests.recording.test_file import RUNS, run_named, walked
from tests.tables import each_row

ORDER = [5.0, 1.0, 4.0, 2.0, 8.0]


def found(recording: Recording, address: str) -> list[RecordedValue]:
    (selection,) = select(recording, [address])
    moments = list(selection.walk())
    assert selection.count() >= len(moments)
    return moments


def same(a: Array, b: Array) -> bool:
    if a.dtype.kind == "T":
        return a.shape == b.shape and a.tolist() == b.tolist()
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@each_row("name", RUNS, quick=6)
@each_row("amount", ["all", "carried", "stats"])
def test_every_address_gives_what_the_run_computed(tmp_path: Path, name: str, amount: str) -> None:
    subject = run_named(name, tmp_path)
    subject.recorded(tmp_path / "run.sqlite", amount)
    computed: dict[tuple[str, int, int], list[tuple[int, Array]]] = {}
    for tick, _iteration, path, layer, output, value in walked(subject):
        computed.setdefault((path, layer, output), []).append((tick, value))
    with open_recording(tmp_path / "run.sqlite") as recording:
        catalogue = Catalogue(recording)
        ports = recording.query("SELECT p.id, l.path, p.layer, p.output FROM ports p JOIN levels l ON l.id = p.level")
        assert ports
        for port, path, layer, output in ports:
            address = catalogue.address(catalogue.port(port))
            moments = found(recording, address)
            expected = computed.get((path, layer, output), [])
            assert [moment.tick for moment in moments] == [tick for tick, _ in expected]
            for moment, (_, value) in zip(moments, expected, strict=True):
                if moment.value is None:
                    assert amount != "all"
                    numbers = statistics(value)
                    summary = moment.statistics()
                    assert (summary.shape, summary.numbers["nan"]) == (value.shape, numbers.nan)
                    assert [summary.numbers[name] for name in ("min", "max", "zero")] == [
                        numbers.min,
                        numbers.max,
                        numbers.zeros,
                    ]
                else:
                    assert same(moment.value, value), address


@each_row("text", ["@3", "@-1", "@2:5", "@-4:-1", "@*", "@:3", "@100:", "@-200:2", ""])
def test_iterations_are_counted_as_python_counts_them(tmp_path: Path, text: str) -> None:
    sample("while_loop").recorded(tmp_path / "run.sqlite")
    start = int(np.load(Path("sample_models/while_loop/inputs.npz"))["start"].item())
    steps, _peak, numbers = collatz(start)
    inside = text.removeprefix("@")
    places = range(steps)
    if inside.lstrip("-").isdecimal():
        expected = [places[int(inside)]]
    else:
        bounds = [int(bound) if bound else None for bound in inside.replace("*", "").split(":")]
        expected = list(places[slice(*bounds)] if len(bounds) == 2 else places)
    with open_recording(tmp_path / "run.sqlite") as recording:
        moments = found(recording, f"number_next_result{text}")
        assert [moment.numbers for moment in moments] == [(place,) for place in expected]
        assert [int(moment.value.item()) for moment in moments] == [numbers[place] for place in expected]


@each_row(
    ("text", "wanted"),
    [
        ("passes@1::pairs_of_neighbours@*::values_next", lambda done, left, last: done == 1),
        ("passes@1::pairs_of_neighbours@0::values_next", lambda done, left, last: (done, left) == (1, 0)),
        ("values_next@-1", lambda done, left, last: left == last),
        ("passes@-1::pairs_of_neighbours::values_next@-2:", lambda done, left, last: done == 2 and left >= last - 1),
        ("passes@:2::pairs_of_neighbours@1:3::values_next", lambda done, left, last: done < 2 and 1 <= left < 3),
    ],
)
def test_iterations_of_loops_inside_one_another(tmp_path: Path, text: str, wanted: object) -> None:
    assert callable(wanted)
    sample("nested_loop").recorded(tmp_path / "run.sqlite")
    _sorted, _rows, _counts, after = bubble_sort(ORDER)
    expected = {place: values for place, values in after.items() if wanted(*place, len(ORDER) - 2 - place[0])}
    with open_recording(tmp_path / "run.sqlite") as recording:
        moments = found(recording, text)
        assert {moment.numbers: moment.value.tolist() for moment in moments} == expected and expected


def test_parts_inputs_and_outputs(tmp_path: Path) -> None:
    sample("nested_loop").recorded(tmp_path / "run.sqlite")
    with open_recording(tmp_path / "run.sqlite") as recording:
        (given,), (whole,), (part,) = (found(recording, text) for text in ("values", "sorted", "model::sorted[1:3]"))
        assert given.value.tolist() == ORDER and whole.value.tolist() == sorted(ORDER) and given.tick is None
        assert part.value.tolist() == sorted(ORDER)[1:3]
        everything = [selection.name for selection in select(recording, ["*"])]
        assert "model::values" in everything and "passes::order" in everything and len(everything) > 15
        assert [selection.name for selection in select(recording, ["swaps_*t@0"])] == [
            "passes::pairs_of_neighbours:1",
            "passes::pairs_of_neighbours::swaps_next",
        ]


def test_an_unknown_name_has_near_ones_and_an_ambiguous_one_candidates(tmp_path: Path) -> None:
    net = Graph()
    x = net.parameter("x", dims=(3,))
    for name in ("one", "two"):
        body = net.body()
        item = body.parameter("item", dims=(1,))
        h = body.result(body.apply("Negative", item, name="h"))
        net.result(net.loop(name, body, 3, True, [sliced(x, item)], [joined(h)])[0], f"{name}_out")
    case(net.read(tmp_path), {0: np.arange(3, dtype=np.float32)}).recorded(tmp_path / "run.sqlite")
    sample("nested_loop").recorded(tmp_path / "sort.sqlite", operations="^swaps")
    with open_recording(tmp_path / "sort.sqlite") as recording:
        with pytest.raises(ResolutionError, match=r"near are swaps_next[\s\S]*match of '\^swaps'"):
            select(recording, ["swap_nxt"])
        with pytest.raises(ResolutionError, match="of Loop 'passes' itself nothing was recorded"):
            select(recording, ["passes"])
        with pytest.raises(ResolutionError, match="in no loop"):
            select(recording, ["values@3"])
    with open_recording(tmp_path / "run.sqlite") as recording:
        with pytest.raises(ResolutionError, match=r"'h' is ambiguous; it may be\n  (two|one)::h  .*\n  (one|two)::h"):
            select(recording, ["h"])
        assert [moment.value.tolist() for moment in found(recording, "two::h@1:")] == [[-1.0], [-2.0]]


def test_the_last_iteration_of_a_run_that_was_cut_short_is_the_last_so_far(tmp_path: Path) -> None:
    with sample("while_loop").recorder(tmp_path / "run.sqlite", pace=Pace(1000, 1)) as recorder:
        while recorder.machine.tick < 40:
            recorder.after(recorder.machine.advance(Every.LOOP, 40))
    with open_recording(tmp_path / "run.sqlite") as recording:
        (iterations,) = recording.query("SELECT max(iteration) FROM iterations")[0]
        (moment,) = found(recording, "number_next_result@-1")
        assert moment.numbers == (iterations,) and iterations >= 2


def test_iterations_that_were_not_chosen_are_not_there(tmp_path: Path) -> None:
    sample("for_loop").recorded(tmp_path / "run.sqlite", iterations="0:2,-1")
    with open_recording(tmp_path / "run.sqlite") as recording:
        assert [moment.numbers for moment in found(recording, "balance_next")] == [(0,), (1,), (9,)]
        (selection,) = select(recording, ["balance_next@5"])
        assert not list(selection.walk())
        why = nothing_there(recording, selection, "balance_next@5")
        assert "ran 10 iterations at most; --record-iters 0:2,-1" in why
