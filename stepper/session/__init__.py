"""What a user has set up, kept in a file: breakpoints, watches, marks, branches, place."""
