"""Reading a recording: values, statistics, searches."""
