"""The keys are data: every one is a known command, none stands twice, and footer, help and palette are made of them."""

from __future__ import annotations

import pytest
from stepper_tui.command_line import VIEWS
from stepper_tui.keymap import Dispatcher, footer, gap_of
from stepper_tui.keys import FOOTERS, KEYS, STAYING, Key
from stepper_tui.registry import actions
from stepper_tui.screens.help import paired
from textual import events
from textual.command import Command, CommandList
from textual.widgets.option_list import Option

from stepper.commands.command_session import command_called, commands
from tests.tui.driven import DECODER, Driven, drive


@pytest.mark.parametrize("key", KEYS, ids=lambda key: f"{key.keys[0]}-{'-'.join(key.panes)}")
def test_every_key_is_a_command_that_there_is(key: Key) -> None:
    word = key.command.split()[0]
    assert word in actions() or command_called(word).name == word
    assert key.word and key.help


@pytest.mark.parametrize("pane", ["", *FOOTERS])
def test_no_key_stands_for_two_commands_in_a_pane(pane: str) -> None:
    for scope in ([key for key in KEYS if pane in key.panes], [key for key in KEYS if not key.panes]):
        names = [name for key in scope for name in key.keys]
        assert len(names) == len(set(names))


@pytest.mark.parametrize("pane", FOOTERS)
def test_the_footer_of_a_pane_has_all_that_was_asked_for(pane: str) -> None:
    assert len(footer(pane)) == len(FOOTERS[pane])


@pytest.mark.parametrize("room", [56, 78, 200])
@pytest.mark.parametrize("pane", FOOTERS)
def test_help_is_named_last_whatever_the_room_and_the_first_keys_come_first(pane: str, room: int) -> None:
    shown, whole = footer(pane, room=room), footer(pane)
    assert shown[-1] == whole[-1] == ("?", "help")
    assert len((" " * gap_of(room)).join(f"{key} {word}" for key, word in shown)) <= room
    staying = len([command for command in FOOTERS[pane] if command in STAYING])
    assert shown[:-staying] == whole[: len(shown) - staying] and shown[-staying:] == whole[-staying:]
    assert len(shown) > staying + 1


@pytest.mark.parametrize("name", VIEWS)
def test_help_is_in_sight_on_every_screen(name: str) -> None:
    async def script(driven: Driven) -> None:
        assert "? help" in driven.text("keys") and driven.text("colon").strip() == ":"

    drive("date_normaliser", script, size=(80, 24), lines=(f"run-to {DECODER}@0", f"view {name}"))


def test_help_of_a_page_lists_its_keys_and_help_alone_names_the_pages() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("help")
        lines = driven.app.front.query_one("#card").lines
        assert next(line for line in lines if line.startswith("help PAGE")).endswith(", ".join(VIEWS))
        words = {line.split()[0].rstrip(",") for line in lines if line.strip()}
        assert words >= {*actions(), *(command.name for command in commands())}
        for name, view in VIEWS.items():
            if name == "help":  # a command
                continue
            await driven.type(f"help {name}")
            lines = driven.app.front.query_one("#card").lines
            own = [key for key in KEYS if set(key.panes) & set(view.panes)]
            assert own
            text = " ".join(" ".join(lines).split())
            assert not [key for key in own if key.help not in text], name
        await driven.type("help sheet")
        assert "view sheet: values by iterations" in driven.text("card")
        found = [one.word for one in driven.app.completions("help she", 100)]
        assert "sheet" in found

    drive("for_loop", script, size=(120, 40))


def test_every_pane_with_keys_is_on_a_page() -> None:
    elsewhere = {"picks", "card"}
    assert {pane for key in KEYS for pane in key.panes} - elsewhere <= {one for v in VIEWS.values() for one in v.panes}


def test_no_action_hides_a_command_of_the_debugger_but_quit_and_why() -> None:
    """Leaving is the application's own; `why` shows the same answer as a strip, on a screen."""
    assert {command.name for command in commands()} & set(actions()) == {"quit", "why"}


@pytest.mark.parametrize("name", VIEWS)
def test_every_screen_of_the_registry_can_be_loaded(name: str) -> None:
    assert VIEWS[name].load().__name__.endswith("Screen")


@pytest.mark.parametrize(
    ("typed", "command"),
    [("n", "next"), ("12n", "next 12"), ("10]", "iter +10"), ("3[", "iter -3"), ("ma", "mark a"), ("'b", "goto 'b"),
     ("5s", "step 5"), ("2c", "continue 2")],
)  # fmt: skip
def test_counts_and_letters_are_put_together(typed: str, command: str) -> None:
    names = {"]": "right_square_bracket", "[": "left_square_bracket", "'": "apostrophe"}
    dispatcher = Dispatcher()
    found = [dispatcher.feed(events.Key(names.get(letter, letter), letter), "") for letter in typed]
    assert found[-1] == command and not any(found[:-1]) and not dispatcher.pending


def test_zero_alone_is_no_count_and_an_unknown_key_ends_one() -> None:
    dispatcher = Dispatcher()
    dispatcher.feed(events.Key("0", "0"), "")
    assert not dispatcher.pending
    assert dispatcher.feed(events.Key("4", "4"), "") == "" and dispatcher.pending == "4"
    assert dispatcher.feed(events.Key("f7", None), "") == "" and not dispatcher.pending


def test_the_prompt_completes_suggests_and_remembers() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("colon", "r", "e", "v")
        prompt = driven.app.front.prompt
        await driven.press("tab")
        assert prompt.value == "reverse-continue"
        await driven.press("tab")
        assert prompt.value == "reverse-finish"
        await driven.press("escape")
        await driven.type("goto tick 5")
        await driven.press("colon", "up")
        assert prompt.value == "goto tick 5"
        await driven.press("escape", "colon", "g", "o")
        assert prompt._suggestion == "goto tick 5"
        await driven.press("escape")
        assert driven.app.focused_pane is driven.pane("sheet")

    drive("date_normaliser", script)


@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)], ids=str)
def test_help_names_the_keys_of_the_pane_and_the_signs_on_one_page_where_there_is_room(size: tuple[int, int]) -> None:
    async def script(driven: Driven) -> None:
        text = await driven.do("question_mark")
        assert driven.app.front.view_name == "help" and "into the loop" in text
        assert ("lines 1 to" in text) is (size[1] < 40), "one page at 120x40"
        await driven.do("end")
        assert driven.state.view.tick == 0
        await driven.do("escape")
        assert driven.app.front.view_name == "sheet"

    drive("date_normaliser", script, size=size)


def test_there_are_at_most_two_dozen_keys_to_know_on_the_sheet_the_others_are_told_in_a_word() -> None:
    own = [key for key in KEYS if "sheet" in key.panes]
    taken = {name for key in own for name in key.keys}
    general = [key for key in KEYS if not key.panes and not taken.issuperset(key.keys)]

    async def script(driven: Driven) -> None:
        page = (await driven.do("question_mark")).partition(" also ")
        known = paired([key for key in own if not key.rare]) + paired([key for key in general if not key.rare])
        assert 12 <= len(known) <= 24 and all(key.shown in page[0] for key, _ in known)
        assert all(key.shown in page[2] for key in (*own, *general) if key.rare)

    drive("date_normaliser", script, size=(120, 40))


def is_sought(option: Option) -> bool:
    return isinstance(option, Command) and option.hit.text == "finish"


def test_the_palette_carries_out_what_is_chosen() -> None:
    async def script(driven: Driven) -> None:
        await driven.press("ctrl+p")
        for letter in "to the end of this loop":
            await driven.pilot.press("space" if letter == " " else letter)
        listed = driven.app.screen.query_one(CommandList)
        await driven.until(lambda: (at := listed.highlighted) is not None and is_sought(listed.get_option_at_index(at)))
        await driven.pilot.press("enter")
        await driven.settle()
        assert driven.state.view.tick > 0

    drive("for_loop", script, lines=("step",))


def test_names_from_a_file_are_never_markup() -> None:
    async def script(driven: Driven) -> None:
        await driven.type("[b]x[/b]")
        assert "[b]x[/b]" in driven.text("answer")
        await driven.type("goto `[red]`")
        assert "[red]" in driven.text("answer")

    drive("date_normaliser", script)
