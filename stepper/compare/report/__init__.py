"""Findings of a comparison: evidence, verdict, explanation, and their words."""
