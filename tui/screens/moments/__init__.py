"""Panes of two moments side by side: where an edit spread, the selected value in A and now, what is carried."""
