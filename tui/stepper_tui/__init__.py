"""The terminal application of the stepper."""

import os

FRAMES: str = os.environ.setdefault("TEXTUAL_FPS", "120")
"""How often Textual paints a second at most; it reads this when it is imported. With its own 60 the answer to a key
waits up to 17 ms for the next frame, as the key itself has changed the screen a moment before."""
