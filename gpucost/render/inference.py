"""The document of a serving answer: cost per million tokens by offer, latency, and self-host against API."""

from collections.abc import Sequence

from gpucost.answers.serving import Inference, ServingOption
from gpucost.options import OPTIONS
from gpucost.render.document import (
    Axis,
    Block,
    Chart,
    Document,
    Fact,
    Paragraph,
    Row,
    Section,
    Table,
    columns_of,
    document_of,
    format_value,
    present_figures,
    table_of,
)
from gpucost.render.offers import (
    bill_table,
    excluded_table,
    not_included,
    offer_bars,
    offers_picture,
    offers_table,
    option_text,
    range_text,
    serving_causes,
)

_SCREEN_LASTING, _SCREEN_BOUND, _SCREEN_INTERRUPTIBLE, _SCREEN_HOSTED = 3, 1, 2, 2  # rows of one screen
_HEADINGS = {
    "cost": "Offers without interruptions, cheapest tokens first",
    "latency": "Offers without interruptions, fastest tokens first",
    "carbon": "Offers without interruptions, least carbon first",
}
_BOUND = "Offers with a commitment, paid whether used or not; ranks count all offers"
_RISKY = "Interruptible offers, in the same order: requests in flight are lost, keep redundancy"
# family of purchase options -> the kind that one screen names
_SIDES = {"self_host_usd": "self host", "api_usd": "api"}


def document(answer: Inference) -> Document:
    """Build the document of a serving answer."""
    options = answer["options"]
    lines, month_usd = options[0]["lines"], options[0]["usd_per_month"]
    bill = [bill_table(lines, month_usd, "Per month")] if lines else []
    return document_of(
        answer,
        f"Serving {answer['request']['model']}",
        Section("Every offer: cost of tokens against speed", _picture(answer), detail=True, paper=True),
        Section("", _figures(answer), detail=True, paper=True),
        Section("", [Paragraph(line) for line in answer["said"]], paper=True),
        *_offers(answer),
        Section("Self-host or API", _api(answer)),
        Section("Bill of the top offer", bill),
        Section("Speed against cost", _tradeoff(answer)),
        Section("Pictures", _charts(options), detail=True),
        Section("Offers left out, and why", excluded_table(answer["excluded"]), detail=True),
        screen=_screen(answer),
    )


def _offers(answer: Inference) -> list[Section]:
    """Return the offers in three tables: free to leave, bound for a term, and those that may be interrupted."""
    stay = [row for row in answer["options"] if not OPTIONS[row["option"]].interruptible]
    risky = [row for row in answer["options"] if OPTIONS[row["option"]].interruptible]
    excluded, headings = answer["excluded"], columns_of("inference")
    heading = _HEADINGS[answer["request"].get("optimize") or "cost"]
    bound = [row for row in stay if OPTIONS[row["option"]].family == "committed"]
    free = [row for row in stay if row not in bound]
    parts = [(heading, free), (heading if not free else _BOUND, bound), (_RISKY, risky)]
    filled = [(title, rows) for title, rows in parts if rows]
    return [
        Section(title, offers_table(headings, rows, [] if number else excluded), paper=not number)
        for number, (title, rows) in enumerate(filled)
    ]


def _screen(answer: Inference) -> list[Block]:
    """Return what one screen shows: the best offers of both kinds, the cheapest hosted prices, what to ask next."""
    sure = [row for row in answer["options"] if not row.get("missing")] or answer["options"]
    stay = [row for row in sure if not OPTIONS[row["option"]].interruptible]
    risky = [row for row in sure if OPTIONS[row["option"]].interruptible]
    bound = [row for row in stay if OPTIONS[row["option"]].family == "committed"]
    free = [row for row in stay if row not in bound]
    lasting = [*_unlike(free)[:_SCREEN_LASTING], *_unlike(bound)[:_SCREEN_BOUND]] if free else _unlike(bound)
    rows = [
        _kind(row) for row in (*lasting[: _SCREEN_LASTING + _SCREEN_BOUND], *_unlike(risky)[:_SCREEN_INTERRUPTIBLE])
    ]
    hosted = sorted(answer["api"], key=lambda row: (not row["same_model"], row["usd_per_mtok"]))[:_SCREEN_HOSTED]
    rows += [
        {
            "kind": "hosted",
            "provider": row["provider"],
            "option": "API",
            "cluster": row["model"],
            "usd_per_mtok": row["usd_per_mtok"],
            "range": "",
            "tpot_ms": None,
            "age": f"{row['age_days']} d",
        }
        for row in hosted
    ]
    why_out = f"; {len(answer['excluded']):,} left out, with reasons" if answer["excluded"] else ""
    ask = "--tpot, --tokens-per-month, --precision, --gpu, --option."
    note = range_text(serving_causes(answer["options"][0]), "Monthly range")
    return [
        Table(columns_of("inference kinds"), rows, note=note),
        *_unverified(answer, sure),
        Paragraph(f"Next: --details (all offers, the bill, self-host or API{why_out}), {ask}"),
    ]


def _unverified(answer: Inference, sure: Sequence[ServingOption]) -> list[Block]:
    """Say what the lowest quote is that nobody verified, where it is below every offer that one can order."""
    rest = [row for row in answer["options"] if row not in sure]
    if not rest:
        return []
    row = min(rest, key=_quoted)
    if _quoted(row) >= min(map(_quoted, sure)):
        return []
    return [
        Paragraph(
            f"Lowest quoted, unverified: {format_value(_quoted(row), 'USD per million tokens')} USD per million tokens"
            f" on {row['gpus']:,} × {row['gpu']} at {row['provider']},"
            f" {option_text(row['option'], row['term_months'])}; missing: {'; '.join(row['missing'])}."
        )
    ]


def _quoted(row: ServingOption) -> float:
    """Return what tokens cost at the price that was quoted."""
    return row["usd_per_mtok"] * row.get("quoted_usd_per_gpu_hour", row["usd_per_gpu_hour"]) / row["usd_per_gpu_hour"]


def _unlike(options: Sequence[ServingOption]) -> list[ServingOption]:
    """Return the first option of each seller's product; its other regions stand in the details."""
    first: dict[tuple[object, ...], ServingOption] = {}
    for row in options:
        first.setdefault((row["provider"], row["option"], row["term_months"], row["gpu"], row["gpus"]), row)
    return list(first.values())


def _kind(row: ServingOption) -> dict[str, object]:
    unit = "USD per million tokens"
    return {
        **row,
        "kind": OPTIONS[row["option"]].kind,
        "cluster": f"{row['gpus']:,} × {row['gpu']}",
        "option": option_text(row["option"], row["term_months"]),
        "range": " to ".join(format_value(end, unit) for end in (row["usd_per_mtok_low"], row["usd_per_mtok_high"])),
        "age": f"{row['age_days']} d",
    }


def _figures(answer: Inference) -> list[Block]:
    best, unit = answer["options"][0], "USD per million tokens"
    ends, sources = (best["usd_per_mtok_low"], best["usd_per_mtok_high"]), tuple(best["source_ids"])
    month, slow = (best["usd_per_month_low"], best["usd_per_month_high"]), (best["tpot_ms_low"], best["tpot_ms_high"])
    facts = (
        Fact("Per million tokens, blended", best["usd_per_mtok"], unit, *ends, sources),
        Fact("Per million input tokens", best["usd_per_mtok_input"], unit),
        Fact("Per million output tokens", best["usd_per_mtok_output"], unit),
        Fact("Per month", best["usd_per_month"], "USD", *month),
        Fact("Time to first token, unloaded", best["ttft_ms"], "milliseconds"),
        Fact("Time to first token, under load", best["ttft_loaded_ms"], "milliseconds"),
        Fact("Time per output token", best["tpot_ms"], "milliseconds", *slow),
        Fact("GPUs", best["gpus"], note=f"{best['replicas']} replicas" if best["replicas"] else ""),
    )
    return [*present_figures(facts), Paragraph(answer["split_rule"], "note")]


def _api(answer: Inference) -> list[Block]:
    blocks: list[Block] = [*table_of("Hosted prices", answer["api"], *columns_of("inference hosted"))]
    if "api_note" in answer:
        blocks.append(Paragraph(answer["api_note"]))
    point = answer.get("breakeven")
    if point is not None:
        facts = (
            Fact("Break-even volume per month", point["tokens_per_month"], "tokens"),
            Fact("Break-even utilisation", point["utilisation_fraction"], "fraction of one"),
        )
        blocks += present_figures(facts)
        blocks.append(Paragraph(point["note"]))
    return [*blocks, *_volumes(answer)]


def _volumes(answer: Inference) -> list[Block]:
    curve: Sequence[Row] = answer.get("breakeven_curve") or ()
    lines = [
        {"tokens_per_month": row["tokens_per_month"], "side": side, "usd_per_month": row[key]}
        for row in curve
        for key, side in _SIDES.items()
    ]
    description = (
        "Self-hosting costs nearly the same at any volume until another replica is needed; an API costs more with each "
        "token."
    )
    volume = Axis("tokens_per_month", log=True, unit="tokens")
    cost = Axis("usd_per_month", "cost per month", "USD", log=True)
    return (
        [Chart("line", "Self-host or API by volume", description, lines, volume, cost, series="side")] if lines else []
    )


def _tradeoff(answer: Inference) -> list[Block]:
    rows = answer["tradeoff"]
    if len(rows) < 2:
        return not_included(answer["not_included"])
    description = "The top offer at other batch sizes: a larger batch makes tokens cheaper, but slower."
    cost = Axis("usd_per_mtok", log=True)
    chart = Chart("line", "Cost against time per token", description, rows, Axis("tpot_ms"), cost, label="batch")
    return [chart, *not_included(answer["not_included"])]


def _charts(options: Sequence[ServingOption]) -> list[Block]:
    names = [f"{row['rank']} {row['provider']} {row['gpus']}×{row['gpu']}" for row in options]
    keys = ("usd_per_mtok", "usd_per_mtok_low", "usd_per_mtok_high", "provider", "gpu", "tpot_ms")
    return offer_bars(options, names, keys, "Cost per million tokens by offer", "{}")


def _picture(answer: Inference) -> list[Block]:
    """Return all offers as points; nothing of an answer that was saved without them."""
    across, up = Axis("tpot_ms", log=True), Axis("usd_per_mtok", log=True)
    return offers_picture(answer.get("points") or (), across, up, "Cost of a million tokens against the time of one")
