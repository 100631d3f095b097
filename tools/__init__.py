"""What maintainers run beside the product: never part of the wheel."""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # of matrices this small, threads spend their time on waiting
