"""Values that a user gives to a run, for inputs and variables: from files, words, arrays and recorded calls."""
