"""Figures as data: boxes, wires, groups and labels of a graph or a run."""
