"""The file format: XML and .bin to an immutable Model. Knows nothing of execution."""

from stepper.ir.model import Body, Graph, Layer, Model
from stepper.ir.reader import read

__all__ = ["Body", "Graph", "Layer", "Model", "read"]
