"""The strip of a story in cells: where everything lies, a canvas of it, and lanes for where there is little room."""
