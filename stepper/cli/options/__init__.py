"""What options of several commands mean."""
