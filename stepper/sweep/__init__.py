"""Sweeps: one model on thousands of inputs, in many processes: which of them make NaN, differ, run on, and where."""
