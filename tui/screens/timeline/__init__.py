"""The screen of values over time, and its panes."""
