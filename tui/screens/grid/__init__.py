"""The screen of operations by iterations, and its panes."""
