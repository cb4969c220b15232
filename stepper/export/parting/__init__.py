"""Two runs side by side as figures: where they part, what differs, what is the same, what is mended."""
