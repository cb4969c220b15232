"""The table of a sweep on the whole terminal, before an input of it is opened in the debugger."""
