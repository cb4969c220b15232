"""Figures of models and runs: views, layout, and the files that are written."""
