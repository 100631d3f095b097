"""Tables derived from dated prices and measurements: `python -m docs.generate` writes them, the package only reads.

Fates of quotes: whether an offer could still be had when its seller was looked up again, and at what price.

A look is a day on which a source read a seller's list: a version of a catalogue of the history, or the day of dated
rows of one publisher. A quote is an offer at its price on the day of a look; of a catalogue one look a month makes
quotes. Each quote is followed to one later look of the same source in each span of days, the nearest to the middle:

    still sold = somebody saw the offer on that day or later,  ratio = price then, or at its next sight ÷ quote

A look at dated rows counts only where it saw at least half as many offers of the seller and family as the look of the
quote did: some publishers copy a list in part. Within a kind of seller, a family of options and a span, a pair weighs
1 / sqrt(pairs of its seller), so that no long list speaks alone. A list does not say what is out of stock: the share is
that of what was still offered.
"""

from contextlib import suppress
from datetime import date
from typing import Any

from gpucost.catalog.asof import load_history
from gpucost.catalog.core import Catalog
from gpucost.catalog.price_months import month_ends, prices_of_day
from gpucost.catalog.prices import Watched, combined, list_moves, mean_move
from gpucost.errors import UnknownNameError
from gpucost.options import OPTIONS, quote_family

SPANS_DAYS = ((4, 14), (15, 45), (46, 75), (76, 120), (121, 240), (241, 400))
FIRST_MONTH = date(2022, 1, 31)  # of the index
_SHARES = (0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95)  # quantiles of the price then ÷ quote
REACH_DAYS = 720  # before the catalog's day: markets of longer ago were others

# versions: the days on which a catalogue of the history was read, and of each month the first, which makes quotes.
# dense, listed: what each look saw, of catalogues and of dated rows. followed: of each quote and span the nearest look.
# The ASOF join then asks whether the offer was seen on that look's day or later, and for how much.
_FATES = """
WITH versions AS (
    SELECT book, day, day = min(day) OVER (PARTITION BY book, date_trunc('month', day)) AS quoted
    FROM (SELECT DISTINCT source_id AS book, observed_on AS day FROM price_history)
), dense AS (
    SELECT h.offer_id, h.provider, {family} AS family, v.book, v.day, v.quoted, min(h.usd_per_hour) AS usd
    FROM history_offers AS h JOIN versions AS v
        ON v.book = h.source_id AND v.day BETWEEN h.observed_on AND h.seen_until AND v.day > $since
    WHERE NOT h.gone AND h.usd_per_hour > 0 GROUP BY ALL
), listed AS (
    SELECT o.offer_id, o.provider, {family} AS family, coalesce(s.publisher, o.source_id) AS book,
        o.observed_on AS day, median(o.usd_per_hour) AS usd, true AS quoted
    FROM offers AS o LEFT JOIN price_sources AS s USING (source_id)
    WHERE o.offer_kind = 'offer' AND o.usd_per_hour > 0 AND o.observed_on > $since AND o.observed_on <= $day
        AND o.source_id NOT IN (SELECT book FROM versions)
    GROUP BY ALL
), sights AS (
    SELECT * FROM (SELECT * FROM dense UNION ALL BY NAME SELECT * FROM listed) WHERE day <= $day
), looks AS (
    SELECT book, provider, family, day, count(DISTINCT offer_id) AS offers FROM sights GROUP BY ALL
), spans(low, high) AS (VALUES {spans}), followed AS (
    SELECT q.offer_id, q.provider, q.family, q.usd, s.low, s.high,
        arg_min(b.day, abs(b.day - q.day - (s.low + s.high) // 2)) AS then
    FROM sights AS q JOIN looks AS a USING (book, provider, family, day) CROSS JOIN spans AS s
    JOIN looks AS b ON b.book = q.book AND b.provider = q.provider AND b.family = q.family
        AND b.day - q.day BETWEEN s.low AND s.high AND 2 * b.offers >= a.offers
    WHERE q.quoted GROUP BY q.offer_id, q.provider, q.family, q.usd, q.day, q.book, s.low, s.high
), fates AS (
    SELECT f.*, s.usd / f.usd AS ratio
    FROM followed AS f ASOF LEFT JOIN (SELECT offer_id, day, median(usd) AS usd FROM sights GROUP BY ALL) AS s
        ON s.offer_id = f.offer_id AND s.day >= f.then
)
SELECT {kind} AS seller_kind, f.family AS option_family, low AS from_days, high AS to_days, f.provider, ratio
FROM fates AS f JOIN providers USING (provider) ORDER BY ALL"""


def quote_fates(catalog: Catalog) -> list[dict[str, Any]]:
    """Return, by kind of seller, family of options and span of days, what became of the quotes on record."""
    import numpy as np

    store = catalog.laid
    store.ensure("price_history", "offers", "providers", "price_sources")
    load_history(store)
    families = " ".join(f"WHEN '{option}' THEN '{quote_family(option)}'" for option in OPTIONS)
    query = _FATES.format(
        family=f"CASE option {families} END",
        kind="CASE WHEN providers.kind IN ('hyperscaler', 'marketplace') THEN providers.kind ELSE 'cloud' END",
        spans=", ".join(f"({low}, {high})" for low, high in SPANS_DAYS),
    )
    since = catalog.as_of.toordinal() - REACH_DAYS
    days = {"day": catalog.as_of, "since": type(catalog.as_of).fromordinal(since)}
    columns = store.execute(query, days).fetchnumpy()
    # grouped here, not in SQL: the quantiles weigh each pair by its seller, which DuckDB's do not
    groups: dict[tuple[str, str, int, int], list[int]] = {}
    keys = ("seller_kind", "option_family", "from_days", "to_days")
    for place, key in enumerate(zip(*(columns[name].tolist() for name in keys), strict=True)):
        groups.setdefault(key, []).append(place)
    providers = np.asarray(columns["provider"], object)
    ratios = np.ma.filled(np.ma.asarray(columns["ratio"], dtype=np.float64), np.nan)  # NaN: never seen again
    fates = []
    for key, places in sorted(groups.items()):
        _, seller, counts = np.unique(providers[places].astype(str), return_inverse=True, return_counts=True)
        weights = 1 / np.sqrt(counts[seller])
        later = ratios[places]
        sold = ~np.isnan(later)
        order = np.argsort(later[sold], kind="stable")
        ordered, passed = later[sold][order], np.cumsum(weights[sold][order])
        fate: dict[str, Any] = {"pairs": len(places), "sellers": len(counts)}
        fate["still_sold_fraction"] = float(weights[sold].sum() / weights.sum())
        for share in _SHARES:
            # the first ratio at which so much of the weight has passed
            quantile = float(ordered[np.searchsorted(passed, share * passed[-1])]) if sold.any() else None
            fate[f"p{share * 100:02.0f}_ratio"] = quantile
        fates.append({**dict(zip(keys, key, strict=True)), **fate})
    return fates


def monthly_prices(catalog: Catalog) -> list[dict[str, Any]]:
    """Return the price of each cell at the end of each month, with the lowest and highest seller and their number."""
    return [row for day in month_ends(FIRST_MONTH, catalog.as_of) for row in prices_of_day(catalog, day)]


def generation_declines(catalog: Catalog) -> list[dict[str, Any]]:
    """Return per generation of chips what is left of a list price after a year, the last row over all of them.

    A seller counts once for each chip, as long as it was watched; the ends hold 80 % of these.
    """
    names = {row["id"]: str(row["architecture"]).split()[0] for row in catalog.rows("accelerators")}
    groups: dict[str | None, list[tuple[str, str, Watched]]] = {}
    for gpu, sellers in list_moves(catalog, {}).items():
        for seller, moves in sellers.items():
            for group in (names[gpu], None):  # None is the row over all generations
                groups.setdefault(group, []).append((gpu, seller, mean_move(moves)))
    rows = []
    for generation in (*sorted(filter(None, groups)), None):
        watched = [of_seller for _, _, of_seller in groups[generation]]
        ratios = sorted(1 - of_seller.fall for of_seller in watched)
        low, high = (ratios[round(share * (len(ratios) - 1))] for share in (0.1, 0.9))
        typical = 1 - combined(watched).fall
        rows.append(
            {
                "generation": generation,
                "chips": len({gpu for gpu, _, _ in groups[generation]}),
                "sellers": len({seller for _, seller, _ in groups[generation]}),
                # the typical one is weighed by how long a seller was watched and may lie outside the plain quantiles
                "low_ratio": min(low, typical),
                "typical_ratio": typical,
                "high_ratio": max(high, typical),
            }
        )
    return rows


def measured_chips(catalog: Catalog) -> list[dict[str, Any]]:
    """Count the measurements of each chip, for what stands beside an answer."""
    table = []
    for kind in ("training", "serving"):
        by_chip: dict[str, list[Any]] = {}
        for row in catalog.rows(f"{kind}_measurements"):
            with suppress(UnknownNameError):  # a chip that the catalog does not hold
                by_chip.setdefault(catalog.accelerator(row["gpu"]).id, []).append(row)
        for chip, rows in sorted(by_chip.items()):
            # two FLOP for each active parameter and token: what a speed of serving asks of the chip at least
            rates = [
                2 * row["measured_output_tok_s_per_gpu"] * row["active_params_b"]
                for row in rows
                if kind == "serving" and row["measured_output_tok_s_per_gpu"] and row["active_params_b"]
            ]
            table.append(
                {
                    "kind": kind,
                    "accelerator_id": chip,
                    "measurements": len(rows),
                    "sources": len({row["source_id"] for row in rows}),
                    "largest_gpus": max(row["n_gpus"] or 1 for row in rows),
                    "highest_gflop_per_s_per_gpu": max(rates, default=None),
                }
            )
    return table


def training_records(catalog: Catalog) -> list[dict[str, Any]]:
    """List the highest speed measured on each chip in each precision, of dense models and of mixtures of experts."""
    from gpucost.calibration.training import gather
    from gpucost.workloads.training import make_workload, sizes

    rows = catalog.rows("training_measurements")
    source_of = {row["id"]: row["source_id"] for row in rows}
    measured = gather(rows, catalog)
    records: dict[tuple[str, str, bool], dict[str, Any]] = {}
    for figure in measured.figures:
        row = measured.rows[figure.row]
        if row.method != "full":  # adapters count other FLOP for a token
            continue
        key = (row.accelerator.id, row.layout.precision, bool(row.architecture.experts))
        workload = make_workload(row.architecture, sequence_tokens=int(row.sequence_tokens))
        tflops = round(sizes(workload).model_flop_per_token * figure.value / 1e12, 1)
        if tflops > records.get(key, {}).get("model_tflops_per_gpu", 0.0):
            records[key] = {
                **dict(zip(("accelerator_id", "precision", "experts"), key, strict=True)),
                "model_tflops_per_gpu": tflops,
                "model": row.architecture.name,
                "gpus": row.layout.gpus,
                "measurement_id": row.id,
                "source_id": source_of[row.id],
            }
    return [records[key] for key in sorted(records)]
