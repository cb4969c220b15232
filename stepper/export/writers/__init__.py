"""Figures as files: SVG, DOT, Mermaid, Markdown, HTML, JSON and CSV."""
