"""Causes across iterations as a strip: operations of the path by iterations, as data, as a layout of cells, as text."""
