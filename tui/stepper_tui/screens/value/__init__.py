"""The screen of one tensor, and its panes."""
