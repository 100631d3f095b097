"""From prices of hosted models as a source lists them to rows of the table `hosted_tokens`, judged like prices."""

import re
from pathlib import Path

from gpucost.catalog.loader import empty_reader, file_name, quoted
from gpucost.catalog.names import model_stem, squeezed
from gpucost.errors import CheckFailedError
from gpucost.refresh import integrity
from gpucost.refresh.complete import UNDATED, load
from gpucost.refresh.integrity import CandidateVerdict
from gpucost.refresh.known import Known
from gpucost.refresh.source import Desk
from gpucost.schemas import TABLES

_MOST_USD_PER_MTOK = 1_000.0  # the dearest model asks for some hundreds
_FEW = 20
# of a listing: how fast it is served, not another model
_LISTING_TAILS = ("-turbo", "-versatile", "-instant", "-lite", "-fast", "-specdec")
# Bedrock writes us.meta.llama3-3-70b-instruct-v1:0
_REGION = re.compile(r"^((us|eu|apac|global)\.)?(meta|qwen|openai|mistral|deepseek|google|moonshotai|zai|minimax)\.")
_RELEASE = re.compile(r"-v\d+:\d+$")
# Fireworks writes the point of a version as a p
_POINT = re.compile(r"(\d)p(\d)")
_LLAMA = re.compile(r"llama(\d)-(\d)(?=-)")


def judge_tokens(
    desk: Desk,
    known: Known,
    earlier: Path | None,
    earlier_unknown: Path | None,
    accept: bool,
    source_id: str,
) -> CandidateVerdict:
    """Make the table `part` of the tokens that the source lists, with the same verdict as prices of capacity get."""
    today = desk.today
    listings = desk.connection.execute("SELECT DISTINCT listing FROM tokens WHERE listing IS NOT NULL").fetchall()
    models = [(listing, model_of(known, str(listing))) for (listing,) in listings]
    load(desk, "models", {"listing": "VARCHAR", "model_id": "VARCHAR"}, models)
    before = empty_reader(TABLES["hosted_tokens"])
    if earlier is not None:
        before = f"SELECT * FROM read_parquet({file_name(earlier)})"
    names = list(TABLES["hosted_tokens"].names)
    desk.connection.execute(f"CREATE OR REPLACE TABLE earlier AS {before}")
    desk.connection.execute(_JUDGED.replace("$copied", str(desk.copied).lower()))
    integrity.keep_unknown(desk, _UNKNOWN_ROWS, earlier_unknown)
    sure = "" if accept else "AND doubt IS NULL"
    cells = dict.fromkeys(names, "NULL") | {
        "provider": "provider",
        "listing": "listing",
        "model": "model",
        "model_id": "model_id",
        "input_usd_per_mtok": "input_usd_per_mtok",
        "output_usd_per_mtok": "output_usd_per_mtok",
        "cached_input_usd_per_mtok": "cached_input_usd_per_mtok",
        "suspect": "false",
        "observed_on": f"least(coalesce(observed_on, DATE '{today}'), DATE '{today}')",
        "date_precision": "'day'",
        "source_id": quoted(source_id),
        "confidence": "'medium'",
    }
    columns = ", ".join(f"{value} AS {name}" for name, value in cells.items())
    desk.connection.execute(f"""CREATE OR REPLACE VIEW waiting AS
        SELECT {columns}, concat_ws('/', provider, listing) AS row_id, doubt, was FROM judged
        WHERE fault IS NULL AND doubt IS NOT NULL AND NOT {accept} ORDER BY provider, listing""")
    # new rows; what is in doubt as it was before; what the source lists no more, whose price ended the day before
    plain = ", ".join(names)
    ended = {"observed_on": f"DATE '{today}'", "valid_until": f"DATE '{today}' - 1"}
    gone_columns = ", ".join(
        f"CASE WHEN valid_until < DATE '{today}' THEN {name} ELSE {ended.get(name, name)} END AS {name}"
        for name in names
    )
    desk.connection.execute(f"""CREATE OR REPLACE TABLE part AS SELECT * FROM (
        SELECT {columns} FROM judged WHERE fault IS NULL {sure}
        UNION ALL SELECT {plain} FROM earlier AS e WHERE EXISTS (SELECT 1 FROM judged AS j WHERE j.provider = e.provider
        AND j.listing = e.listing AND (j.fault IS NOT NULL OR ({not accept} AND j.doubt IS NOT NULL)))
        UNION ALL SELECT {gone_columns} FROM earlier AS e WHERE NOT EXISTS (
            SELECT 1 FROM judged AS j WHERE j.provider = e.provider AND j.listing = e.listing)
        ) ORDER BY provider, listing""")
    return _verdict(desk, accept)


def model_of(known: Known, listing: str) -> str | None:
    """Return the model that a listing names, apart from publisher and tails that change no dimension.

    A model of the same dimensions is not the same model: a guard, a distilled or a newer version has its own price.
    """
    text = _REGION.sub("", listing.strip().lower().rsplit("/", 1)[-1])
    text = _POINT.sub(r"\1.\2", _RELEASE.sub("", text))  # kimi-k2p6 is kimi-k2.6
    stem = model_stem(_LLAMA.sub(r"llama\1.\2", text))
    # the name as it stands first: a model may end in -lite itself
    for tail in ("", *_LISTING_TAILS):
        name = model_stem(stem.removesuffix(tail))
        if not stem.endswith(tail) or not (model_id := known.models.exact(name)):
            continue
        if squeezed(model_id).startswith(squeezed(name)):  # an alias may mean a model of another name
            return model_id
    return None


_UNKNOWN_ROWS = """SELECT provider, listing AS description, NULL AS region, NULL AS option, NULL AS usd_per_hour,
    fault AS reason FROM judged WHERE fault = 'model not known'"""
_JUDGED = f"""
CREATE OR REPLACE TABLE judged AS
WITH unique_rows AS (
    SELECT * FROM tokens
    QUALIFY row_number() OVER (PARTITION BY provider, listing ORDER BY output_usd_per_mtok DESC) = 1
), was AS (
    SELECT provider, listing, output_usd_per_mtok AS was, input_usd_per_mtok AS was_in FROM earlier
    WHERE valid_until IS NULL
)
SELECT t.*, m.model_id, w.was, w.was_in, CASE
    WHEN t.provider IS NULL OR t.listing IS NULL OR length(t.listing) > 200
        OR regexp_matches(concat(t.provider, t.listing), '[\\x00-\\x1f\\x7f]') THEN 'unreadable name'
    WHEN m.model_id IS NULL THEN 'model not known'
    WHEN $copied AND observed_on IS NULL THEN '{UNDATED}'
    WHEN input_usd_per_mtok IS NULL OR output_usd_per_mtok IS NULL THEN 'no price'
    WHEN NOT isfinite(input_usd_per_mtok) OR NOT isfinite(output_usd_per_mtok) THEN 'no finite price'
    WHEN input_usd_per_mtok <= 0 OR output_usd_per_mtok <= 0 THEN 'price of $0'
    WHEN greatest(input_usd_per_mtok, output_usd_per_mtok) > {_MOST_USD_PER_MTOK} THEN 'price beyond all bounds'
    END AS fault, CASE
    WHEN fault IS NOT NULL THEN NULL
    WHEN output_usd_per_mtok < input_usd_per_mtok * 0.999 THEN 'output cheaper than input'
    WHEN greatest(abs(output_usd_per_mtok / w.was - 1), abs(input_usd_per_mtok / w.was_in - 1)) > {integrity.MOVE_LIMIT}
        THEN 'moved by more than {integrity.MOVE_LIMIT * 100:.0f} %'
    END AS doubt
FROM unique_rows AS t LEFT JOIN models AS m USING (listing) LEFT JOIN was AS w USING (provider, listing)"""


def _verdict(desk: Desk, accept: bool) -> CandidateVerdict:
    reasons = "SELECT {0}, count(*) FROM judged WHERE {0} IS NOT NULL GROUP BY 1 ORDER BY 2 DESC"
    accepted = f"fault IS NULL AND ({accept} OR doubt IS NULL)"
    moved = "greatest(abs(output_usd_per_mtok / was - 1), abs(input_usd_per_mtok / was_in - 1))"
    # the same counts as of prices of capacity; a model moved as far as the larger move of its two prices
    rows, listed, new, same, changed = desk.connection.execute(f"""SELECT count(*), count(*) FILTER (fault IS NULL),
        count(*) FILTER ({accepted} AND was IS NULL), count(*) FILTER ({accepted} AND {moved} < 0.00005),
        count(*) FILTER ({accepted} AND {moved} >= 0.00005) FROM judged""").fetchone() or (0, 0, 0, 0, 0)
    earlier, current = (
        (desk.connection.execute(f"SELECT count(*) FROM {name} WHERE valid_until IS NULL").fetchone() or (0,))[0]
        for name in ("earlier", "part")
    )
    if not current:
        raise CheckFailedError(f"none of its {rows:,} rows has a price of a known model.")
    if earlier >= _FEW and listed < integrity.LEAST_COVERAGE * earlier and not accept:
        raise CheckFailedError(
            f"it lists {listed:,} models where it listed {earlier:,} before; --accept publishes them."
        )
    held_back = {} if accept else dict(desk.connection.execute(reasons.format("doubt")).fetchall())
    left_out = dict(desk.connection.execute(reasons.format("fault")).fetchall())
    ended = """SELECT count(*) FROM earlier AS e WHERE valid_until IS NULL AND NOT EXISTS (
        SELECT 1 FROM judged AS j WHERE j.provider = e.provider AND j.listing = e.listing)"""
    gone = (desk.connection.execute(ended).fetchone() or (0,))[0]
    shown = integrity.examples(desk, "judged", "concat_ws(' ', provider, listing)", "output_usd_per_mtok")
    verdict = CandidateVerdict(current, new, changed, same, gone, held_back, left_out, shown)
    integrity.count_unknown(desk, verdict)
    return verdict
