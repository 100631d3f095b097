"""What is wrong or odd about prices that are well formed: what they name, their days, terms, place and level.

The prices are a relation with a row number `n`, of a shipped file, a book or a file of millions alike. They are held
against the keys of other tables, against each other, and against the market: the median of their GPU, spot or not, over
the prices seen within a year of their month.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any, NamedTuple

from gpucost.catalog.availability import Availability
from gpucost.catalog.loader import Store, quoted
from gpucost.catalog.records import OWN_SOURCE
from gpucost.options import OPTIONS, is_plain
from gpucost.schemas import DUCKDB_TYPES, TABLES
from gpucost.units import HOURS_PER_MONTH

Row = Mapping[str, Any]

ANNOUNCED_DAYS = 400  # a price may be announced this long before it holds
_FAR_RATIO, _IMPOSSIBLE_RATIO = 5.0, 20.0  # of a price to its median: a doubt, and a fault
_NEAR = 0.35  # a ratio within this share of 730 or of a node's GPUs is taken for a slip of units
_AROUND_DAYS, _ENOUGH = 365, 5  # a median is taken over this many prices at least, seen within a year
_SAME_PRICE = 0.005  # usd_per_gpu_hour may differ by rounding from usd_per_hour ÷ gpus
_MOST_PLACED = 100_000  # rows whose network and region are looked at, one by one in Python
_MOST_ROWS = 1_000  # rows at fault that are named
FILE_STEP = 2**40  # the rows of a further file are counted from a multiple of it


class Finding(NamedTuple):
    """A row's fault (refused) or doubt (said aloud)."""

    row: int
    column: str
    reason: str
    doubt: bool = False


class Reference(NamedTuple):
    """What rows are held against: the keys of other tables, accelerators and systems by id, the last day of all."""

    keys: Mapping[str, frozenset[str]]  # table -> its keys; one that is not here may have any
    accelerators: Mapping[str, Row]
    systems: Mapping[str, Row]
    today: date
    availability: Availability | None = None
    is_own: bool = False  # rows of the user's own book, which rank whatever lists say


class _Check(NamedTuple):
    """The SQL that is true of a price to look at, and what is found there: column, reason, whether it is a doubt."""

    wrong: str
    finding: Callable[[Row], tuple[str, str] | tuple[str, str, bool]]


def load_prices(store: Store, name: str, rows: Sequence[tuple[int, Row]]) -> str:
    """Make a table of typed prices with their row numbers and return the SQL of it."""
    types = {column.name: DUCKDB_TYPES[column.kind] for column in TABLES["offers"].columns}
    columns: list[list[Any]] = [[number for number, _ in rows]]
    columns += [[row.get(column) for _, row in rows] for column in types]
    store.load(name, {"n": "BIGINT", **types}, columns)
    return f"SELECT * FROM {name}"


def check_prices(store: Store, prices: str, market: str, reference: Reference) -> Iterator[Finding]:
    """Yield what is wrong or odd about prices, row by row; `market` is the SQL of what GPU-hours usually cost."""
    accelerators = [*reference.accelerators]
    systems = [(id_, row["accelerator_id"], row["gpus"]) for id_, row in reference.systems.items()]
    store.load("check_accelerators", {"id": "VARCHAR"}, [accelerators])
    types = {"system_id": "VARCHAR", "holds": "VARCHAR", "held": "BIGINT"}
    store.load("check_systems", types, [list(cells) for cells in zip(*systems, strict=True)])
    checks = [*_reference_checks(store, reference), *_row_checks(reference.today), *_comparison_checks()]
    # what is usual is the nearer of two medians, over prices and over machines: one seller's list may name 20 regions
    rows = _with_comparisons(prices, market)
    # one pass over the prices, in which each check is a truth value of the row
    wrong = [f"coalesce({check.wrong}, false)" for check in checks]
    query = f"FROM ({rows}) WHERE {' OR '.join(wrong)}"
    rows_at_fault = store.fetch(f"SELECT *, [{', '.join(wrong)}] AS wrong {query} ORDER BY n LIMIT {_MOST_ROWS + 1}")
    for row in rows_at_fault[:_MOST_ROWS]:
        for check, is_wrong in zip(checks, row["wrong"], strict=True):
            if is_wrong:
                yield Finding(row["n"], *check.finding(row))
    if len(rows_at_fault) > _MOST_ROWS:
        count = store.fetch(f"SELECT count(*) AS count {query}")[0]["count"] - _MOST_ROWS
        yield Finding(
            rows_at_fault[_MOST_ROWS]["n"], "offer_id", f"{count:,} more rows with faults or doubts start here"
        )
    yield from placed(store, prices, reference)
    for table in ("accelerators", "systems", "keys"):
        store.execute(f"DROP TABLE IF EXISTS check_{table}")


# by what texts of sellers and makers call them
_NETWORKS = {
    "infiniband": ("infiniband", " ib", "ndr", "hdr", "quantum"),
    "efa": ("efa",),
    "roce": ("roce",),
    "tcpx": ("tcpx",),
}


def networks(text: str | None) -> frozenset[str]:
    """Return the kinds of network between machines that a text names.

    >>> sorted(networks("NVSwitch + EFA 3200G")), sorted(networks("PCIe")), sorted(networks(None))
    (['efa'], [], [])
    """
    padded = f" {text or ''}".lower()
    return frozenset(kind for kind, names in _NETWORKS.items() if any(name in padded for name in names))


def contradicted(store: Store, prices: str, systems: Mapping[str, Row]) -> Iterator[Finding]:
    """Yield prices of a network that their machine has not; the machine goes by its id, else by seller and product."""
    columns = "n, system_id, provider, instance_type, interconnect"
    for row in store.fetch(
        f"SELECT {columns} FROM ({prices}) WHERE interconnect IS NOT NULL ORDER BY n LIMIT {_MOST_PLACED}"
    ):
        system_id = row["system_id"] or f"{row['provider']}-{str(row['instance_type']).lower()}"
        fabric = systems.get(system_id, {}).get("fabric")
        # texts that name no network that is known contradict nothing
        if networks(fabric) and networks(row["interconnect"]) and not networks(fabric) & networks(row["interconnect"]):
            reason = f"{row['interconnect']!r} contradicts the machine: {system_id} is joined by {fabric}"
            yield Finding(row["n"], "interconnect", reason)


def placed(store: Store, prices: str, reference: Reference) -> Iterator[Finding]:
    """Yield prices of a network that the machine has not, and of machines that lists have not in that region."""
    yield from contradicted(store, prices, reference.systems)
    if reference.availability is None:
        return
    sellers = ", ".join(map(quoted, reference.availability.providers)) or "''"
    columns = "n, provider, instance_type, region, option, observed_on, source_id"
    regional = f"SELECT {columns} FROM ({prices}) WHERE provider IN ({sellers}) AND region IS NOT NULL"
    for row in store.fetch(f"{regional} ORDER BY n LIMIT {_MOST_PLACED}"):
        if (sale := reference.availability.of(row)).status == "unlisted":
            end = "look it up, it counts as your own" if reference.is_own else "not ranked"
            listed = f"the list {sale.source_id} of {sale.listed_on}"
            reason = f"{row['instance_type']} is not sold in {row['region']}, says {listed}: {end}"
            yield Finding(row["n"], "region", reason, True)


def _with_comparisons(prices: str, market: str) -> str:
    """Return the SQL of prices beside what each is compared with: the median of its market, its siblings, its node."""
    spot = ", ".join(quoted(name) for name, rule in OPTIONS.items() if rule.family == "preemptible")
    plain = ", ".join(quoted(name) for name in OPTIONS if is_plain(name))
    # prices of a month share their median: one for each month is asked, not one for each day
    middle = "CAST(date_trunc('month', observed_on) AS DATE) + 14"
    siblings = ("file", "provider", "instance_type", "gpu", "gpus", "region", "tier", "observed_on", "source_id")
    moment = ("file", "offer_id", "observed_on", "recorded_on", "source_id", "coalesce(valid_from, observed_on)")
    machines = """(SELECT gpu, is_spot, observed_on, median(usd) AS usd FROM known
        GROUP BY gpu, is_spot, provider, instance_type, observed_on)"""
    same_place = " AND ".join(f"d.{name} IS NOT DISTINCT FROM p.{name}" for name in siblings)
    return f"""WITH p AS (
    SELECT *, "option" IN ({spot}) AS is_spot, {middle} AS middle, hash({", ".join(moment)}) AS moment
    FROM (SELECT *, n // {FILE_STEP} AS file FROM ({prices}))
), known AS (
    SELECT gpu, "option" IN ({spot}) AS is_spot, provider, instance_type, observed_on, usd_per_gpu_hour AS usd
    FROM ({market})
), months AS (
    SELECT DISTINCT gpu, is_spot, middle FROM p WHERE NOT contains(gpu, '|')
), over_prices AS ({_median("known")}), over_machines AS ({_median(machines)}), plain AS (
    SELECT {", ".join(siblings)}, min(usd_per_gpu_hour) AS plain_usd FROM p WHERE "option" IN ({plain}) GROUP BY ALL
), twice AS (
    SELECT moment, min(n) AS first_row, arg_min(usd_per_hour, n) AS first_usd FROM p GROUP BY moment HAVING count(*) > 1
)
SELECT p.*, CASE WHEN abs(ln(usd_per_gpu_hour / m.usual)) < abs(ln(usd_per_gpu_hour / o.usual)) THEN m.usual
    ELSE coalesce(o.usual, m.usual) END AS usual, plain_usd, first_row, first_usd, holds, held FROM p
LEFT JOIN over_prices AS o USING (gpu, is_spot, middle)
LEFT JOIN over_machines AS m USING (gpu, is_spot, middle)
LEFT JOIN plain AS d ON p.is_spot AND {same_place}
LEFT JOIN twice USING (moment)
LEFT JOIN check_systems USING (system_id)"""


def _median(relation: str) -> str:
    """Return the SQL of the median around each month, where enough is known."""
    return f"""SELECT m.gpu, m.is_spot, m.middle, median(k.usd) AS usual
    FROM months AS m JOIN {relation} AS k ON k.gpu = m.gpu AND k.is_spot = m.is_spot
        AND k.observed_on BETWEEN m.middle - {_AROUND_DAYS} AND m.middle + {_AROUND_DAYS}
    GROUP BY ALL HAVING count(*) >= {_ENOUGH}"""


def _reference_checks(store: Store, reference: Reference) -> Iterator[_Check]:
    """Yield the checks of what a price names: its provider, its node, its source, its accelerators."""
    # keys of all tables in one, which each check asks for its own
    keys: list[tuple[str, str]] = []
    for column in TABLES["offers"].columns:
        table = "price_sources" if column.refers_to == "sources" else column.refers_to
        if not table or (table_keys := reference.keys.get(table)) is None:
            continue
        keys += [(table, key) for key in sorted(table_keys)]
        yield _Check(
            f"{column.name} <> {quoted(OWN_SOURCE)}"
            f" AND {column.name} NOT IN (SELECT key FROM check_keys WHERE name = {quoted(table)})",
            _cell_finding(
                column.name, f"{{!r}} is not in {TABLES[table].files}: add it there, or name one that is there"
            ),
        )
    store.load("check_keys", {"name": "VARCHAR", "key": "VARCHAR"}, [list(cells) for cells in zip(*keys, strict=True)])
    yield _Check(
        "NOT list_has_all((SELECT list(id) FROM check_accelerators), string_split(gpu, '|'))",
        lambda row: (
            "gpu",
            f"{next(id_ for id_ in row['gpu'].split('|') if id_ not in reference.accelerators)!r} is not in"
            " models/accelerators.csv; `gpucost gpus` lists the ids",
        ),
    )
    yield _Check(
        "holds <> gpu OR held < gpus",
        lambda row: (
            "system_id",
            f"{row['system_id']} holds {row['held']} × {row['holds']}, the offer is of others or of more",
        ),
    )


def _cell_finding(column: str, sentence: str) -> Callable[[Row], tuple[str, str]]:
    """Return a finding of one cell."""
    return lambda row: (column, sentence.format(row[column]))


def _row_checks(today: date) -> Iterator[_Check]:
    """Yield the checks of a row by itself: its days, its amounts, its term and payment, its order and place."""
    for name in ("observed_on", "recorded_on"):
        yield _Check(f"{name} > DATE '{today}'", _cell_finding(name, "{} lies in the future"))
    yield _Check(
        "recorded_on < observed_on",
        lambda row: ("recorded_on", f"{row['recorded_on']} lies before the observation on {row['observed_on']}"),
    )
    yield _Check(
        f"valid_from - observed_on > {ANNOUNCED_DAYS}",
        lambda row: (
            "valid_from",
            f"{row['valid_from']} lies more than {ANNOUNCED_DAYS} days after the observation on {row['observed_on']}",
        ),
    )
    yield _Check(
        f"abs(usd_per_hour / gpus / usd_per_gpu_hour - 1) > {_SAME_PRICE}",
        lambda row: (
            "usd_per_gpu_hour",
            f"{row['usd_per_gpu_hour']:g} is not usd_per_hour ÷ gpus = {row['usd_per_hour'] / row['gpus']:g}",
        ),
    )
    # what is committed has a term and is paid whether used or not; nothing else has either
    committed = ", ".join(quoted(name) for name, rule in OPTIONS.items() if rule.family == "committed")
    is_committed = f'"option" IN ({committed})' if committed else "false"
    yield _Check(
        f"{is_committed} AND term_months = 0",
        lambda row: ("term_months", f"a {row['option']} price needs the length of its term"),
    )
    yield _Check(
        f"NOT {is_committed} AND term_months > 0",
        lambda row: ("term_months", f"a price {row['option']} has no term; write 0"),
    )
    yield _Check(
        f"{is_committed} AND (billing <> 'take_or_pay' OR payment = 'none')",
        lambda row: (
            "payment" if row["payment"] == "none" else "billing",
            f"a {row['option']} price is paid whether used or not: billing take_or_pay, and how it is paid",
        ),
    )
    yield _Check(
        "upfront_usd <> 0 AND term_months = 0",
        lambda _: ("upfront_usd", "a price with upfront_usd needs term_months, over which it is spread"),
    )
    yield _Check(
        "payment IN ('no_upfront', 'monthly') AND recurring_usd_per_hour <> usd_per_hour",
        lambda row: (
            "recurring_usd_per_hour",
            f"{row['recurring_usd_per_hour']:g} is not usd_per_hour, though nothing is paid at the start",
        ),
    )
    yield _Check(
        "minimum_units > maximum_units",
        lambda row: (
            "minimum_units",
            f"{row['minimum_units']} is more than maximum_units {row['maximum_units']}: nothing can be ordered",
        ),
    )
    regional = "region_scope IN ('region', 'country', 'continent')"
    yield _Check(
        f"(coalesce(region, '') <> '') <> ({regional})",
        lambda row: (
            "region",
            f"a price for the scope {row['region_scope']}"
            f" {'has no region; leave the cell empty' if row['region'] else 'needs a region'}",
        ),
    )


def _comparison_checks() -> Iterator[_Check]:
    """Yield the checks of a price against the median of its market, and against others of its file."""

    def level(row: Row) -> tuple[str, str] | tuple[str, str, bool]:
        # the slips of units have ratios of their own: 730 hours in a month, 8 or 16 GPUs in a node
        ratio = row["usd_per_gpu_hour"] / row["usual"]
        stated = f"{row['usd_per_gpu_hour']:g} USD per GPU-hour is {ratio:.3g} × the median of {row['usual']:.3g}"
        if ratio > 1 and abs(ratio / HOURS_PER_MONTH - 1) < _NEAR:
            return "usd_per_hour", f"{stated}: is it a price per month?"
        if ratio < 1 and abs(ratio * HOURS_PER_MONTH - 1) < _NEAR:
            return "usd_per_hour", f"{stated}: was an hourly price divided by 730 again?"
        if not 1 / _IMPOSSIBLE_RATIO <= ratio <= _IMPOSSIBLE_RATIO:
            return "usd_per_hour", f"{stated}: check the unit, the GPU count and the currency"
        if ratio > _FAR_RATIO and any(abs(ratio / count - 1) < _NEAR for count in (8, 16)):
            return "gpus", f"{stated}: is it the price of a whole node? Write it in usd_per_hour, beside its gpus"
        return "usd_per_hour", stated, True

    yield _Check(f"usd_per_gpu_hour NOT BETWEEN usual / {_FAR_RATIO} AND usual * {_FAR_RATIO}", level)
    # spot below on demand, and one price at one time
    yield _Check(
        "usd_per_gpu_hour >= plain_usd",
        lambda row: (
            "usd_per_hour",
            f"the {row['option']} price is {'equal to' if row['usd_per_gpu_hour'] == row['plain_usd'] else 'above'} the"
            f" on-demand price of {row['plain_usd']:g} USD per GPU-hour on that day",
        ),
    )
    yield _Check(
        "usd_per_hour <> first_usd",
        lambda row: (
            "usd_per_hour",
            f"{row['usd_per_hour']:g} contradicts {row['first_usd']:g} in row {row['first_row'] % FILE_STEP}: one"
            " offer, one day, one source",
        ),
    )
