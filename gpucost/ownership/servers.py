"""What the catalog knows of servers to buy: price, size and power, each with its source."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from gpucost.catalog import Catalog
from gpucost.errors import UsageError
from gpucost.ownership.plan import Assumption, Registry
from gpucost.types import Accelerator, Status, System


def server_of(catalog: Catalog, accelerator: Accelerator) -> tuple[System, dict[str, Any] | None]:
    """Return the node that is priced and the row with its price: the newest quote, the cheaper one on a tie."""
    default = catalog.default_system(accelerator.id)
    rows = [row for row in catalog.rows("systems") if row["accelerator_id"] == accelerator.id and row["price_low_usd"]]
    if not rows:
        return default, None
    newest = max(str(row["price_observed"] or "")[-4:] for row in rows)
    recent = [row for row in rows if str(row["price_observed"] or "")[-4:] == newest]
    return default, min(recent, key=lambda row: (row["price_low_usd"], row["id"]))


def server_inputs(catalog: Catalog, registry: Registry, accelerator: Accelerator) -> dict[str, Assumption]:
    """Return price, size and power of a server with this accelerator, each with its source."""
    system, quote = server_of(catalog, accelerator)
    row = next(row for row in catalog.rows("accelerators") if row["id"] == accelerator.id)
    gpus = int(quote["gpus"] if quote else system.gpus)
    power_kw, power_status, power_source = _power(catalog, registry, accelerator, gpus)
    known: dict[str, dict[str, Any]] = {
        "gpus_per_node": {
            "value": float(gpus),
            "source_id": system.source_id,
            "note": system.id,
            "status": "sourced" if system.status == "sourced" else "assumed",
        },
        "server_price_basis": {"value": "quote" if quote else "gpu_share", "status": "derived"},
        "server_max_kw": {"value": power_kw, "status": power_status, "source_id": power_source},
    }
    if quote:
        low, high = quote["price_low_usd"], quote["price_high_usd"] or quote["price_low_usd"]
        note = f"middle of {low:,.0f} to {high:,.0f} for {quote['id']}, seen {quote['price_observed']}"
        named = quote["price_source"]
        said = {
            "status": "derived" if named else "assumed",
            "source_id": quote["second_source_id"] or "",
            "observed": str(quote["price_observed"] or ""),
        }
        known["server_usd"] = _between(low, high, "", f"{note}; from {named or 'no stated source'}") | said
    if price := _chip_price(row):
        known["gpu_usd"] = price
    blank: dict[str, Any] = {"low": None, "high": None, "source_id": "", "note": "", "observed": ""}
    return {name: replace(registry.default(name), **{**blank, **entry}) for name, entry in known.items()}


def newer_chip(
    catalog: Catalog,
    registry: Registry,
    defaults: dict[str, Assumption],
    accelerator: Accelerator,
    asked: str | None,
    given: Mapping[str, Any],
) -> None:
    """Let a replacement be a newer chip: its price, speed and power against those of the first servers.

    Its speed is taken between the ratio of memory bandwidth and that of dense 16-bit peaks, which bound decoding and
    training; the middle of the two, in proportion, where nothing better is given.
    """
    if asked is None:
        return
    if not given.get("refresh_month"):
        raise UsageError(f"refresh_gpu = {asked!r}: say when, such as --set refresh_month=24.")
    newer = catalog.accelerator(asked)
    first, then = defaults, {**defaults, **server_inputs(catalog, registry, newer)}
    nodes = _number(then, "gpus_per_node") / _number(first, "gpus_per_node")
    rows = {row["id"]: row for row in catalog.rows("accelerators")}
    ends = sorted(
        nodes * rows[newer.id][key] / rows[accelerator.id][key]
        for key in ("bf16_tflops", "hbm_gb_per_s")
        if rows[newer.id][key] and rows[accelerator.id][key]
    )
    if not ends:
        raise UsageError(f"refresh_gpu = {asked!r}: its speed is not on record; give refresh_speed_ratio instead.")
    said = f"a server of {newer.id} ÷ one of {accelerator.id}"
    found = {
        "refresh_speed_ratio": ((ends[0] * ends[-1]) ** 0.5, ends[0], ends[-1]),
        "refresh_price_ratio": (_server_usd(then) / _server_usd(first), None, None),
        "refresh_power_ratio": (_number(then, "server_max_kw") / _number(first, "server_max_kw"), None, None),
    }
    for name, (value, low, high) in found.items():
        defaults[name] = replace(defaults[name], value=value, low=low, high=high, status="derived", note=said)


def _number(entries: Mapping[str, Assumption], name: str) -> float:
    value = entries[name].value
    if not isinstance(value, (int, float)):
        raise UsageError(f"refresh_gpu: {name} of one of the servers is not on record; give refresh_price_ratio.")
    return float(value)


def _server_usd(entries: Mapping[str, Assumption]) -> float:
    if entries["server_price_basis"].value == "quote":
        return _number(entries, "server_usd")
    return _number(entries, "gpu_usd") * _number(entries, "gpus_per_node") * _number(entries, "server_overhead_ratio")


def _chip_price(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return what a chip costs, by whom and when it was seen: its datasheet states no price."""
    street = bool(row["street_low_usd"])
    low, high = (row[f"street_{end}_usd"] if street else row["launch_usd"] for end in ("low", "high"))
    if not low:
        return None
    named = str(row["street_source" if street else "launch_source"] or "")
    estimated = not named or named.startswith("estimate")
    words = f"{'street price' if street else 'price at launch'}; from {named or 'no stated source'}"
    said = {
        "status": "assumed" if estimated else "derived",
        "observed": str(row["street_observed"] or "") if street else "",
    }
    return _between(low, high or low, "", words) | said


def _between(low: float, high: float, source_id: str, note: str) -> dict[str, Any]:
    return {
        "value": (low + high) / 2,
        "low": low,
        "high": high,
        "status": "sourced",
        "source_id": source_id,
        "note": note,
    }


def _power(
    catalog: Catalog, registry: Registry, accelerator: Accelerator, gpus: int
) -> tuple[float | None, Status, str]:
    """Return the rated power of a whole server: the largest rating of a node, else TDP × the server's share."""
    ratio = float(registry.fact("server_to_chip_power_ratio.h100")["typical"])
    rated = [
        (system.max_power_kw * gpus / system.gpus, system.source_id)
        for system in catalog.systems()
        if system.accelerator_id == accelerator.id
        and system.max_power_kw
        and system.kind in ("node", "rack", "baseboard")
    ]
    chips_kw = gpus * (accelerator.tdp_w or 0.0) / 1000
    whole = [entry for entry in rated if entry[0] > 1.2 * chips_kw]
    if whole:
        power, source = max(whole)
        return power, "sourced", source
    return (chips_kw * ratio, "derived", accelerator.source_id) if chips_kw else (None, "assumed", "")
