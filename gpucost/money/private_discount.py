"""The private percentage on a price, never below its floor: one rule, for a bill in Python and for a catalog in SQL.

The catalog reads it at every start, so that no numerical package is imported here.
"""


def paid_fraction(fraction: float, floor_usd_per_gpu_hour: float | None, usd_per_gpu_hour: float) -> float:
    """Return the share of a price that is paid: 1 - fraction, or what reaches the floor; never more than the price.

    Of several percentages the best speaks: the least share.

    >>> paid_fraction(0.25, None, 4.0), paid_fraction(0.25, 3.5, 4.0), paid_fraction(0.25, 5.0, 4.0)
    (0.75, 0.875, 1.0)
    """
    return max(1 - fraction, min(1.0, (floor_usd_per_gpu_hour or 0.0) / usd_per_gpu_hour))


def paid_fraction_sql(fraction: str, floor: str, price: str) -> str:
    """Return `paid_fraction` as SQL over the columns of a discount and of a price."""
    return f"greatest(1 - {fraction}, least(1, coalesce({floor}, 0) / {price}))"
