"""Everything that talks to OpenVINO: the runtime, its converters, and what is computed there for us."""
