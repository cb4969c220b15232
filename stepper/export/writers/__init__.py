"""Figures as files: SVG, Mermaid, Markdown, HTML, JSON and CSV."""
