"""What is held against a candidate before it is published: earlier prices, the market of a chip, and known faults.

A row that cannot be a price is left out. A row that is doubtful is held back, with what was known before in its place,
until `--accept`. A source of which too much is missing or faulty publishes nothing.
"""

from collections.abc import Iterator
from datetime import date
from pathlib import Path

from msgspec import Struct, field

from gpucost.catalog.loader import empty_reader, file_name, quoted
from gpucost.catalog.price_rows import refused_cells
from gpucost.errors import CheckFailedError
from gpucost.options import OPTIONS
from gpucost.refresh.complete import load, offer_columns
from gpucost.refresh.known import REFERENCE, Known
from gpucost.refresh.source import NOT_READ, Desk, Source
from gpucost.schemas import TABLES
from gpucost.store.folder import Part

MOVE_LIMIT = 0.40  # a price that moves by more since the last observation is held back
_NEW_LIMIT = 0.40  # a new offer that lies by more outside of what its seller, else anybody, asks for the chip
_LEAST_OF_ON_DEMAND = 0.10  # a first spot price between this share of the on-demand price and the whole raises no doubt
LEAST_COVERAGE = 0.70  # of the offers that the source listed before
_MOST_FAULTY = 0.5  # of its rows: a source of which more are faulty has changed its format
OLDER = "seen earlier than what is known of it"
UNKNOWN_KIND = "unknown"  # of a part: what its source named and nobody could read
WAITING = "waiting-"  # before the kind of a part: its doubtful rows, each with its doubt, until somebody takes them
_FEW = 20  # below this many rows shares mean nothing
_EXAMPLES = 3

# prices are compared within a family of options: on demand with on demand, spot with spot
_FAMILY = "CASE option " + " ".join(f"WHEN '{name}' THEN '{rule.family}'" for name, rule in OPTIONS.items()) + " END"
_SPOT = "option IN (" + ", ".join(quoted(name) for name, rule in OPTIONS.items() if rule.interruptible) + ")"


class CandidateVerdict(Struct):
    """What came of a candidate: counts, and reasons with examples."""

    rows: int = 0
    new: int = 0
    changed: int = 0
    same: int = 0
    gone: int = 0
    held: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)
    unknown: dict[str, int] = field(default_factory=dict)  # descriptions kept apart, by reason
    kept: int = 0  # offers that are listed no more, and not called gone, for what is unknown may be them

    @property
    def counts(self) -> dict[str, int]:
        """Return the numbers that a manifest keeps."""
        plain = {"new": self.new, "changed": self.changed, "same": self.same, "gone": self.gone}
        more = {"held_back": sum(self.held.values()), "left_out": sum(self.left_out.values())}
        return {**plain, **more, "unknown": sum(self.unknown.values())}


class SourceOutcome(Struct):
    """What came of one source: published, unchanged, or why not."""

    source: str
    state: str  # published | failed | skipped
    reason: str = ""
    verdict: CandidateVerdict = field(default_factory=CandidateVerdict)
    parts: tuple[Part, ...] = ()
    fetched_bytes: int = 0
    failures: tuple[str, ...] = ()  # of parts of the source; the others came


def judge(
    desk: Desk, known: Known, source: Source, earlier: Path | None, earlier_unknown: Path | None, accept: bool
) -> CandidateVerdict:
    """Judge the table `candidate` and make the view `part` of what is to be published."""
    today = desk.today
    # what holds today, and what the source said last
    load(desk, "known_offers", REFERENCE, known.reference)
    load(desk, "known_regions", {"provider": "VARCHAR", "region": "VARCHAR"}, sorted(known.regions))
    rows = f"SELECT *, false AS gone FROM ({empty_reader(TABLES['offers'])})"
    if earlier is not None:
        rows = f"SELECT * FROM read_parquet({file_name(earlier)})"
        spoilt = " OR ".join(refused_cells(TABLES["offers"].columns).values())
        if desk.connection.execute(f"SELECT 1 FROM ({rows}) WHERE {spoilt} LIMIT 1").fetchone():
            rows += f" WHERE NOT ({spoilt})"  # no reader would take a part that keeps them
    desk.connection.execute(f"CREATE OR REPLACE VIEW earlier AS {rows}")

    keep_unknown(desk, _UNKNOWN_ROWS, earlier_unknown)
    desk.connection.execute(_DOUBTS.replace("$own_word", str(source.is_own_word).lower()))
    desk.connection.execute("DROP TABLE candidate")
    if not accept:
        # a source of which most rows are faulty or doubtful, or that lists far less than before, publishes nothing
        count = "SELECT count(*), count(*) FILTER (fault IS NOT NULL AND fault NOT IN ('accelerator not known',"
        count += f" 'windows meter', 'no price', '{OLDER}')), count(*) FILTER ({_LISTED} AND doubt IS NULL),"
        count += " count(*) FILTER (doubt IS NOT NULL) FROM doubted"
        row_count, faulty, good, doubtful = desk.connection.execute(count).fetchone() or (0, 0, 0, 0)
        reasons = "; ".join(f"{number:,} x {reason}" for reason, number in _reasons(desk, "coalesce(fault, doubt)"))
        if not good and not doubtful:
            raise CheckFailedError(
                f"none of its {row_count:,} rows can be taken as a price ({reasons or 'it is empty'})."
            )
        if row_count >= _FEW and faulty > _MOST_FAULTY * row_count:
            raise CheckFailedError(
                f"{faulty:,} of its {row_count:,} rows are faulty ({reasons}); --accept publishes the rest."
            )
        # Nor one that names far less than holds today of what it was asked: of a provider, and of a kind at one. Today
        # holds what the source listed before, and of a provider's own list whatever it would withdraw.
        withdrawable = "UNION SELECT offer_id, provider, option, region FROM known_offers" if source.own_list else ""
        sql = f"""
            WITH present AS (SELECT offer_id, provider, option, region FROM earlier WHERE NOT gone {withdrawable}),
            places AS (SELECT DISTINCT provider, option, region FROM doubted),
            today AS (SELECT provider, option, count(DISTINCT offer_id) AS offers FROM present AS p WHERE EXISTS (SELECT
                1 FROM places AS a WHERE a.provider = p.provider AND a.option = p.option
                AND a.region IS NOT DISTINCT FROM p.region) GROUP BY GROUPING SETS ((provider, option), (provider))),
            now AS (SELECT provider, option, count(DISTINCT offer_id) AS listed FROM doubted WHERE {_LISTED}
                GROUP BY GROUPING SETS ((provider, option), (provider)))
            SELECT t.provider, t.option, coalesce(listed, 0), offers FROM today AS t LEFT JOIN now
                ON now.provider = t.provider AND now.option IS NOT DISTINCT FROM t.option
            WHERE offers >= {_FEW} AND coalesce(listed, 0) < {LEAST_COVERAGE} * offers
            ORDER BY offers DESC, t.option LIMIT 1"""
        if short := desk.connection.execute(sql).fetchone():
            provider, option, listed, offers_today = short
            kind = f" ({option})" if option else ""
            raise CheckFailedError(
                f"it lists {listed:,} offers of {provider}{kind}, where {offers_today:,} hold today;"
                " --accept publishes them anyway."
            )

    sure = "doubt IS NULL" if not accept else "true"
    desk.connection.execute(f"CREATE OR REPLACE VIEW accepted AS SELECT * FROM doubted WHERE fault IS NULL AND {sure}")
    desk.connection.execute(_stayed(source, today))
    desk.connection.execute(f"""CREATE OR REPLACE VIEW part AS
        SELECT {offer_columns(source.id_on(today), today)}, false AS gone FROM accepted
        UNION ALL SELECT * FROM stayed""")
    desk.connection.execute(f"""CREATE OR REPLACE VIEW waiting AS
        SELECT {offer_columns(source.id_on(today), today)}, offer_id AS row_id, doubt, was FROM doubted
        WHERE fault IS NULL AND doubt IS NOT NULL AND NOT {accept} ORDER BY offer_id""")

    # what is to be told of it
    count = """SELECT count(*) FILTER (was IS NULL), count(*) FILTER (abs(usd_per_hour / was - 1) >= 0.00005),
        count(*) FILTER (abs(usd_per_hour / was - 1) < 0.00005) FROM accepted"""
    new, changed, same = desk.connection.execute(count).fetchone() or (0, 0, 0)
    # an offer is counted as gone once, by the refresh that missed it
    was_gone = "EXISTS (SELECT 1 FROM earlier AS e WHERE e.gone AND e.offer_id = p.offer_id)"
    size = f"SELECT count(*) FILTER (NOT gone), count(*) FILTER (gone AND NOT {was_gone}) FROM part AS p"
    row_count, gone = desk.connection.execute(size).fetchone() or (0, 0)
    held_back = {} if accept else dict(_reasons(desk, "doubt"))
    name = "coalesce(offer_id, concat_ws(' ', provider, instance_type, listed_as))"
    shown = examples(desk, "doubted", name, "usd_per_hour")
    # offers of places that were listed, that are in the part and were not listed: something unknown may be them
    back = "EXISTS (SELECT 1 FROM doubted AS c WHERE c.offer_id = p.offer_id)"
    sql = f"""SELECT count(*) FROM part AS p WHERE NOT gone AND NOT {back} AND EXISTS
        (SELECT 1 FROM doubted AS c WHERE c.provider = p.provider AND c.option = p.option
        AND c.region IS NOT DISTINCT FROM p.region)"""
    kept = (desk.connection.execute(sql).fetchone() or (0,))[0]
    faults = dict(_reasons(desk, "fault"))
    verdict = CandidateVerdict(row_count, new, changed, same, gone, held_back, faults, shown, kept=kept)
    count_unknown(desk, verdict)
    return verdict


_UNKNOWN_ROWS = """SELECT provider, description, region, option, usd_per_hour, coalesce(reason, 'not said') AS reason
    FROM unknown WHERE description IS NOT NULL
    UNION ALL SELECT provider, concat_ws(': ', instance_type, listed_as), region, option, usd_per_hour, fault
    FROM candidate WHERE fault = 'accelerator not known' AND instance_type IS NOT NULL"""


def keep_unknown(desk: Desk, rows: str, earlier: Path | None) -> None:
    """Make the table `apart` of what nobody could read: since when, and when the source was last read without it."""
    key = ("provider", "description", "region", "option")
    names = (*key, "first_seen_on", "absent_on")
    if earlier is not None:
        before = f"SELECT {', '.join(names)} FROM read_parquet({file_name(earlier)})"
    else:
        before = f"SELECT {', '.join(f'NULL AS {name}' for name in names)} WHERE false"
    same = " AND ".join(f"n.{name} IS NOT DISTINCT FROM e.{name}" for name in key)
    day = f"DATE '{desk.today}'"
    desk.connection.execute(f"""CREATE OR REPLACE TABLE apart AS
        WITH now AS (SELECT provider, description, region, option, min(usd_per_hour) AS usd_per_hour, min(reason) AS
            reason, count(*) AS rows FROM ({rows}) GROUP BY ALL)
        SELECT n.*, coalesce(CAST(e.first_seen_on AS DATE), {day}) AS first_seen_on, {day} AS observed_on,
            coalesce(CAST(e.absent_on AS DATE), (SELECT max(observed_on) FROM earlier), {day} - 1) AS absent_on
        FROM now AS n LEFT JOIN ({before}) AS e ON {same} ORDER BY ALL""")


# A candidate's doubt, or NULL. `was` is the last price of the same offer: by this source, else by what holds today.
# `low` and `high` bound what holds today for the chip and the family of options: of its seller, else the middle 80 %.
# `usual` is their median, `cheap` their first decile, where five offers or more hold.
# Beside others' prices, a loosely named accelerator is any of those that its name may mean.
_KIN = f"{_FAMILY} AS family, min(usd_per_gpu_hour) AS low, max(usd_per_gpu_hour) AS high"
_DOUBTS = f"""
CREATE OR REPLACE TABLE doubted AS
WITH seen AS (
    SELECT offer_id, max(observed_on) AS seen_on FROM known_offers GROUP BY offer_id
), was AS (
    SELECT offer_id, usd_per_hour AS was FROM earlier WHERE NOT gone
    UNION ALL
    SELECT offer_id, min(usd_per_hour) FROM known_offers AS k
    WHERE NOT EXISTS (SELECT 1 FROM earlier AS e WHERE e.offer_id = k.offer_id) GROUP BY offer_id
), usual AS (
    SELECT gpu, {_FAMILY} AS family, median(usd_per_gpu_hour) AS usual,
        quantile_cont(usd_per_gpu_hour, 0.1) AS cheap FROM known_offers
    GROUP BY gpu, family HAVING count(*) >= 5
), present AS (
    SELECT provider, instance_type, gpu, option, usd_per_gpu_hour FROM known_offers
    UNION ALL SELECT provider, instance_type, gpu, option, usd_per_gpu_hour FROM earlier WHERE NOT gone
), sold AS (
    SELECT DISTINCT provider, lower(instance_type) AS product, {_FAMILY} AS family FROM present
), sellers AS (
    SELECT provider, gpu, {_KIN} FROM present GROUP BY provider, gpu, family
), chips_of_names AS (
    SELECT DISTINCT gpu, unnest(list_distinct(list_append(string_split(gpu, '|'), gpu))) AS chip FROM candidate
), alike AS (
    SELECT n.gpu, h.option, h.usd_per_gpu_hour FROM chips_of_names AS n JOIN present AS h ON h.gpu = n.chip
), anybody AS (
    SELECT gpu, {_FAMILY} AS family, quantile_cont(usd_per_gpu_hour, 0.1) AS low,
        quantile_cont(usd_per_gpu_hour, 0.9) AS high FROM alike GROUP BY gpu, family
), all_kinds AS (
    SELECT gpu, min(usd_per_gpu_hour) AS low, max(usd_per_gpu_hour) AS high FROM alike GROUP BY gpu
), plain AS (
    SELECT provider, instance_type, region, gpus, {_FAMILY} AS family, min(usd_per_hour) AS usd FROM (
        SELECT provider, instance_type, region, gpus, option, tier, usd_per_hour FROM candidate
            WHERE fault IS NULL AND term_months = 0
        UNION ALL SELECT provider, instance_type, region, gpus, option, tier, usd_per_hour FROM known_offers AS k
            WHERE term_months = 0 AND NOT EXISTS (SELECT 1 FROM candidate AS c WHERE c.offer_id = k.offer_id)
    ) WHERE tier IS NULL OR tier NOT IN ('marketplace', 'community', 'low_priority') GROUP BY ALL
), sizes AS (
    SELECT provider, gpu, region, option, tier, term_months, payment, gpus, median(usd_per_gpu_hour) AS one
    FROM candidate WHERE fault IS NULL GROUP BY ALL
), joined AS (
    SELECT c.* REPLACE (CASE WHEN c.fault IS NULL AND c.observed_on < e.seen_on THEN '{OLDER}' ELSE c.fault END AS
        fault), w.was, c.usd_per_gpu_hour / u.usual AS to_usual, c.usd_per_gpu_hour / u.cheap AS to_cheap,
        p.usd AS on_demand, q.usd AS spot, s.one, coalesce(l.low, b.low) AS low, coalesce(l.high, b.high) AS high,
        k.low AS lowest, k.high AS highest, l.low IS NULL AS first_of_seller,
        EXISTS (SELECT 1 FROM products AS r WHERE r.provider = c.provider) AND NOT EXISTS (SELECT 1 FROM sold AS o
            WHERE o.provider = c.provider AND o.product = lower(c.instance_type)
            AND o.family = {_FAMILY.replace("option", "c.option", 1)}) AS first_of_product,
        EXISTS (SELECT 1 FROM known_regions AS r WHERE r.provider = c.provider) AND c.region IS NOT NULL AND NOT EXISTS
            (SELECT 1 FROM known_regions AS r WHERE r.provider = c.provider AND r.region = c.region) AS nowhere
    FROM candidate AS c LEFT JOIN was AS w USING (offer_id) LEFT JOIN seen AS e USING (offer_id)
    LEFT JOIN usual AS u ON u.gpu = c.gpu AND u.family = {_FAMILY.replace("option", "c.option", 1)}
    LEFT JOIN sellers AS l ON l.provider = c.provider AND l.gpu = c.gpu
        AND l.family = {_FAMILY.replace("option", "c.option", 1)}
    LEFT JOIN anybody AS b ON b.gpu = c.gpu AND b.family = {_FAMILY.replace("option", "c.option", 1)}
    LEFT JOIN all_kinds AS k ON k.gpu = c.gpu
    LEFT JOIN plain AS p ON p.family = 'on demand' AND p.provider = c.provider
        AND p.instance_type = c.instance_type AND p.gpus = c.gpus AND p.region IS NOT DISTINCT FROM c.region
    LEFT JOIN plain AS q ON q.family = 'preemptible' AND q.provider = c.provider
        AND q.instance_type = c.instance_type AND q.gpus = c.gpus AND q.region IS NOT DISTINCT FROM c.region
    LEFT JOIN sizes AS s ON c.gpus > 1 AND s.gpus = 1 AND s.provider = c.provider AND s.gpu = c.gpu
        AND s.region IS NOT DISTINCT FROM c.region AND s.option = c.option AND s.tier IS NOT DISTINCT FROM c.tier
        AND s.term_months = c.term_months AND s.payment = c.payment
)
SELECT * EXCLUDE (was, to_usual, to_cheap, on_demand, spot, one, low, high, lowest, highest, nowhere,
    first_of_seller, first_of_product), was, CASE
    WHEN fault IS NOT NULL THEN NULL
    WHEN question IS NOT NULL THEN question
    WHEN to_usual BETWEEN 1 / 5840.0 AND 1 / 91.0 THEN 'divided by the hours of a month once too often'
    WHEN to_usual BETWEEN 91 AND 5840 THEN 'the price of a month as one of an hour'
    WHEN gpus > 1 AND (abs(was / gpus / usd_per_hour - 1) < 0.03 OR abs(usd_per_gpu_hour * gpus / one - 1) < 0.03)
        THEN 'the price of one accelerator as one of the node'
    WHEN gpus > 1 AND (abs(usd_per_hour / gpus / was - 1) < 0.03 OR abs(usd_per_gpu_hour / gpus / one - 1) < 0.03)
        THEN 'the price of the node as one of each accelerator'
    WHEN {_SPOT} AND usd_per_hour = on_demand THEN 'spot at the price of on demand'
    WHEN {_SPOT} AND usd_per_hour > on_demand THEN 'spot above on demand'
    WHEN option = 'on_demand' AND usd_per_hour < spot AND coalesce(tier, '') <> 'marketplace'
        THEN 'on demand below spot'
    WHEN {_FAMILY} = 'committed' AND usd_per_hour > on_demand THEN 'a commitment above on demand'
    WHEN to_cheap < 0.3 AND {_FAMILY} <> 'preemptible' THEN 'a host without its accelerators'
    WHEN abs(usd_per_hour / was - 1) > {MOVE_LIMIT} THEN 'moved by more than {MOVE_LIMIT * 100:.0f} %'
    WHEN nowhere AND was IS NULL THEN 'a region that is not known'
    WHEN was IS NULL AND {_SPOT} AND usd_per_hour BETWEEN {_LEAST_OF_ON_DEMAND} * on_demand AND on_demand THEN NULL
    WHEN was IS NULL AND usd_per_gpu_hour NOT BETWEEN low * {1 - _NEW_LIMIT} AND high / {1 - _NEW_LIMIT}
        THEN 'new, and far from what the chip costs in its kind'
    WHEN was IS NULL AND low IS NULL AND usd_per_gpu_hour NOT BETWEEN lowest * 0.2 AND highest * {1 + _NEW_LIMIT}
        THEN 'new, and far from what the chip costs'
    WHEN was IS NULL AND lowest IS NULL THEN 'the first price of its chip: nothing to hold it against'
    WHEN was IS NULL AND first_of_product AND NOT $own_word THEN 'the first of its product and kind at its seller'
    WHEN was IS NULL AND first_of_seller AND NOT $own_word THEN 'the first of its chip and kind at its seller'
    END AS doubt
FROM joined ORDER BY offer_id"""


_LISTED = f"(fault IS NULL OR fault = '{OLDER}')"  # a price, whoever saw it last


def _stayed(source: Source, today: date) -> str:
    """Return the SQL of the table `stayed`: what was held back or not asked about again, then what is gone."""
    names = [column.name for column in TABLES["offers"].columns]
    old = ", ".join(f"e.{name}" for name in names)
    day = f"coalesce(observed_on, DATE '{today}')"
    last = f"(SELECT max({day}) FROM doubted AS c WHERE c.provider = e.provider)"
    # a withdrawal is seen on the day of the list that lacks it, and never before the price itself
    ended = {"observed_on": f"greatest({last}, e.observed_on)"}
    ended["recorded_on"] = f"DATE '{today}'"
    gone_columns = ", ".join(f"{ended[name]} AS {name}" if name in ended else f"e.{name}" for name in names)
    # an offer is gone where its source listed others of its provider, option and region, and nothing that it may be
    looked_at = """EXISTS (SELECT 1 FROM doubted AS c WHERE c.provider = e.provider AND c.option = e.option
        AND c.region IS NOT DISTINCT FROM e.region)"""
    looked_at = f"({looked_at} AND NOT {_may_be_unknown(source, 'e')})"
    back = "EXISTS (SELECT 1 FROM doubted AS c WHERE c.offer_id = e.offer_id)"
    accepted = "EXISTS (SELECT 1 FROM accepted AS c WHERE c.offer_id = e.offer_id)"
    withdrawn = ""
    if source.own_list:
        # offers that hold today, whoever saw them, and that the provider's own whole list has no more, or elsewhere
        cells = {**dict.fromkeys(names, "NULL"), **{name: f"k.{name}" for name in REFERENCE}}
        cells |= {
            "offer_kind": "'offer'",
            "gpu_assumed": "false",
            "billing": "'per_use'",
            "payment": "'unknown'",
            "region_scope": "CASE WHEN k.region IS NULL THEN 'any' ELSE 'region' END",
            "date_precision": "'day'",
            "observed_on": f"DATE '{today}'",
            "recorded_on": f"DATE '{today}'",
            "confidence": "'medium'",
            "source_id": quoted(source.id_on(today)),
        }
        columns = ", ".join(f"{value} AS {name}" for name, value in cells.items())
        kinds = "c.provider = k.provider AND c.option = k.option AND c.term_months = k.term_months"
        withdrawn = f"""UNION ALL
        SELECT {columns}, true AS gone FROM known_offers AS k
        WHERE NOT EXISTS (SELECT 1 FROM doubted AS c WHERE c.offer_id = k.offer_id)
            AND NOT EXISTS (SELECT 1 FROM earlier AS e WHERE e.offer_id = k.offer_id)
            AND NOT {_may_be_unknown(source, "k")}
            AND (EXISTS (SELECT 1 FROM doubted AS c WHERE {kinds} AND c.region = k.region)
                OR (k.region IS NULL AND EXISTS (SELECT 1 FROM doubted AS c WHERE {kinds} AND c.gpu = k.gpu
                    AND c.gpus = k.gpus AND c.tier IS NOT DISTINCT FROM k.tier)))"""
    return f"""CREATE OR REPLACE TABLE stayed AS SELECT * FROM (
        SELECT {old}, e.gone FROM earlier AS e WHERE NOT {accepted} AND (e.gone OR {back} OR NOT {looked_at})
        UNION ALL
        SELECT {gone_columns}, true AS gone FROM earlier AS e WHERE NOT e.gone AND {looked_at} AND NOT {back}
        {withdrawn}
    ) ORDER BY offer_id, gone, observed_on"""


def _may_be_unknown(source: Source, offer: str) -> str:
    """Return the SQL that is true of an offer that something unknown may be.

    Where products have names of their own it is the same product with a chip that cannot be read. Where a source
    describes parts or chips in words, it is any description that was not there when the offer was last listed.
    """
    same = f"""EXISTS (SELECT 1 FROM doubted AS u WHERE u.fault IS NOT NULL AND u.provider = {offer}.provider
        AND lower(u.instance_type) = lower({offer}.instance_type) AND u.region IS NOT DISTINCT FROM {offer}.region)"""
    if not source.describes:
        return f"({same})"
    return f"""({same} OR EXISTS (SELECT 1 FROM apart AS u WHERE u.provider = {offer}.provider
        AND (u.region IS NULL OR {offer}.region IS NULL OR u.region = {offer}.region)
        AND (u.option IS NULL OR u.option = {offer}.option) AND {offer}.observed_on <= u.absent_on
        AND u.reason IN ('{NOT_READ}', 'accelerator not known', 'no price that can be read', 'not in US dollars',
            'unit not known', 'how it is paid for is not known')))"""


def _reasons(desk: Desk, column: str) -> Iterator[tuple[str, int]]:
    sql = f"SELECT {column} AS why, count(*) FROM doubted WHERE why IS NOT NULL GROUP BY why ORDER BY 2 DESC, 1"
    yield from desk.connection.execute(sql).fetchall()


def count_unknown(desk: Desk, verdict: CandidateVerdict) -> None:
    """Take what is kept apart into a verdict: how many descriptions by reason, and some of them."""
    counted = desk.connection.execute(
        "SELECT reason, count(DISTINCT description), min(description) FROM apart GROUP BY reason ORDER BY 2 DESC, 1"
    ).fetchall()
    verdict.unknown = {reason: count for reason, count, _ in counted}
    for reason, _, _ in counted:
        sql = "SELECT DISTINCT description FROM apart WHERE reason = ? ORDER BY ALL LIMIT ?"
        rows = desk.connection.execute(sql, [reason, _EXAMPLES]).fetchall()
        verdict.examples[reason] = [row[0] for row in rows]


def examples(desk: Desk, table: str, name: str, price: str) -> dict[str, list[str]]:
    """Return some rows of each fault and doubt in a table by name, with their earlier price and the one listed."""
    rows_by_reason: dict[str, list[str]] = {}
    for column in ("fault", "doubt"):
        sql = f"""SELECT {column}, {name} AS name, was, {price} FROM {table} WHERE {column} IS NOT NULL
            QUALIFY row_number() OVER (PARTITION BY {column} ORDER BY name) <= {_EXAMPLES} ORDER BY name"""
        for reason, row, was, now in desk.connection.execute(sql).fetchall():
            change = f" {was:g} to {now:g}" if was is not None and now is not None else ""
            rows_by_reason.setdefault(reason, []).append(f"{row}{change}")
    return rows_by_reason
