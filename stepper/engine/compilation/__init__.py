"""From a Model to a CompiledModel: all that no run changes is settled once."""
