"""Blocks that repeat in a graph: found by its structure, and drawn once with a count."""
