"""Published steps of reinforcement learning against the model: `python -m benchmarks.rollouts`."""

from gpucost.calibration import reinforcement
from gpucost.catalog import open_catalog


def main() -> None:
    """Print every step that can be predicted, and why the others cannot."""
    catalog = open_catalog()
    items, skipped = reinforcement.predict(catalog.rows("rl_measurements"), catalog)
    for item in items:
        print(
            f"{item.id}: {item.predicted:,.0f} s ({item.low:,.0f} to {item.high:,.0f}), measured {item.measured:,.0f}"
        )
    for row in skipped:
        print(f"{row['id']}: {row['reason']}")


if __name__ == "__main__":
    main()
