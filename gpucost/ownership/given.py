"""What a plan file says beside its inputs, read once: special names, supplies and lists by year, each by its kind."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from gpucost.arguments import QUESTIONS
from gpucost.arguments.kinds import DATE, FILE, USD, Kind, Read, name, one_of, plain, share, whole
from gpucost.errors import UsageError
from gpucost.options import OPTIONS

LONGEST_LIST = 1200  # months of a century
SUPPLY: dict[str, Kind] = {
    "name": name(),
    "kind": Kind(lambda value, what: one_of(*OPTIONS).read(value, what), "str", ("string",)),
    "usd_per_gpu_hour": USD,
    "term_months": whole(0, 1200),
    "max_gpus": plain(0, 1e9),
    "max_share_fraction": share(),
    "unit_gpus": plain(1e-3, 1e6),
    "lead_time_months": whole(0, 1200),
    "upfront_fraction": share(),
    "stretch_ratio": plain(1, 1000),
    "note": Kind(lambda value, _: str(value), "str", ("string",)),
    "source_id": Kind(lambda value, _: str(value), "str", ("string",)),
}


def by_year(value: Any, what: str) -> list[float]:
    """Read fractions by year."""
    if not isinstance(value, (list, tuple)) or not 0 < len(value) <= LONGEST_LIST:
        raise UsageError(f"{what}: a list of fractions by year is expected, such as [0.75, 0.58, 0.44, 0.32].")
    return [share().read(entry, what) for entry in value]


def tables(value: Any, what: str) -> list[dict[str, Any]]:
    """Read an array of tables."""
    if not isinstance(value, (list, tuple)) or not all(isinstance(entry, Mapping) for entry in value):
        raise UsageError(f"{what}: tables are expected, each as [[{what.rpartition(' ')[2]}]].")
    if len(value) > LONGEST_LIST:
        raise UsageError(f"{what}: {len(value):,} tables are more than {LONGEST_LIST:,}.")
    return [dict(entry) for entry in value]


def supply(entry: Mapping[str, Any], number: int) -> dict[str, Any]:
    """Read one supply of a plan."""
    called = entry.get("name", entry.get("kind", number))
    what = f"supply {called!r}"
    if unknown := sorted(set(entry) - set(SUPPLY)):
        raise UsageError(f"{what}: {unknown[0]} is not known. It takes {', '.join(SUPPLY)}.")
    if "kind" not in entry or "usd_per_gpu_hour" not in entry:
        raise UsageError(f"{what} needs kind ({' | '.join(OPTIONS)}) and usd_per_gpu_hour.")
    read = {key: SUPPLY[key].read(value, f"{what}: {key}") for key, value in entry.items()}
    return {"name": read["kind"], **read}


def special(key: str, value: Any, where: str) -> Any:
    """Read what a plan says under a special name."""
    read = _readers().get(key)
    return value if read is None or value is None else read(value, f"{where}: {key}")


@cache
def _readers() -> dict[str, Read]:
    """Return how each special name is read: as the argument of the same name, else as its kind says."""
    arguments = [one for question in ("tco", "mix") for one in QUESTIONS[question].arguments]
    found = {called: one.kind.read for one in arguments for called in (*one.old, one.name, one.field) if called}
    return found | {
        "refresh_year": plain(0, 100).read,
        "usd_per_unit": USD.read,
        "usd_per_unit_on": DATE.read,
        "currency_wacc_fraction": share().read,
        "fiscal_year_end_month": whole(1, 12).read,
        "start_on": DATE.read,
        "currency_curve": FILE.read,
        "rent_residual_correlation": share(1.0, -1.0).read,
        "residual_by_year": by_year,
        "residual_curve": by_year,
        "assessed_by_year": by_year,
        "depreciation_by_year": by_year,
        "supply": tables,
    }
