"""One line of text being typed inside of a pane."""

from __future__ import annotations

from textual import events

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
        """A key; whether it was one for the line."""
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
