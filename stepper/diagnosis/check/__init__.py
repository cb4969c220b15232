"""Faults that a run shows: one run, watched as the overview watches it, is held against rules of their own."""
