"""What is wrong with rows that are well-formed: references, dates, arithmetic, and the known faults of price lists."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date, timedelta
from operator import itemgetter
from statistics import median
from typing import Any, NamedTuple

from gpucost.catalog.records import OWN_SOURCE
from gpucost.options import OPTIONS, is_plain
from gpucost.schemas import TABLES, Table
from gpucost.units import HOURS_PER_MONTH

Rows = Sequence[Mapping[str, Any]]

ANNOUNCED_DAYS = 400  # a price may be announced this long before it holds
_FAR_RATIO, _IMPOSSIBLE_RATIO = 5.0, 20.0
_NEAR = 0.35  # a ratio within this share of 730 or of a node's GPUs is taken for a slip of units
_AROUND_DAYS, _ENOUGH = 365, 5  # a median is taken over this many prices at least, seen within a year
_SAME_PRICE = 0.005  # usd_per_gpu_hour may differ by rounding from usd_per_hour ÷ gpus


class Finding(NamedTuple):
    """A row's fault (refused) or doubt (said aloud)."""

    row: int
    column: str
    reason: str
    doubt: bool = False


class Reference(NamedTuple):
    """What rows are held against: known keys, accelerators by id, and median prices by GPU and market."""

    keys: Mapping[str, frozenset[str]]  # table -> its keys
    accelerators: Mapping[str, Mapping[str, Any]]
    prices: Mapping[tuple[str, bool], "Level"]  # (gpu, is spot) -> what its GPU-hour usually costs
    today: date


class Level:
    """What a GPU-hour usually costs in one market: the median over the prices seen within a year of a month."""

    def __init__(self, seen: Iterable[tuple[date, float]]) -> None:
        self._seen = sorted(seen)
        self._days = [day for day, _ in self._seen]
        self._medians: dict[tuple[int, int], float | None] = {}

    def around(self, day: date) -> float | None:
        """Return the median around the month of a day, or None where too few prices are known."""
        month = (day.year, day.month)
        if month not in self._medians:
            middle = day.replace(day=15).toordinal()
            first = bisect_left(self._days, middle - _AROUND_DAYS, key=date.toordinal)
            last = bisect_right(self._days, middle + _AROUND_DAYS, key=date.toordinal)
            prices = [price for _, price in self._seen[first:last]]
            self._medians[month] = median(prices) if len(prices) >= _ENOUGH else None
        return self._medians[month]


def reference(rows_of: Callable[[str], Rows], today: date) -> Reference:
    """Gather what rows are held against from a catalog's tables."""
    keys = {
        name: frozenset(str(row[TABLES[name].key[0]]) for row in rows_of(name))
        for name in TABLES
        if len(TABLES[name].key) == 1
    }
    prices: dict[tuple[str, bool], list[tuple[date, float]]] = {}
    for row in rows_of("offers"):
        prices.setdefault((row["gpu"], _is_spot(row)), []).append((row["observed_on"], row["usd_per_gpu_hour"]))
    newest = max((row["recorded_on"] for row in rows_of("offers")), default=today)
    levels = {market: Level(seen) for market, seen in prices.items()}
    return Reference(keys, {row["id"]: row for row in rows_of("accelerators")}, levels, max(today, newest))


def _is_spot(row: Mapping[str, Any]) -> bool:
    return OPTIONS[row["option"]].family == "preemptible"


def check_rows(table: Table, rows: Sequence[tuple[int, Mapping[str, Any]]], known: Reference) -> Iterator[Finding]:
    """Yield what is wrong or odd about well-formed rows, each with its row number."""
    for number, row in rows:
        yield from (Finding(number, *found) for found in _references(table, row, known))
        yield from (Finding(number, *found) for found in _dates(table, row, known))
        yield from (Finding(number, *found) for found in _ranges(row))
        judge = _JUDGES.get(table.name)
        if judge:
            yield from (Finding(number, *found) for found in judge(row, known))
    if table.name == "offers":
        yield from _spot_above_demand(rows)
        yield from _contradictions(rows)


def _references(table: Table, row: Mapping[str, Any], known: Reference) -> Iterator[tuple[str, str]]:
    for column in table.columns:
        value = row.get(column.name)
        if not column.refers_to or value is None:
            continue
        sources = "price_sources" if table.files.startswith("pricing") else "model_sources"
        target = sources if column.refers_to == "sources" else column.refers_to
        if value not in known.keys.get(target, frozenset()) and value != OWN_SOURCE:
            what = "add it to sources.csv" if column.refers_to == "sources" else f"add it to {TABLES[target].files}"
            yield column.name, f"{value!r} is not in {target}; {what}, or name one that is there"


def _dates(table: Table, row: Mapping[str, Any], known: Reference) -> Iterator[tuple[str, str]]:
    for name in ("observed_on", "recorded_on", "accessed_on", "published_on"):
        value = row.get(name)
        if value is not None and value > known.today:
            yield name, f"{value} lies in the future"
    observed, recorded, valid = row.get("observed_on"), row.get("recorded_on"), row.get("valid_from")
    if observed and recorded and recorded < observed:
        yield "recorded_on", f"{recorded} lies before the observation on {observed}"
    if observed and valid and valid - observed > timedelta(days=ANNOUNCED_DAYS):
        yield "valid_from", f"{valid} lies more than {ANNOUNCED_DAYS} days after the observation on {observed}"


def _ranges(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    low, typical, high = row.get("low"), row.get("typical"), row.get("high")
    if typical is not None and ((low is not None and low > typical) or (high is not None and high < typical)):
        yield "typical", f"{typical:g} lies outside its range"


# --- offers


def _judge_offer(row: Mapping[str, Any], known: Reference) -> Iterator[tuple[str, str] | tuple[str, str, bool]]:
    per_gpu = row["usd_per_hour"] / row["gpus"]
    if abs(per_gpu / row["usd_per_gpu_hour"] - 1) > _SAME_PRICE:
        yield "usd_per_gpu_hour", f"{row['usd_per_gpu_hour']:g} is not usd_per_hour ÷ gpus = {per_gpu:g}"
    gpus = str(row["gpu"]).split("|")
    for gpu in gpus:
        if gpu not in known.accelerators:
            yield "gpu", f"{gpu!r} is not in models/accelerators.csv; `gpucost gpus` lists the ids"
    if len(gpus) == 1:
        level = known.prices.get((gpus[0], _is_spot(row)))
        yield from _judge_level(row, level.around(row["observed_on"]) if level else None)
    yield from _judge_terms(row)


def _judge_terms(row: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Hold what a price says about its term, its payment, its order and its place against each other."""
    committed = OPTIONS[row["option"]].family == "committed"
    if committed and row["term_months"] == 0:
        yield "term_months", f"a {row['option']} price needs the length of its term"
    if not committed and row["term_months"] > 0:
        yield "term_months", f"a price {row['option']} has no term; write 0"
    if committed and (row["billing"] != "take_or_pay" or row["payment"] == "none"):
        column = "payment" if row["payment"] == "none" else "billing"
        yield column, f"a {row['option']} price is paid whether used or not: billing take_or_pay, and how it is paid"
    if row["upfront_usd"] and row["term_months"] == 0:
        yield "upfront_usd", "a price with upfront_usd needs term_months, over which it is spread"
    recurring = row["recurring_usd_per_hour"]
    if row["payment"] in ("no_upfront", "monthly") and recurring is not None and recurring != row["usd_per_hour"]:
        yield "recurring_usd_per_hour", f"{recurring:g} is not usd_per_hour, though nothing is paid at the start"
    least, most = row["minimum_units"], row["maximum_units"]
    if least is not None and most is not None and least > most:
        yield "minimum_units", f"{least} is more than maximum_units {most}: nothing can be ordered"
    regional = row["region_scope"] in ("region", "country", "continent")
    if bool(row["region"]) != regional:
        what = "needs a region" if regional else "has no region; leave the cell empty"
        yield "region", f"a price for the scope {row['region_scope']} {what}"


def _judge_level(row: Mapping[str, Any], usual: float | None) -> Iterator[tuple[str, str] | tuple[str, str, bool]]:
    """Hold a price against the median of its GPU in its market (spot, or not)."""
    if usual is None:
        return
    ratio = row["usd_per_gpu_hour"] / usual
    stated = f"{row['usd_per_gpu_hour']:g} USD per GPU-hour is {ratio:.3g} × the median of {usual:.3g}"
    if ratio > 1 and abs(ratio / HOURS_PER_MONTH - 1) < _NEAR:
        yield "usd_per_hour", f"{stated}: is it a price per month?"
    elif ratio < 1 and abs(ratio * HOURS_PER_MONTH - 1) < _NEAR:
        yield "usd_per_hour", f"{stated}: was an hourly price divided by 730 again?"
    elif ratio > _IMPOSSIBLE_RATIO or ratio < 1 / _IMPOSSIBLE_RATIO:
        yield "usd_per_hour", f"{stated}: check the unit, the GPU count and the currency"
    elif ratio > _FAR_RATIO and any(abs(ratio / count - 1) < _NEAR for count in (8, 16)):
        yield "gpus", f"{stated}: is it the price of a whole node? Write it in usd_per_hour, beside its gpus"
    elif ratio > _FAR_RATIO or ratio < 1 / _FAR_RATIO:
        yield "usd_per_hour", f"{stated}", True


def _spot_above_demand(rows: Sequence[tuple[int, Mapping[str, Any]]]) -> Iterator[Finding]:
    """Find spot prices that are not below the on-demand price seen at the same place on the same day."""
    demand: dict[tuple[Any, ...], float] = {}
    for _, row in rows:
        if is_plain(row["option"]):
            place = _place(row)
            demand[place] = min(row["usd_per_gpu_hour"], demand.get(place, row["usd_per_gpu_hour"]))
    for number, row in rows:
        price = demand.get(_place(row))
        if _is_spot(row) and price is not None and row["usd_per_gpu_hour"] >= price:
            word = "equal to" if row["usd_per_gpu_hour"] == price else "above"
            reason = (
                f"the {row['option']} price is {word} the on-demand price of {price:g} USD per GPU-hour on that day"
            )
            yield Finding(number, "usd_per_hour", reason)


_place = itemgetter("provider", "instance_type", "gpu", "gpus", "region", "tier", "observed_on", "source_id")


_moment = itemgetter("offer_id", "observed_on", "recorded_on", "source_id")


def _contradictions(rows: Sequence[tuple[int, Mapping[str, Any]]]) -> Iterator[Finding]:
    """Find rows that give one offer two prices at the same time from the same source."""
    seen: dict[tuple[Any, ...], tuple[int, float]] = {}
    for number, row in rows:
        key = (*_moment(row), row["valid_from"] or row["observed_on"])
        first, price = seen.setdefault(key, (number, row["usd_per_hour"]))
        if price != row["usd_per_hour"]:
            reason = f"{row['usd_per_hour']:g} contradicts {price:g} in row {first}: one offer, one day, one source"
            yield Finding(number, "usd_per_hour", reason)


# --- accelerators


def _judge_accelerator(row: Mapping[str, Any], known: Reference) -> Iterator[tuple[str, str] | tuple[str, str, bool]]:
    alike = (other for other in known.accelerators.values() if other["architecture"] == row["architecture"])
    peers = [other for other in alike if other["id"] != row["id"]]
    yield from _sparse_as_dense(row, peers)
    yield from _both_directions(row, peers)
    if row["memory_gib"] > row["memory_marketed_gb"] * 1.001:
        yield "memory_gib", f"{row['memory_gib']:g} GiB usable exceeds {row['memory_marketed_gb']:g} GB as marketed"
    for small, large in (("bf16_tflops", "fp8_tflops"), ("fp8_tflops", "fp4_tflops"), ("tf32_tflops", "bf16_tflops")):
        if row.get(small) and row.get(large) and row[large] < row[small] * 0.99:
            yield large, f"{row[large]:g} is below {small} = {row[small]:g}; narrower formats are never slower"


def _sparse_as_dense(row: Mapping[str, Any], peers: Rows) -> Iterator[tuple[str, str, bool]]:
    """Compare the ratio of a peak to the FP32 peak with chips of the same architecture: twice theirs is a sparse peak.

    Gaming chips accumulate at half rate, so that their professional sisters look the same: for those it is a doubt.
    """
    for name in ("bf16_tflops", "fp16_tflops", "fp8_tflops", "int8_tflops", "tf32_tflops"):
        ratios = [peer[name] / peer["fp32_tflops"] for peer in peers if peer.get(name) and peer.get("fp32_tflops")]
        if not row.get(name) or not row.get("fp32_tflops") or not ratios:
            continue
        ratio = row[name] / row["fp32_tflops"] / max(ratios)
        if 1.7 < ratio < 2.4:
            said = f"{row[name]:g} is {ratio:.2g} × the dense peak of its architecture, held against FP32"
            yield name, f"{said}: is it the sparse peak?", not str(row["memory_type"]).startswith("HBM")


def _both_directions(row: Mapping[str, Any], peers: Rows) -> Iterator[tuple[str, str]]:
    """Compare an NVLink with chips of its architecture and generation: twice theirs is the sum of both directions."""
    generation = re.match(r"NVLink\d", str(row["scaleup_link"]))
    links = [
        peer["scaleup_gb_per_s"] for peer in peers if generation and str(peer["scaleup_link"]).startswith(generation[0])
    ]
    if any(links) and 1.9 < row["scaleup_gb_per_s"] / max(links) < 2.1:
        said = f"{row['scaleup_gb_per_s']:g} is twice the link of its architecture"
        yield "scaleup_gb_per_s", f"{said}: is it the sum of both directions?"


_JUDGES: dict[str, Callable[..., Iterator[Any]]] = {"offers": _judge_offer, "accelerators": _judge_accelerator}
