"""Where people work: protocols and hosts of other programs, each thin over the debugger and what explains its runs."""
