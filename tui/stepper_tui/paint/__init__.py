"""Tools with which panes are painted: rows, columns, lists, styles."""
