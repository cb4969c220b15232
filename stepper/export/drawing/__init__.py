"""Drawings: shapes in pixels with names of styles, which SVG, PDF and PNG are painted from."""
