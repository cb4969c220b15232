"""Shares of what was asked about, added up by iteration: what each iteration brought to a state."""

from __future__ import annotations

from stepper.debug.story.facts import Story
from stepper.debug.story.forms import LinkForm


def shares_by_iteration(story: Story) -> list[tuple[tuple[int, ...], float]]:
    """Return how much of what was asked about each iteration added, the latest first; they add up to what is shown.

    Only where all that it is made of are terms of sums, of which the exact shares are known.
    """
    found: dict[tuple[int, ...], float] = {}
    for number_of, link in enumerate(story.links):
        sources = {edge.source for edge in story.edges if edge.target == number_of}
        if link.share is None or link.form is not LinkForm.SUM:
            continue
        own = 0.0
        for one in link.operands:
            made = None if one.link is None else story.links[one.link]
            if one.share is None:
                return []
            if made is None or not _leads_back(story, one.link):
                own += link.share * one.share
        if own and sources:
            path = story.columns[link.column].path
            found[path] = found.get(path, 0.0) + own
    return sorted(found.items(), reverse=True)


def _leads_back(story: Story, start: int | None) -> bool:
    """True if a link is made, through products and moves alone, of a sum that has a share of its own."""
    waiting = [] if start is None else [start]
    while waiting:
        here = waiting.pop()
        link = story.links[here]
        if link.form is LinkForm.SUM and link.share is not None and any(edge.target == here for edge in story.edges):
            return True
        if link.form in (LinkForm.PRODUCT, LinkForm.MOVE, LinkForm.CHOICE):
            waiting += [edge.source for edge in story.edges if edge.target == here]
    return False
