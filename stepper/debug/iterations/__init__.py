"""A value over the iterations of a loop: series, statistics, tiles."""
