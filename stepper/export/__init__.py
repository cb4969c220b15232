"""What happened, on paper: layouts, figures and the files that people put into documentation."""
