"""The screens of breakpoints, watches, events and variables, and their panes."""
