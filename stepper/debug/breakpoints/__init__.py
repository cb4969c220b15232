"""Breakpoints: how they are written, what they ask at which place, and the watcher that stops a run."""
