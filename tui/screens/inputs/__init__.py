"""The screen that asks for inputs, and its panes."""
