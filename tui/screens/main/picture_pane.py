"""A pane of pictures over the iterations of a loop, of which a column can be chosen: Enter goes to its iteration."""

from __future__ import annotations

from textual import events

from tui.paint.link_pane import LinkPane
from tui.paint.pane import Host
from tui.pictures.axis import Axis
from tui.screens.timeline.far_title import line_to_iteration
from tui.state import State


class PicturePane(LinkPane):
    """Rows of links, some of which are pictures; `picked` is the iteration of the column that was clicked."""

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.picked: int | None = None
        self._axes: dict[int, tuple[Axis, int]] = {}

    @property
    def marked(self) -> tuple[int, ...]:
        """The iteration that is marked in the pictures; none where no column is chosen."""
        return () if self.picked is None else (self.picked,)

    def begin_pictures(self) -> None:
        """Forget where pictures stand; the rows are made anew."""
        self._axes.clear()

    def place_picture(self, begin: int, lines: int, axis: Axis, at: int) -> None:
        """Remember that so many rows from one on are a picture, which begins in a column."""
        self._axes |= dict.fromkeys(range(begin, begin + lines), (axis, at))

    def picked_note(self, note: str) -> str:
        """Return what stands at the right of the heading, where a column is chosen what Enter does then."""
        return note if self.picked is None else f"{self.picked}: Enter goes there "

    def update(self, state: State) -> None:
        """In another iteration, or another run, no column is chosen."""
        before = self.state.iteration, self.state.loop_run, self.state.course
        if before != (state.iteration, state.loop_run, state.course):
            self.picked = None
        super().update(state)

    def choose(self, index: int) -> None:
        """Choose a link; that of a column is given up."""
        self.picked = None
        super().choose(index)
        self.host.show_keys()

    def open_chosen(self) -> None:
        """Go to the iteration of the chosen column; without one, where the chosen link leads."""
        if self.picked is None:
            super().open_chosen()
        else:
            self.post_line(line_to_iteration(self.state, self.host.driver.compiled, self.picked))

    def on_click(self, event: events.Click) -> None:
        """A click on a column chooses its iteration, a second one goes there; beside pictures as on other links."""
        iteration = self._iteration_at(event)
        if iteration is None:  # the handlers of the bases follow
            return
        event.prevent_default()
        wanted = self.destination_under(event)
        found = next((k for k, (_, target) in enumerate(self._targets()) if target is wanted), None)
        if found is not None:
            self.choose(found)
        self.picked = iteration
        self.changed()
        if event.chain >= 2:
            self.open_chosen()

    def unpick(self) -> bool:
        """Choose no column; True if one was chosen."""
        had, self.picked = self.picked is not None, None
        if had:
            self.changed()
        return had

    def move_column(self, by: int) -> None:
        """Choose the iteration so many places later, from the moment's on."""
        if self.state.loop is None or (self.state.iteration is None and not self.state.is_far):
            return
        last = self.state.seen_to
        self.picked = max(0, min((last if self.picked is None else self.picked) + by, last))
        self.changed()

    def _iteration_at(self, event: events.Click) -> int | None:
        place = event.get_content_offset(self)
        row = None if place is None else self.row_at(place.y)
        if place is None or row is None or row not in self._axes or self.state.loop is None:
            return None
        axis, at = self._axes[row]
        slot = axis.slot_at(place.x - at)
        is_in_loop = self.state.iteration is not None or self.state.is_far
        return None if slot is None or not is_in_loop or slot.first > self.state.seen_to else slot.first
