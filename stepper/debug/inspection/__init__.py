"""What a stop shows: views of frames, loops, ports, values, as frozen data."""
