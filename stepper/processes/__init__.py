"""Worker processes, in which foreign runtimes compute: their crash, hang or lack of memory is an error of ours."""
