"""Every name that a file may use, and the one that the reader knows it by.

The current names are OpenVINO's; the others are those of the first text of Loop-5 (specification/Loop-5, 2020), where
operations were not yet called layers and the condition was marked on its Parameter.
"""

from __future__ import annotations

from typing import Final

FIRST_DRAFT_TAGS: Final = {"layers": "operations", "layer": "operation"}
"""Element names of the first draft by their current names."""

FIRST_DRAFT_ATTRIBUTES: Final = {
    "internal_layer_id": "internal_operation_id",
    "from-layer": "from-operation",
    "to-layer": "to-operation",
}
"""Attribute names of the first draft by their current names."""

CURRENT_ITERATION: Final = "current_iteration"
EXECUTION_CONDITION: Final = "execution_condition"

BODIES: Final = {
    "TensorIterator": (("body", "port_map"),),
    "Loop": (("body", "port_map"),),
    "If": (("then_body", "then_port_map"), ("else_body", "else_port_map")),
}
"""The bodies of each type that has some, each with the element that holds its port map."""

READABLE_VERSIONS: Final = (10, 11)
