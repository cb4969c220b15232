"""How a run is controlled and looked at: breakpoints, time travel, causes, values over iterations, branches."""
