"""Keys: the map, presets, files of one's own, the palette."""
