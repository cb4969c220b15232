"""The screen of the port map, and its panes."""
