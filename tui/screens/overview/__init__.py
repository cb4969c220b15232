"""The screen of a whole run: each loop a card whose columns are iterations."""
