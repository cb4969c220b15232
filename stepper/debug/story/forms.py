"""How an element is made, and what each of its parts does."""

from __future__ import annotations

from enum import StrEnum


class LinkForm(StrEnum):
    """How an element is made of its parts; an extent of a broadcast is that of each of them."""

    SUM = "sum"
    PRODUCT = "product"
    QUOTIENT = "quotient"
    FUNCTION = "function"
    CHOICE = "choice"
    COMPARISON = "comparison"
    MOVE = "move"
    BROADCAST = "broadcast"
    WHOLE = "whole"


class PartRole(StrEnum):
    """Role of a part: it is a share of the result, decides it, was compared with what did, or says where from."""

    TERM = "term"
    FACTOR = "factor"
    DIVISOR = "divisor"
    ARGUMENT = "argument"
    DECIDES = "decides"
    COMPARED = "compared"
    INDEX = "index"
    CONDITION = "condition"
