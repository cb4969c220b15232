"""What a recording answers: values, statistics, searches."""
