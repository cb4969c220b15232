"""Shares of what was asked about, added up by iteration: what each iteration brought to a state."""

from __future__ import annotations

from stepper.debug.causes.cause import LinkForm
from stepper.debug.story.facts import Story, StoryLink


def shares_by_iteration(story: Story) -> list[tuple[tuple[int, ...], float]]:
    """Return how much of what was asked about each iteration added, the latest first; they add up to what is shown.

    Only where all that it is made of are terms of sums, of which the exact shares are known.
    """
    found: dict[tuple[int, ...], float] = {}
    known: dict[int, bool] = {}
    for link in story.links:
        if link.share is None or not _is_sum(link):
            continue
        if any(one.share is None for one in link.operands):
            return []
        if all(one.link is None for one in link.operands):
            own = link.share  # it is followed no further, and all of it is told of here
        else:
            here = [one for one in link.operands if one.link is None or not _leads_back(story, one.link, known)]
            own = sum(link.share * (one.share or 0.0) for one in here)
        if own:
            path = story.columns[link.column].path
            found[path] = found.get(path, 0.0) + own
    return sorted(found.items(), reverse=True)


def _is_sum(link: StoryLink) -> bool:
    return link.form is LinkForm.SUM and link.share is not None


def _leads_back(story: Story, start: int, known: dict[int, bool]) -> bool:
    """Return True if a link is made, through products and moves alone, of a sum that has a share of its own.

    `known` has what was found of links before.
    """
    way: list[int] = []
    here: int | None = start
    while here is not None and here not in known and not _is_sum(story.links[here]):
        way.append(here)
        link = story.links[here]
        followed = [one.link for one in link.operands if one.link is not None]
        passes = link.form in (LinkForm.PRODUCT, LinkForm.MOVE, LinkForm.CHOICE) and link.share is not None
        here = followed[0] if passes and followed else None
    found = here is not None and known.get(here, True)
    known.update(dict.fromkeys(way, found))
    return found
