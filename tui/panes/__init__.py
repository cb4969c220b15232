"""The panes: one class a file, its style beside it."""
