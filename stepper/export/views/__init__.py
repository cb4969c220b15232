"""The views of a loop: static, unrolled, port map."""
