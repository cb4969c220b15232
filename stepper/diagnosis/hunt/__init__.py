"""Random loops against OpenVINO: `hunting.hunt` begins it. Known faults of the runtime are in `faults`."""
