"""What-if: edits of a run, branches, and how two branches differ."""
