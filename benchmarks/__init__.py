"""Questions about the program as a whole: how right, how fast, how it compares."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of matrices this small, threads spend their time on waiting
