"""Figures in steps: a page for each iteration of a run, as files, as one SVG that plays, as a page with a slider."""
