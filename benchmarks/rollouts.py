"""Published steps of reinforcement learning against the model: `python -m benchmarks.rollouts [--enter]`.

`--enter` writes the first predictions of sources that have no line into models/ledger.csv, in a checkout.
"""

import sys
from datetime import date

from gpucost.calibration import ledger, reinforcement
from gpucost.catalog import open_catalog
from gpucost.catalog.loader import shipped_root


def main() -> None:
    """Print every step that can be predicted, and why the others cannot."""
    catalog = open_catalog()
    if "--enter" in sys.argv[1:]:
        root = shipped_root()
        for line in ledger.enter_steps(catalog, root, ledger.model_commit(root), date.today()):
            print(line["source"], line["figures"])
        return
    items, skipped = reinforcement.predict(catalog.rows("rl_measurements"), catalog)
    for item in items:
        print(
            f"{item.id}: {item.predicted:,.0f} s ({item.low:,.0f} to {item.high:,.0f}), measured {item.measured:,.0f}"
        )
    for row in skipped:
        print(f"{row['id']}: {row['reason']}")


if __name__ == "__main__":
    main()
