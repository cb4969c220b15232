"""How two model files differ, and whether that explains a difference of their runs."""
