"""Views of a stop: those of frames, loops, ports, values, as frozen data."""
