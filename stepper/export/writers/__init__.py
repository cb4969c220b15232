"""Figures as files: SVG, PNG, PDF, TikZ, HTML, JSON and CSV."""
