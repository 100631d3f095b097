"""What this process keeps of the memory that it has freed."""

import os
import sys
from contextlib import suppress
from functools import cache

_KEPT_BYTES, _MAPPED_BYTES = 128 << 20, 32 << 20  # 32 MB is the most that glibc takes for the second
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # M_TRIM_THRESHOLD and M_MMAP_THRESHOLD of <malloc.h>
_SETTING = "MALLOC_TRIM_THRESHOLD_"


@cache
def keep_memory() -> None:
    """Let this process keep up to 128 MB of memory that it has freed, unless its environment lets it keep more.

    glibc gives large arrays back to the system when they are freed, and their pages are faulted anew: a third of the
    faults of an estimate. Dask starts its workers with a threshold of 65,536 bytes, by which a chunk takes twice the
    time. What the environment said holds until `mallopt` of the C library says otherwise.
    """
    threshold = os.environ.get(_SETTING, "0")
    if sys.platform != "linux" or not threshold.isdigit() or int(threshold) >= _KEPT_BYTES:
        return
    import ctypes  # only where there is something to set

    with suppress(OSError, AttributeError):  # another C library has its own ways
        for option, size in ((_TRIM_THRESHOLD, _KEPT_BYTES), (_MMAP_THRESHOLD, _MAPPED_BYTES)):
            ctypes.CDLL(None).mallopt(option, size)
