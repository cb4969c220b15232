"""The catalogue of edits: a file for each family."""
