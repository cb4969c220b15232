"""The command language: conversations with two sample models, prefixes, repetition, errors, the log of commands."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepper.commands import Interpreter, ScriptError
from stepper.commands import interpreter as interpreter_module
from stepper.commands.command_session import GROUPS, commands
from stepper.commands.interpreter import without_comment
from stepper.errors import StepperError, UsageError
from tests.debug.debugged import opened, sample
from tests.debug.loops_to_break import recurrence
from tests.debug.sample_twins import bubble_sort, collatz
from tests.debug.transcript import FOLDER, commands_in, held
from tests.tables import each_row

VALUES = [5.0, 1.0, 4.0, 2.0, 8.0]


def at_prompt(name: str = "while_loop") -> Interpreter:
    return Interpreter(sample(name))


def said(interpreter: Interpreter, *lines: str) -> list[str]:
    """What the last of the commands answered."""
    answer: list[str] = []
    for line in lines:
        answer = list(interpreter.execute(line).lines)
    return answer


def problem(interpreter: Interpreter, line: str) -> str:
    with pytest.raises(StepperError) as refused:
        interpreter.execute(line)
    return str(refused.value)


# --- conversations --------------------------------------------------------------------------------------------------


@each_row("name", ["nested_loop", "while_loop"])
def test_a_conversation_goes_as_it_is_written_down(name: str) -> None:
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert held(name, commands_in(text)) == text


def test_the_numbers_of_a_while_loop_are_those_of_its_twin() -> None:
    _steps, _peak, numbers = collatz(27)
    interpreter = at_prompt()
    said(interpreter, "break number_next")
    for iteration, number in enumerate(numbers):
        assert said(interpreter, "continue")[1] == f"  after If 'number_next' = i64[] {number}"
        assert interpreter.session.debugger.stop.iteration == iteration
    for number in reversed(numbers[:-1]):
        assert said(interpreter, "reverse-continue")[1] == f"  after If 'number_next' = i64[] {number}"


def test_the_values_of_nested_loops_are_those_of_their_twin() -> None:
    values, rows, counts, after = bubble_sort(VALUES)
    interpreter = at_prompt("nested_loop")
    for (done, left), expected in after.items():
        said(interpreter, f"goto passes@{done}::pairs_of_neighbours@{left}::values_next")
        data = interpreter.execute("print values_next").data
        assert data["values"] == expected and data["type"] == "f32"
    assert len(interpreter.execute("find swapped all").data["moments"]) == sum(counts)
    said(interpreter, "last")
    outputs = interpreter.session.debugger.machine.outputs
    assert outputs is not None and [output.tolist() for output in outputs] == [values, rows, counts]


def test_an_element_in_all_iterations_is_that_of_the_twin_and_a_name_of_a_loop_that_does_not_run_says_how() -> None:
    _, _, _, after = bubble_sort(VALUES)
    interpreter = at_prompt("nested_loop")
    series = interpreter.execute("print passes@0::pairs_of_neighbours::values_next[1]@*").data["series"]
    assert [one["values"] for one in series] == [[after[0, left][1]] for left in range(4)]
    one = interpreter.execute("print passes@0::pairs_of_neighbours::values_next[1]@2").data
    assert one["values"] == [after[0, 2][1]]
    told = problem(interpreter, "print values_next")
    assert told.endswith("does not run; values_next@0 is of its iteration 0, values_next@* of all")
    assert "mean(h@7)" in problem(interpreter, "print max(values_next)@*")


# --- words ----------------------------------------------------------------------------------------------------------


def test_a_command_may_be_cut_to_where_it_is_unambiguous() -> None:
    interpreter = at_prompt()
    assert said(interpreter, "ste")[0] == "tick 1  model"
    assert said(interpreter, "reverse-s")[0].startswith("tick 0 ")
    assert said(interpreter, "inf br") == ["no breakpoints"]
    assert problem(interpreter, "st") == "'st' is ambiguous: stats, step"
    assert problem(interpreter, "info m") == "'m' is ambiguous: marks, memory"


def test_an_abbreviation_goes_before_longer_words() -> None:
    assert said(at_prompt(), "s")[0] == "tick 1  model"


def test_an_unknown_word_names_those_that_are_near() -> None:
    assert problem(at_prompt(), "contineu") == "there is no command 'contineu'; near is continue"
    assert problem(at_prompt(), "xyzzy") == "there is no command 'xyzzy'; help lists them"


def test_at_the_end_of_the_run_the_outputs_can_be_printed_and_saved(tmp_path: Path) -> None:
    values, rows, counts, _ = bubble_sort(VALUES)
    interpreter = at_prompt("nested_loop")
    said(interpreter, "watch max(swaps_by_pass)", "last")
    assert interpreter.execute("print sorted").data["values"] == values
    assert interpreter.execute("print order_by_pass[1]").data["values"] == rows[1]
    assert interpreter.execute("stats swaps_by_pass").data["max"] == max(counts)
    said(interpreter, f"save order_by_pass {tmp_path}/rows.npy")
    assert np.load(tmp_path / "rows.npy").tolist() == rows
    (watch,) = interpreter.session.debugger.watches
    assert watch.now is not None and watch.now.value is not None and watch.now.value == max(counts)
    assert "only the outputs 'sorted', 'order_by_pass', 'swaps_by_pass' are" in problem(interpreter, "print values")


def test_a_large_count_is_a_count() -> None:
    assert said(at_prompt(), "step 1000000000000000000")[0] == "tick 1266  model  (end of the run)"


def test_what_a_loop_has_taken_already_is_read_no_more_and_said_so() -> None:
    interpreter = at_prompt("nested_loop")
    said(interpreter, "run-to pairs_of_neighbours@0")
    note = said(interpreter, "set pairs_left = 1")[-1]
    assert note.endswith(
        "reads 'pairs_left': Loop 'pairs_of_neighbours' took its trip count from it when it was entered"
    )
    trip = said(interpreter, "info trip")[0]
    assert "4 iterations (input 0, Subtract 'pairs_left', which was 4 when the loop was entered; that it is 1" in trip
    assert said(interpreter, "finish")[1] == "  iteration 3 is closed, the last: trip count reached"


def test_iterations_that_are_left_out_are_counted_and_said(tmp_path: Path) -> None:
    interpreter = Interpreter(opened(tmp_path, recurrence("Add", 1.0, 40_000)))
    said(interpreter, "step 3")
    answer = interpreter.execute("print state@*")
    assert answer.lines[-1] == "every 4th of 40,000 iterations is shown; print state@0:1000 gives all of a range"
    assert (answer.data["stride"], answer.data["shown"], answer.data["total"]) == (4, 10_000, 40_000)
    few = interpreter.execute("print state@0:1000").data
    assert (few["stride"], few["shown"], few["total"]) == (1, 1000, 1000)
    assert [one["values"] for one in few["series"]] == [[float(1 + iteration)] for iteration in range(1000)]


def test_an_empty_line_repeats_the_last_movement_and_nothing_else() -> None:
    interpreter = at_prompt()
    assert said(interpreter, "") == []
    said(interpreter, "step 3", "print start")
    assert said(interpreter, "")[0].startswith("tick 6 ")
    said(interpreter, "reverse-step", "where")
    assert said(interpreter, "   ")[0].startswith("tick 4 ")


def test_where_tells_of_frames_or_of_where_an_element_goes() -> None:
    interpreter = at_prompt()
    said(interpreter, "last")
    asked = said(interpreter, "where does start go")
    assert asked[0].startswith("where start") and asked == said(interpreter, "why where does start go")
    assert said(interpreter, "where") == said(interpreter, "bt")
    with pytest.raises(UsageError, match="nothing is expected behind the command"):
        said(interpreter, "where is it")


def test_a_comment_is_nothing_and_repeats_nothing() -> None:
    interpreter = at_prompt()
    said(interpreter, "step", "# a comment")
    assert interpreter.session.debugger.machine.tick == 1
    assert said(interpreter, "step 2 # two of them")[0].startswith("tick 3 ")
    assert without_comment('log x "# {x}" # y') == 'log x "# {x}"'
    assert without_comment("print `a # b`[0]#1") == "print `a # b`[0]#1"


@each_row("word", [command.name for command in commands()])
def test_every_command_has_a_line_of_help(word: str) -> None:
    lines = said(at_prompt(), f"help {word}")
    assert lines[0].startswith(word) and max(map(len, lines)) <= 80
    assert any(line.startswith(f"usage: {word}") for line in lines)


def test_help_lists_all_commands_by_groups() -> None:
    lines = said(at_prompt(), "help")
    named = [line.partition("  ")[0] for line in lines if not line.startswith(" ")]
    assert named[:-1] == [command.title for command in commands()]
    assert lines[-1].startswith("help TOPIC: addresses, expressions, breaks") and max(map(len, lines)) <= 80
    assert {command.group for command in commands()} == set(GROUPS)


def test_no_word_means_two_commands() -> None:
    words = [word for command in commands() for word in (command.name, *command.abbreviations)]
    assert len(words) == len(set(words))


# --- errors ---------------------------------------------------------------------------------------------------------


@each_row(
    ("line", "expected"),
    [
        ("print number +", "found the end\n  number +\n          ^"),
        ("break number_next if max(", "found the end\n  max(\n      ^"),
        ("watch 1 $ 2", "^"),
        ("until h[", "^"),
        ('log number "{max(}"', "^"),
        ("find number_next = 3", "^"),
        ("next three", "a repeat count is expected, not 'three'"),
        ("next " + "9" * 40, "a number has at most 30 digits, '9999999999...' has 40"),
        ("break number_next hit 0", "hit 0: the first hit is 1"),
        ("break grow", "'grow' has a limit, and it needs one: grow>1e3"),
        ("break diff> x", "'diff' has a limit, and 'x' is not a number: diff>1e-4"),
        ("break changes", "'changes' needs a value: changes h_next"),
        ("next 0", "a repeat count is 1 or more, not 0"),
        ("finish 3", "nothing is expected behind the command, and there is '3'"),
        ("iter", "the iteration is missing"),
        ("iter 300", "there is no iteration 300"),
        ("iter -1", "no loop has run an iteration before this position"),
        ("goto nothing_like_it", "there is nothing called"),
        ("goto 'a", "there is no mark 'a'; there are none"),
        ("goto tick x", "a tick is expected"),
        ("break", "what to stop at is missing"),
        ("break number_next if", "the condition behind 'if' is missing"),
        ("break nan if iter > 3", "write both as one"),
        ("log number_next", "a line in double quotes is missing"),
        ('log "x"', "no operation has just run here"),
        ("ignore 1", "are expected"),
        ("delete 4", "there is no breakpoint 4"),
        ("up", "this is the model's own graph"),
        ("down", "this is the innermost frame"),
        ("info trip", "the run is in no loop here; goto model::until_one goes into one"),
        ("set start", "ADDR = EXPR is expected"),
        ("set start == 3", "ADDR = EXPR is expected"),
        ("set start = [1,", "is not a tensor"),
        ("save start", "a file that ends in .npy"),
        ("save start /nowhere/at/all.npy", "cannot be written"),
        ("source /nowhere/at/all", "cannot be read"),
        ("mark two words", "letters and digits"),
        ("branch", "the name of a branch is missing"),
    ],
)
def test_an_error_is_one_message_and_changes_nothing(line: str, expected: str) -> None:
    interpreter = at_prompt()
    assert expected in problem(interpreter, line)
    assert interpreter.session.debugger.machine.tick == 0 and interpreter.session.history == []
    assert said(interpreter, "step")[0] == "tick 1  model"


# --- single commands ------------------------------------------------------------------------------------------------


def test_iterations_are_absolute_or_relative() -> None:
    interpreter = at_prompt()
    said(interpreter, "run-to number_next")
    places = [("iter 7", 7), ("iter +3", 10), ("iter -4", 6), ("iter last", 110), ("iter first", 0), ("goto 5", 5)]
    for line, iteration in places:
        said(interpreter, line)
        stop = interpreter.session.debugger.stop
        assert stop.iteration == iteration and stop.done is not None and stop.done.layer.name == "number_next"


@each_row("start", ["first", "last", "goto tick 700"])
def test_an_address_leads_to_its_operation_from_anywhere(start: str) -> None:
    interpreter = at_prompt("nested_loop")
    said(interpreter, start, "goto passes@1::pairs_of_neighbours@2::swapped")
    stop = interpreter.session.debugger.stop
    assert stop.done is not None and stop.done.layer.name == "swapped"
    assert stop.place == "model > Loop 'passes' #1 > Loop 'pairs_of_neighbours' #2"
    said(interpreter, "goto left")
    assert interpreter.session.debugger.stop.place == stop.place
    assert problem(interpreter, "goto left@9") == "the run never comes to 'left@9'"


def test_a_mark_belongs_to_its_branch() -> None:
    interpreter = at_prompt()
    said(interpreter, "run-to until_one@4", "mark a", "set number = 3")
    assert problem(interpreter, "goto 'a").endswith("go there first: branch original")
    said(interpreter, "branch original", "last", "goto 'a")
    assert interpreter.session.debugger.stop.iteration == 4
    assert said(interpreter, "info marks")[0].startswith("a  tick ")


def test_a_breakpoint_is_switched_off_and_on_and_taken_away() -> None:
    interpreter = at_prompt()
    said(interpreter, "break number_next hit 3", "disable 1")
    assert said(interpreter, "c")[0].endswith("(end of the run)")
    said(interpreter, "first", "enable 1")
    assert said(interpreter, "c")[0].startswith("tick") and interpreter.session.debugger.stop.iteration == 2
    assert said(interpreter, "delete 1") == ["no breakpoints"]


def test_once_and_ignore() -> None:
    interpreter = at_prompt()
    said(interpreter, "break until_one@3 once", "break number_next", "ignore 2 5", "c")
    assert interpreter.session.debugger.stop.iteration == 3
    assert [line.split()[0] for line in said(interpreter, "info breaks")] == ["2"]
    assert said(interpreter, "info breakpoints") == said(interpreter, "info b") == said(interpreter, "info breaks")
    said(interpreter, "c")
    assert interpreter.session.debugger.stop.iteration == 5


def test_a_value_that_nothing_reads_any_more_is_set_with_a_word_of_warning() -> None:
    interpreter = at_prompt()
    said(interpreter, "run-to steps_next")
    assert said(interpreter, "set number = 8")[-1] == "  nothing that is still to come in this iteration reads 'number'"
    assert len(said(interpreter, "set number_next = 8")) == 3


def test_a_value_of_another_iteration_is_set_there() -> None:
    interpreter = at_prompt()
    said(interpreter, "set number@4 = 8")
    debugger = interpreter.session.debugger
    assert debugger.stop.iteration == 4 and debugger.timeline.branch != "original"
    assert interpreter.execute("print number").data["values"] == [8]
    said(interpreter, "last")
    steps, _peak, _numbers = collatz(8)
    assert debugger.machine.outputs is not None and int(debugger.machine.outputs[0]) == 4 + steps


def test_a_literal_or_an_expression_can_be_set() -> None:
    interpreter = at_prompt("nested_loop")
    said(interpreter, "run-to passes@0", "set order = [5, 4, 3, 2, 1]")
    assert interpreter.execute("print order").data["values"] == [5, 4, 3, 2, 1]
    said(interpreter, "set order[1:3] = order[3:5] * 2")
    assert interpreter.execute("print order").data["values"] == [5, 4, 2, 2, 1]


def test_a_value_is_saved(tmp_path: Path) -> None:
    interpreter = at_prompt("nested_loop")
    said(interpreter, "run-to passes@1", f"save order * 2 {tmp_path / 'order.npy'}")
    assert np.load(tmp_path / "order.npy").tolist() == [2, 8, 4, 10, 16]


def test_up_and_down_look_at_other_frames_until_the_run_moves() -> None:
    interpreter = at_prompt("nested_loop")
    said(interpreter, "run-to left")
    assert said(interpreter, "info trip")[0].startswith("  trip count: 4 iterations")
    assert said(interpreter, "up") == ["model > Loop 'passes' #0"]
    assert said(interpreter, "info trip")[0].startswith("  trip count: at most 4 iterations")
    assert ">    1  Loop 'pairs_of_neighbours'" in said(interpreter, "list")
    assert said(interpreter, "up") == ["model"] and said(interpreter, "down") == ["model > Loop 'passes' #0"]
    said(interpreter, "next")
    assert said(interpreter, "where")[2].startswith("> 2 ")


def test_every_answer_can_be_written_as_json() -> None:
    for name in ("nested_loop", "while_loop"):
        interpreter = at_prompt(name)
        interpreter.session.debugger.breakpoints.sink = lambda _line: None
        for line in commands_in((FOLDER / f"{name}.txt").read_text(encoding="utf-8")):
            json.dumps(interpreter.execute(line).data, allow_nan=False)


# --- the log of commands --------------------------------------------------------------------------------------------


def test_the_log_does_the_same_once_more(tmp_path: Path) -> None:
    interpreter = at_prompt()
    for line in commands_in((FOLDER / "while_loop.txt").read_text(encoding="utf-8")):
        interpreter.execute(line)
    said(interpreter, f"history {tmp_path / 'log'}")
    twin = at_prompt()
    said(twin, f"source {tmp_path / 'log'}")
    assert twin.session.history == interpreter.session.history
    assert state(twin) == state(interpreter)


def state(interpreter: Interpreter) -> Any:
    debugger = interpreter.session.debugger
    return debugger.stop, list(debugger.branches), interpreter.session.marks


def test_a_file_of_commands_ends_at_the_first_that_fails(tmp_path: Path) -> None:
    script = tmp_path / "commands"
    script.write_text("step\n\n# next\nprint 1 +\nstep\n", encoding="utf-8")
    interpreter = at_prompt()
    with pytest.raises(ScriptError, match=re.escape(f"{script}, line 4: expected a number")) as failed:
        interpreter.execute(f"source {script}")
    assert failed.value.exit_code == UsageError.exit_code
    assert interpreter.session.debugger.machine.tick == 1


def test_a_file_that_reads_itself_ends(tmp_path: Path) -> None:
    script = tmp_path / "commands"
    script.write_text(f"step\nsource {script}\n", encoding="utf-8")
    interpreter = at_prompt()
    assert "files of commands are inside one another" in problem(interpreter, f"source {script}")
    assert interpreter.session.debugger.machine.tick == 8


@each_row("name", ["nested_loop", "while_loop", "specification_lstm"])
def test_from_the_end_one_goes_back_over_whole_operations(name: str) -> None:
    interpreter = at_prompt(name)
    said(interpreter, "last")
    while interpreter.session.debugger.machine.tick:
        tick = interpreter.session.debugger.machine.tick
        said(interpreter, "rn")
        assert interpreter.session.debugger.machine.tick < tick and interpreter.session.debugger.depth == 1


# --- commands of breakpoints ----------------------------------------------------------------------------------------


def test_commands_of_a_breakpoint_are_carried_out_whenever_it_stops() -> None:
    numbers = collatz(27)[2]
    interpreter = at_prompt()
    said(interpreter, "break number_next")
    assert said(interpreter, "commands 1")[0].startswith("type what to do when breakpoint 1 stops")
    assert interpreter.is_collecting
    assert said(interpreter, "silent", "print number_next", "end") == ["breakpoint 1 does: silent; print number_next"]
    assert not interpreter.is_collecting
    for number in numbers[:3]:
        assert said(interpreter, "continue") == [f"i64[] {number}"]
    answer = interpreter.execute("continue")
    assert answer.data["breakpoint_commands"][1]["answer"]["values"] == [numbers[3]]
    listed = interpreter.execute("info breaks")
    assert listed.lines[1:] == ("     silent", "     print number_next")
    assert listed.data["breakpoints"][0]["commands"] == ["silent", "print number_next"]


def test_commands_may_let_the_run_go_on_from_stop_to_stop() -> None:
    numbers = collatz(27)[2]
    interpreter = at_prompt()
    said(interpreter, "break number_next if iter < 20", "commands silent; print number_next; continue; print never")
    found = said(interpreter, "continue")
    assert found[:20] == [f"i64[] {number}" for number in numbers[:20]]
    assert found[20].endswith("model  (end of the run)") and len(found) == 24
    assert interpreter.session.history[-1] == "continue"


def test_commands_without_an_end_are_bounded_and_their_errors_are_said(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(interpreter_module, "_MOST_STOPS", 50)
    interpreter = Interpreter(opened(tmp_path, recurrence("Add", 1.0, -1)))
    said(interpreter, "break following", "commands 1 silent; continue")
    assert (
        said(interpreter, "continue")[-1] == "the commands of breakpoints have continued 50 times; the run stops here"
    )
    said(interpreter, "commands 1 print nothing_there; continue")
    assert "breakpoint 1, command 'print nothing_there': there is nothing called" in said(interpreter, "continue")[-1]
    said(interpreter, "commands 1 end")
    assert interpreter.session.debugger.breakpoints[1].description.commands == ()


def test_commands_of_a_breakpoint_that_stops_once_are_carried_out_and_kept_in_a_session(tmp_path: Path) -> None:
    interpreter = at_prompt()
    said(interpreter, "break until_one@2 once", "commands 1 print iter", f"session save {tmp_path}/kept")
    assert said(interpreter, "continue")[-1] == "2"
    again = at_prompt()
    waiting = "breakpoint 1 has commands of the file; `trust 1` lets it do: print iter"
    assert said(again, f"session load {tmp_path}/kept")[-1] == waiting
    assert said(again, "info breaks")[-1] == "     print iter  (needs trust)"
    assert said(again, "trust 1", "continue")[-1] == "2"


def test_commands_out_of_a_file_wait_for_the_user_who_may_also_type_others(tmp_path: Path) -> None:
    interpreter = at_prompt()
    said(interpreter, "break number_next", "commands 1 print iter; continue", f"session save {tmp_path}/kept")
    again = at_prompt()
    said(again, f"session load {tmp_path}/kept")
    for number in range(2):
        answer = again.execute("continue")
        assert answer.lines[-1].startswith("breakpoint 1 has commands of the file")
        assert answer.data["notes"] == [answer.lines[-1]]
        assert again.session.debugger.stop.iteration == number
    said(again, "commands 1 print iter", f"session save {tmp_path}/typed")
    assert said(again, "continue")[-1] == "2"
    said(again, f"session load {tmp_path}/typed")
    assert again.session.debugger.breakpoints[1].description.need_trust


@each_row("line", ["history rc", "hist rc", "save iter x.npy", "commands 1 print iter", "trust", "source x"])
def test_commands_of_a_file_write_no_file_and_agree_to_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    """A file may hold what the prompt refuses."""
    monkeypatch.chdir(tmp_path)
    interpreter = at_prompt()
    said(interpreter, "break number_next", "commands 1 print iter")
    interpreter.session.debugger.breakpoints.attach(1, (line,))  # as a forged file has it
    said(interpreter, "session save kept")
    again = at_prompt()
    said(again, "session load kept", "trust")
    assert "cannot be a command of a breakpoint" in said(again, "continue")[-1]
    assert [one.name for one in tmp_path.iterdir()] == ["kept"]


def test_history_and_save_replace_only_what_they_wrote(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / ".bashrc").write_text("export A=1\n")
    np.save(tmp_path / "weights.npy", np.arange(3))
    before = (tmp_path / "weights.npy").read_bytes()
    interpreter = at_prompt()
    assert "not one that this command wrote" in problem(interpreter, "history .bashrc")
    said(interpreter, "break number_next", "continue")
    assert "not one that this command wrote" in problem(interpreter, "save iter weights.npy")
    assert (tmp_path / ".bashrc").read_text() == "export A=1\n"
    assert (tmp_path / "weights.npy").read_bytes() == before
    said(interpreter, "step", "save iter a.npy", "step", "save iter a.npy", "history h", "step", "history h")
    assert "step" in (tmp_path / "h").read_text()


def test_what_cannot_be_a_command_of_a_breakpoint_is_refused() -> None:
    interpreter = at_prompt()
    assert problem(interpreter, "commands 1") == "there is no breakpoint 1; there are none"
    said(interpreter, "break number_next", 'log number_next "{iter}"')
    assert "'source' cannot be a command of a breakpoint" in problem(interpreter, "commands 1 source x")
    assert "there is no command 'brake'" in problem(interpreter, "commands 1 brake x")
    assert "writes lines and never stops" in problem(interpreter, "commands 2 print iter")
    one_line = Interpreter(interpreter.session.debugger, multiline=False)
    assert "write them in one line: commands 1 silent" in problem(one_line, "commands 1")


def test_a_file_that_ends_within_commands_is_refused(tmp_path: Path) -> None:
    (tmp_path / "half").write_text("break number_next\ncommands 1\nprint iter\n")
    interpreter = at_prompt()
    assert "the commands of breakpoint 1 have no end" in problem(interpreter, f"source {tmp_path}/half")
    assert not interpreter.is_collecting
