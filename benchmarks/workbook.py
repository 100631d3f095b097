"""A workbook of 100,000 offers: seconds, and the memory that writing it adds. Budget: 8 s and 200 MB.

python -m benchmarks.workbook
"""

import json
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

ROWS = 100_000


def payload(rows: int) -> dict[str, Any]:
    """Return an answer with so many offers."""
    offer = {
        "provider": "alpha",
        "instance_type": "8x H100",
        "region": "us-east",
        "option": "on_demand",
        "gpu": "h100-sxm5-80gb",
        "gpus": 64,
        "nodes": 8,
        "days": 2.83,
        "gpu_hours": 4353.67,
        "usd_per_gpu_hour": 3.9,
        "cost_usd": 16988.46,
        "cost_low_usd": 11435.85,
        "cost_high_usd": 25239.32,
        "usd_per_mtok": 0.1698846,
        "mfu_fraction": 0.342,
        "price_observed_on": "2026-09-20",
        "source_ids": ["alpha-list"],
    }
    options = [{"rank": rank, **offer} for rank in range(1, rows + 1)]
    return {"kind": "estimate", "as_of": "2026-11-20", "options": options, "sources": {}, "warnings": []}


def main() -> None:
    from gpucost.render.excel import write_workbook

    answer = payload(ROWS)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "book.xlsx"
        started, worked = time.perf_counter(), time.process_time()
        write_workbook(answer, str(path))
        seconds, size = time.perf_counter() - started, path.stat().st_size / 1e6
        cpu = time.process_time() - worked
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(
        json.dumps(
            {
                "rows": ROWS,
                "seconds_s": seconds,
                "processor_s": cpu,
                "file_mb": size,
                "added_mib": after - before,
                "peak_mib": after,
            }
        )
    )


if __name__ == "__main__":
    main()
