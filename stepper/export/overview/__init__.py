"""The overview of a run as a part of an HTML page: each loop a card whose columns are iterations."""
