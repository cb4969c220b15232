"""Execution of a model: Model to CompiledModel to Machine."""
