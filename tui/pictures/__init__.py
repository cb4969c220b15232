"""Values over iterations as pictures: axes, heights, colours, shades in cells, rows of panes."""
