"""What panes are painted with: rows, lists, axes, styles."""
