"""Judgements of runs: where a breakpoint stops one, what check finds, where one parts from a reference."""
