"""The process in which OpenVINO runs: its requests, its messages, how it ends."""
