"""Benchmarks: each is a script that prints ratios; `test_benchmarks_run.py` runs them small and compares numbers only.

One thread each, for the sake of fairness. The BLAS of numpy reads it when numpy is first imported, so before all else.
"""

import os

for _name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_name, "1")
