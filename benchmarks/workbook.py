"""A workbook of 100,000 offers: seconds, and the memory that writing it adds. Budget: 8 s and 200 MB.

python -m benchmarks.workbook [--rows 100000]
"""

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

ROWS = 100_000


def payload(rows: int) -> dict[str, Any]:
    """Return a real answer whose first option stands there so many times."""
    import gpucost

    answer = gpucost.estimate(model="8b", tokens="100b", gpu="h100-sxm", top=1, with_facts=False).to_dict()
    return {**answer, "options": [{**answer["options"][0], "rank": rank} for rank in range(1, rows + 1)]}


def main() -> None:
    from gpucost.render.excel import write_workbook

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=ROWS)
    rows = parser.parse_args().rows
    answer = payload(rows)
    # the peak only grows: what the answer itself takes is in it before
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "book.xlsx"
        started, worked = time.perf_counter(), time.process_time()
        write_workbook(answer, str(path))
        seconds, size = time.perf_counter() - started, path.stat().st_size / 1e6
        cpu = time.process_time() - worked
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures = {"rows": rows, "seconds_s": seconds, "processor_s": cpu, "file_mb": size}
    print(json.dumps({**figures, "added_mib": after - before, "peak_mib": after}))


if __name__ == "__main__":
    main()
