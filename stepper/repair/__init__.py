"""Repair: the edit of a graph that makes its outputs equal to those of a reference."""
