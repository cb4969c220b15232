"""The screen of differences from a reference, and its panes."""
