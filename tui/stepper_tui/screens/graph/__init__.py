"""The graph of a body: what is drawn, where it lies, and the pane that shows it."""
