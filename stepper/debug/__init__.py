"""How a run is controlled and looked at: addresses, expressions, statistics, stopping, time travel."""
