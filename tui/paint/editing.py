"""EditingPane: a pane in which a line can be typed in place. Enter keeps it, Esc forgets it, Tab completes.

Textual's Input is a widget of its own, with a style, a cursor that blinks and messages of its own: it cannot stand in a
cell of a row that a pane paints. The prompt, which has a line of the screen, is one (tui/screens/prompt.py).
"""

from __future__ import annotations

from textual import events

from tui.paint.pane import Host, Pane
from tui.paint.rows import Row


class EditingPane(Pane):
    """A subclass begins with `begin(text)` and is told by `typed`, `complete` and `kept`."""

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.editor: LineEditor | None = None

    @property
    def is_typing(self) -> bool:
        """True if a line is being typed."""
        return self.editor is not None

    def begin(self, text: str) -> None:
        """Type in place from now on."""
        self.editor = LineEditor(text)
        self.host.show_keys()
        self.typed(text)

    def typed(self, text: str) -> None:
        """The line has changed."""

    def complete(self, text: str, by: int) -> str:
        """Return a completion of the line; `by` is 1 or -1."""
        return text

    def kept(self, text: str) -> None:
        """The line is done."""

    def left(self) -> None:
        """The line is forgotten."""

    def on_key(self, event: events.Key) -> None:
        """Keys are for the line as long as one types."""
        editor = self.editor
        event.stop()
        event.prevent_default()
        if editor is None:  # typed before the end of the line was heeded, and so after it
            self._pass_on(event)
            return
        if event.key in ("tab", "down", "shift+tab", "up"):
            editor.put(self.complete(editor.text, 1 if event.key in ("tab", "down") else -1))
        elif event.key in ("enter", "escape"):
            self.editor = None
            self.host.show_keys()
            if event.key == "enter":
                self.kept(editor.text)
            else:
                self.left()
        elif editor.press(event):
            self.typed(editor.text)
        self.changed()

    def _pass_on(self, event: events.Key) -> None:
        """A key for the screen, or for what has got the focus by one before."""
        focused = self.screen.focused
        if focused is not None and focused is not self:
            focused.post_message(events.Key(event.key, event.character))
        else:
            self.host.heed(event)

    def on_paste(self, event: events.Paste) -> None:
        """Pasted text goes into the line."""
        if self.editor is not None:
            event.stop()
            self.editor.insert(event.text)
            self.typed(self.editor.text)
            self.changed()

    def edited(self, width: int, tone: str = "") -> Row:
        """Return the line with its cursor, the end of it where it is too long."""
        editor = self.editor
        assert editor is not None
        begin = max(editor.place - width + 2, 0)
        before, after = editor.text[begin : editor.place], editor.text[editor.place :]
        here = after[:1] or " "
        rest = after[1:][: max(width - len(before) - 1, 0)]
        blank = " " * max(width - len(before) - 1 - len(rest), 0)
        return [(before, tone), (here, "now"), (rest, tone), (blank, tone)]


MOST: int = 100_000
"""Characters of a line."""


class LineEditor:
    """A text and the place in it at which one types."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = len(text)

    def put(self, text: str) -> None:
        """Another text."""
        self.text, self.place = text, len(text)

    def insert(self, text: str) -> None:
        """Type or paste."""
        clean = "".join(letter for letter in text if letter.isprintable())
        self.text = (self.text[: self.place] + clean + self.text[self.place :])[:MOST]
        self.place = min(self.place + len(clean), len(self.text))

    def press(self, event: events.Key) -> bool:
        """Heed a key; True if it was one for the line."""
        key = event.key
        if key == "backspace":
            self.text = self.text[: max(self.place - 1, 0)] + self.text[self.place :]
            self.place = max(self.place - 1, 0)
        elif key == "delete":
            self.text = self.text[: self.place] + self.text[self.place + 1 :]
        elif key in ("left", "right"):
            self.place = max(0, min(self.place + (1 if key == "right" else -1), len(self.text)))
        elif key in ("home", "end"):
            self.place = 0 if key == "home" else len(self.text)
        elif key == "ctrl+u":
            self.put("")
        elif event.character and event.is_printable:
            self.insert(event.character)
        else:
            return False
        return True
