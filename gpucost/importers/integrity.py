"""What is held against a candidate before it is published: earlier prices, the market of a chip, and known faults.

A row that cannot be a price is left out. A row that is doubtful is held back, with what was known before in its place,
until `--accept`. A source of which too much is missing or faulty publishes nothing.
"""

from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

from msgspec import Struct, field

from gpucost.catalog.large import rules_of
from gpucost.catalog.loader import empty_reader, file_name, quoted
from gpucost.errors import CheckFailedError
from gpucost.importers.complete import REFERENCE, Known, load, offer_columns
from gpucost.importers.source import Desk, Source
from gpucost.options import OPTIONS
from gpucost.schemas import TABLES

MOVE_LIMIT = 0.30  # a list price that moves by more since the last observation is held back
MARKET_MOVE_RATIO = 3.0  # a price that follows a market, such as spot: by more than this ratio up or down
LEAST_COVERAGE = 0.70  # of the offers that the source listed before
MOST_FAULTY = 0.5
_FEW = 20  # below this many rows shares mean nothing
_EXAMPLES = 3

_FAMILY = "CASE option " + " ".join(f"WHEN '{name}' THEN '{rule.family}'" for name, rule in OPTIONS.items()) + " END"
_MARKET = "option IN (" + ", ".join(quoted(name) for name, rule in OPTIONS.items() if rule.interruptible) + ")"


class Verdict(Struct):
    """What came of a candidate: counts, and reasons with examples."""

    rows: int = 0
    new: int = 0
    changed: int = 0
    same: int = 0
    gone: int = 0
    held: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)

    @property
    def counts(self) -> dict[str, int]:
        """Return the numbers that a manifest keeps."""
        plain = {"new": self.new, "changed": self.changed, "same": self.same, "gone": self.gone}
        return {**plain, "held_back": sum(self.held.values()), "left_out": sum(self.left_out.values())}


def judge(desk: Desk, known: Known, source: Source, earlier: Path | None, accept: bool, today: date) -> Verdict:
    """Judge the table `candidate` and make the view `part` of what is to be published."""
    _prepare(desk, known, earlier)
    desk.connection.execute(_DOUBTS)
    desk.connection.execute("DROP TABLE candidate")
    if not accept:
        _refuse_poor(desk)
    held = "doubt IS NULL" if not accept else "true"
    desk.connection.execute(f"CREATE OR REPLACE VIEW taken AS SELECT * FROM doubted WHERE fault IS NULL AND {held}")
    for sql in _kept(source, today):
        desk.connection.execute(sql)
    return _verdict(desk, accept)


def _prepare(desk: Desk, known: Known, earlier: Path | None) -> None:
    """Make `known_offers` of what holds today and `earlier` of what the source said last."""
    load(desk, "known_offers", REFERENCE, known.reference)
    rows = f"SELECT *, false AS gone FROM ({empty_reader(TABLES['offers'])})"
    if earlier is not None:
        rows = f"SELECT * FROM read_parquet({file_name(earlier)})"
        spoilt = " OR ".join(rules_of(TABLES["offers"].columns).values())
        if desk.connection.execute(f"SELECT 1 FROM ({rows}) WHERE {spoilt} LIMIT 1").fetchone():
            rows += f" WHERE NOT ({spoilt})"  # no reader would take a part that keeps them
    desk.connection.execute(f"CREATE OR REPLACE VIEW earlier AS {rows}")


# A candidate's doubt, or NULL. `was` is the last price of the same offer: by this source, else by what holds today.
# `usual` is the median of what holds today for the chip and the family of options, `cheap` its first decile, where
# five offers or more hold.
_DOUBTS = f"""
CREATE OR REPLACE TABLE doubted AS
WITH was AS (
    SELECT offer_id, usd_per_hour AS was FROM earlier WHERE NOT gone
    UNION ALL
    SELECT offer_id, min(usd_per_hour) FROM known_offers AS k
    WHERE NOT EXISTS (SELECT 1 FROM earlier AS e WHERE e.offer_id = k.offer_id) GROUP BY offer_id
), usual AS (
    SELECT gpu, {_FAMILY} AS family, median(usd_per_gpu_hour) AS usual,
        quantile_cont(usd_per_gpu_hour, 0.1) AS cheap FROM known_offers
    GROUP BY gpu, family HAVING count(*) >= 5
), plain AS (
    SELECT provider, instance_type, region, gpus, min(usd_per_hour) AS on_demand FROM candidate
    WHERE fault IS NULL AND {_FAMILY} = 'on demand' AND term_months = 0 GROUP BY ALL
), sizes AS (
    SELECT provider, gpu, region, option, tier, term_months, payment, gpus, median(usd_per_gpu_hour) AS one
    FROM candidate WHERE fault IS NULL GROUP BY ALL
), joined AS (
    SELECT c.*, w.was, c.usd_per_gpu_hour / u.usual AS to_usual, c.usd_per_gpu_hour / u.cheap AS to_cheap,
        p.on_demand, s.one
    FROM candidate AS c LEFT JOIN was AS w USING (offer_id)
    LEFT JOIN usual AS u ON u.gpu = c.gpu AND u.family = {_FAMILY.replace("option", "c.option", 1)}
    LEFT JOIN plain AS p ON {_MARKET.replace("option", "c.option", 1)} AND p.provider = c.provider
        AND p.instance_type = c.instance_type AND p.gpus = c.gpus AND p.region IS NOT DISTINCT FROM c.region
    LEFT JOIN sizes AS s ON c.gpus > 1 AND s.gpus = 1 AND s.provider = c.provider AND s.gpu = c.gpu
        AND s.region IS NOT DISTINCT FROM c.region AND s.option = c.option AND s.tier IS NOT DISTINCT FROM c.tier
        AND s.term_months = c.term_months AND s.payment = c.payment
)
SELECT * EXCLUDE (was, to_usual, to_cheap, on_demand, one), was, CASE
    WHEN fault IS NOT NULL THEN NULL
    WHEN to_usual BETWEEN 1 / 3650.0 AND 1 / 146.0 THEN 'divided by the hours of a month once too often'
    WHEN to_usual BETWEEN 146 AND 3650 THEN 'the price of a month as one of an hour'
    WHEN gpus > 1 AND (abs(was / gpus / usd_per_hour - 1) < 0.03 OR abs(usd_per_gpu_hour * gpus / one - 1) < 0.03)
        THEN 'the price of one accelerator as one of the node'
    WHEN gpus > 1 AND (abs(usd_per_hour / gpus / was - 1) < 0.03 OR abs(usd_per_gpu_hour / gpus / one - 1) < 0.03)
        THEN 'the price of the node as one of each accelerator'
    WHEN usd_per_hour = on_demand THEN 'spot at the price of on demand'
    WHEN to_cheap < 0.3 AND {_FAMILY} <> 'preemptible' THEN 'a host without its accelerators'
    WHEN {_MARKET} AND greatest(usd_per_hour / was, was / usd_per_hour) > {MARKET_MOVE_RATIO}
        THEN 'moved by more than {MARKET_MOVE_RATIO:g} times'
    WHEN NOT {_MARKET} AND abs(usd_per_hour / was - 1) > {MOVE_LIMIT}
        THEN 'moved by more than {MOVE_LIMIT * 100:.0f} %'
    END AS doubt
FROM joined ORDER BY offer_id"""


def _refuse_poor(desk: Desk) -> None:
    """Refuse a source of which most rows are faulty or doubtful, or that lists far less than before."""
    count = "SELECT count(*), count(*) FILTER (fault IS NOT NULL AND fault NOT IN ('accelerator not known',"
    count += " 'windows meter', 'no price')), count(*) FILTER (fault IS NULL AND doubt IS NULL) FROM doubted"
    rows, faulty, good = desk.connection.execute(count).fetchone() or (0, 0, 0)
    told = "; ".join(f"{number:,} x {reason}" for reason, number in _reasons(desk, "coalesce(fault, doubt)"))
    if not good and _has(desk, "doubt IS NOT NULL"):
        raise CheckFailedError(f"everything that is a price is held back ({told}); --accept publishes it.")
    if not good:
        raise CheckFailedError(
            f"none of its {rows:,} rows is a price of a known accelerator ({told or 'it is empty'})."
        )
    if rows >= _FEW and faulty > MOST_FAULTY * rows:
        raise CheckFailedError(f"{faulty:,} of its {rows:,} rows are faulty ({told}); --accept publishes the rest.")
    before = "SELECT count(*) FROM earlier AS e WHERE NOT gone AND EXISTS (SELECT 1 FROM doubted AS c"
    before += " WHERE c.provider = e.provider AND c.region IS NOT DISTINCT FROM e.region)"
    earlier = (desk.connection.execute(before).fetchone() or (0,))[0]
    listed = (desk.connection.execute("SELECT count(*) FROM doubted WHERE fault IS NULL").fetchone() or (0,))[0]
    if earlier >= _FEW and listed < LEAST_COVERAGE * earlier:
        raise CheckFailedError(
            f"it lists {listed:,} offers where it listed {earlier:,} before; --accept publishes them nevertheless."
        )


def _has(desk: Desk, what: str) -> bool:
    return desk.connection.execute(f"SELECT 1 FROM doubted WHERE {what} LIMIT 1").fetchone() is not None


def _kept(source: Source, today: date) -> tuple[str, str]:
    """Return the SQL of the view `part`: what was taken, then what was held or not asked about again, or is gone."""
    names = [column.name for column in TABLES["offers"].columns]
    old = ", ".join(f"e.{name}" for name in names)
    gone_columns = ", ".join(
        f"DATE '{today}' AS {name}" if name in ("observed_on", "recorded_on") else f"e.{name}" for name in names
    )
    asked = """EXISTS (SELECT 1 FROM doubted AS c WHERE c.provider = e.provider AND c.option = e.option
        AND c.region IS NOT DISTINCT FROM e.region)"""
    back = "EXISTS (SELECT 1 FROM doubted AS c WHERE c.offer_id = e.offer_id)"
    taken = "EXISTS (SELECT 1 FROM taken AS c WHERE c.offer_id = e.offer_id)"
    withdrawn = _withdrawn(names, source, today) if source.own_list else ""
    stayed = f"""CREATE OR REPLACE TABLE stayed AS SELECT * FROM (
        SELECT {old}, e.gone FROM earlier AS e WHERE NOT {taken} AND (e.gone OR {back} OR NOT {asked})
        UNION ALL
        SELECT {gone_columns}, true AS gone FROM earlier AS e WHERE NOT e.gone AND {asked} AND NOT {back}
        {withdrawn}
    ) ORDER BY offer_id, gone, observed_on"""
    new = f"SELECT {offer_columns(source.id_on(today), today)}, false AS gone FROM taken"
    return stayed, f"CREATE OR REPLACE VIEW part AS {new} UNION ALL SELECT * FROM stayed"


def _withdrawn(names: Sequence[str], source: Source, today: date) -> str:
    """Return the SQL of offers that hold today and that the provider's own whole list has no more, or elsewhere."""
    given = {**dict.fromkeys(names, "NULL"), **{name: f"k.{name}" for name in REFERENCE}}
    given |= {
        "offer_kind": "'offer'", "gpu_assumed": "false", "billing": "'per_use'", "payment": "'unknown'",
        "region_scope": "CASE WHEN k.region IS NULL THEN 'any' ELSE 'region' END", "date_precision": "'day'",
        "observed_on": f"DATE '{today}'", "recorded_on": f"DATE '{today}'", "confidence": "'medium'",
        "source_id": quoted(source.id_on(today)),
    }  # fmt: skip
    columns = ", ".join(f"{value} AS {name}" for name, value in given.items())
    kinds = "c.provider = k.provider AND c.option = k.option AND c.term_months = k.term_months"
    return f"""UNION ALL
SELECT {columns}, true AS gone FROM known_offers AS k
WHERE NOT EXISTS (SELECT 1 FROM doubted AS c WHERE c.offer_id = k.offer_id)
    AND NOT EXISTS (SELECT 1 FROM earlier AS e WHERE e.offer_id = k.offer_id)
    AND (EXISTS (SELECT 1 FROM doubted AS c WHERE {kinds} AND c.region = k.region)
        OR (k.region IS NULL AND EXISTS (SELECT 1 FROM doubted AS c WHERE {kinds} AND c.gpu = k.gpu AND c.gpus = k.gpus
            AND c.tier IS NOT DISTINCT FROM k.tier)))"""


def _reasons(desk: Desk, column: str) -> Iterator[tuple[str, int]]:
    sql = f"SELECT {column} AS why, count(*) FROM doubted WHERE why IS NOT NULL GROUP BY why ORDER BY 2 DESC, 1"
    yield from desk.connection.execute(sql).fetchall()


def _verdict(desk: Desk, accept: bool) -> Verdict:
    count = """SELECT count(*) FILTER (was IS NULL), count(*) FILTER (abs(usd_per_hour / was - 1) >= 0.00005),
        count(*) FILTER (abs(usd_per_hour / was - 1) < 0.00005) FROM taken"""
    new, changed, same = desk.connection.execute(count).fetchone() or (0, 0, 0)
    was_gone = "EXISTS (SELECT 1 FROM earlier AS e WHERE e.gone AND e.offer_id = p.offer_id)"
    size = f"SELECT count(*) FILTER (NOT gone), count(*) FILTER (gone AND NOT {was_gone}) FROM part AS p"
    rows, gone = desk.connection.execute(size).fetchone() or (0, 0)
    held = {} if accept else dict(_reasons(desk, "doubt"))
    name = "coalesce(offer_id, concat_ws(' ', provider, instance_type, listed_as))"
    shown = examples(desk, "doubted", name, "usd_per_hour")
    return Verdict(rows, new, changed, same, gone, held, dict(_reasons(desk, "fault")), shown)


def examples(desk: Desk, table: str, name: str, price: str) -> dict[str, list[str]]:
    """Return some rows of each fault and doubt in a table by name, with their earlier price and the one listed."""
    found: dict[str, list[str]] = {}
    for column in ("fault", "doubt"):
        sql = f"""SELECT {column}, {name} AS name, was, {price} FROM {table} WHERE {column} IS NOT NULL
            QUALIFY row_number() OVER (PARTITION BY {column} ORDER BY name) <= {_EXAMPLES} ORDER BY name"""
        for why, one, was, now in desk.connection.execute(sql).fetchall():
            change = f" {was:g} to {now:g}" if was is not None and now is not None else ""
            found.setdefault(why, []).append(f"{one}{change}")
    return found
