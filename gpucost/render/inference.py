"""The document of a serving answer: cost per million tokens by offer, latency, and self-host against API."""

from collections.abc import Sequence

from gpucost.answers.serving import Inference
from gpucost.options import OPTIONS
from gpucost.render import offers
from gpucost.render.document import (
    Axis,
    Block,
    Chart,
    Column,
    Document,
    Fact,
    KeyFigures,
    Paragraph,
    Row,
    Section,
    Table,
    about,
    amount,
    columns_of,
    document_of,
    format_value,
    present_figures,
    table_of,
)
from gpucost.render.wording import chip_label
from gpucost.units import counted, format_count

_SCREEN_LEVELS = 4  # accelerators of a service level on one screen
_SCREEN_HOSTED = 1  # hosted prices of one screen
_HEADINGS = {
    "cost": "Offers without interruptions, cheapest tokens first",
    "latency": "Offers without interruptions, fastest tokens first",
    "carbon": "Offers without interruptions, least carbon first",
}
# a model that stays up must keep its requests: what may be interrupted is apart, and so is what binds for a term
_BOUND = "Offers with a commitment, paid whether used or not; ranks count all offers"
_RISKY = "Interruptible offers, in the same order: requests in flight are lost, keep redundancy"
# column of the break-even curve -> what the picture calls it
_SIDES = {"self_host_usd": "self host", "api_usd": "api"}


def document(answer: Inference) -> Document:
    """Build the document of a serving answer."""
    options = answer["options"]
    lines, month_usd = options[0]["lines"], options[0]["usd_per_month"]
    bill = [offers.bill_table(lines, month_usd, "Per month")] if lines else []
    # Offers stand in three tables: free to leave, bound for a term, and those that may be interrupted. Where every
    # offer is bound, they stand under the usual heading; the first table says what was left out.
    excluded, headings = offers.left_out(answer), columns_of("inference")
    risky = [row for row in options if OPTIONS[row["option"]].interruptible]
    bound = [row for row in options if row not in risky and OPTIONS[row["option"]].family == "committed"]
    free = [row for row in options if row not in risky and row not in bound]
    heading = _HEADINGS[answer["request"].get("optimize") or "cost"]
    parts = [(heading, free), (heading if not free else _BOUND, bound), (_RISKY, risky)]
    tables = [(title, rows) for title, rows in parts if rows]
    across, up = Axis("tpot_ms", log=True), Axis("usd_per_mtok", log=True)
    picture = offers.offers_picture(offers.ways(answer), across, up, "Cost per million tokens against latency")
    names = [f"{row['rank']} {row['provider']} {row['gpus']}×{row['gpu']}" for row in options]
    keys = ("usd_per_mtok", "usd_per_mtok_low", "usd_per_mtok_high", "provider", "gpu", "tpot_ms")
    bars = offers.offer_bars(options, names, keys, "Cost per million tokens by offer", "{}")
    tradeoff: list[Block] = []
    if len(answer["tradeoff"]) > 1:
        description = "The top offer at other batch sizes: a larger batch makes tokens cheaper, but slower."
        x, y = Axis("tpot_ms"), Axis("usd_per_mtok", log=True)
        chart = Chart("line", "Cost against time per token", description, answer["tradeoff"], x, y, label="batch")
        tradeoff.append(chart)
    # the figures of the top offer; what an older answer lacks is left out
    best, unit = options[0], "USD per million tokens"
    ends, sources = (best["usd_per_mtok_low"], best["usd_per_mtok_high"]), tuple(best["source_ids"])
    month, slow = (best["usd_per_month_low"], best["usd_per_month_high"]), (best["tpot_ms_low"], best["tpot_ms_high"])
    # the load at which a token takes its time; answers of before say the full batch alone
    load = f"batch of {best['batch']:,}"
    if best["ttft_loaded_ms"] is not None and "requests_in_flight" in best:
        load = f"{format_value(best['requests_in_flight'])} in flight"
    figures = (
        Fact("Per million tokens, blended", best["usd_per_mtok"], unit, *ends, sources),
        Fact("Per million input tokens", best["usd_per_mtok_input"], unit),
        Fact("Per million output tokens", best["usd_per_mtok_output"], unit),
        Fact("Per month", best["usd_per_month"], "USD", *month),
        Fact("Time to first token, unloaded", best.get("ttft_unloaded_ms", best["ttft_ms"]), "milliseconds"),
        Fact("Time to first token, under load", best["ttft_loaded_ms"], "milliseconds"),
        Fact(f"Time per output token, {load}", best["tpot_ms"], "milliseconds", *slow),
        Fact("GPUs", best["gpus"], note=f"{best['replicas']} replicas" if best["replicas"] else ""),
    )
    # what keeps the service level on each accelerator, over the day, and how a replica's percentiles rise
    levels: list[Block] = []
    if "levels" in answer:
        levels.append(Table(columns_of("inference levels"), answer["levels"]))
        if hours := answer.get("hours"):
            title = "The first offer over the day, by hours that are alike"
            levels.append(Table(columns_of("inference hours"), hours, title))
        # how both times of a replica rise with the load; beyond what it can hold there are none
        percentile = f"{answer['request']['percentile']:g}th percentile"
        points: list[Row] = []
        for point in answer.get("knee") or ():
            times = {"first token": point["ttft_ms"], "per token": point["tpot_ms"]}
            points += [
                {"requests_per_s": point["requests_per_s"], "time": name, "ms": ms}
                for name, ms in times.items()
                if ms is not None
            ]
        if points:
            text = f"The {percentile} of both times of one replica of the first offer, by the requests that it is sent."
            load_axis, time_axis = Axis("requests_per_s"), Axis("ms", percentile, "milliseconds", log=True)
            levels.append(Chart("line", "Where latency rises", text, points, load_axis, time_axis, series="time"))
    return document_of(
        answer,
        f"Serving {answer['request']['model']}",
        Section("Every offer: cost of tokens against speed", picture, detail=True, paper=True),
        Section("", [*present_figures(figures), Paragraph(answer["split_rule"], "note")], detail=True, paper=True),
        Section("", [Paragraph(line) for line in answer["said"]], paper=True),
        Section("Service level: the cheapest of each accelerator", levels),
        *(
            Section(title, offers.offers_table(headings, rows, [] if number else excluded), paper=not number)
            for number, (title, rows) in enumerate(tables)
        ),
        Section("Self-host or API", _api(answer)),
        Section("Bill of the top offer", bill),
        Section("Speed against cost", [*tradeoff, *offers.not_included(answer["not_included"])]),
        Section("Pictures", bars, detail=True),
        Section("Offers left out, and why", offers.excluded_table(offers.left_out(answer)), detail=True),
        screen=_screen(answer),
        name=f"Serve {answer['request']['model']}, {format_count(options[0]['tokens_per_month'])} tokens a month",
    )


def _screen(answer: Inference) -> list[Block]:
    """Return what one screen shows: the best offers by kind, a hosted price, what they rest on, what to ask next."""
    shown = answer.get("highlights") or []
    rows: list[Row] = [
        {**row, "quote": about(row["usd_per_mtok"]), "token": f"{row['tpot_ms']:.3g} ms"}
        for row in offers.picks(shown, "budget_usd_per_mtok")
    ]
    if not rows:  # an answer of before has no picks: the terminal then shows its sections
        return []
    # the same model under an API is what one compares with; another one only where nobody hosts it
    hosted = sorted(answer["api"], key=lambda row: (not row["same_model"], row["usd_per_mtok"]))[:_SCREEN_HOSTED]
    rows += [
        {
            "kind": "hosted",
            "quote": about(row["usd_per_mtok"]),
            "machine": "API" if row["same_model"] else row["model"],
            "seller": row["provider"],
        }
        for row in hosted
    ]
    # what the picks rest on: the price of the first line, what was assumed, and how far its cost may move
    best, first = answer["options"][0], shown[0]
    facts = [Fact(row["label"], row["text"]) for row in answer.get("stated") or ()]
    low, high = about(best["usd_per_mtok_low"]), about(best["usd_per_mtok_high"])
    ends = f"{low} to {high} for the first line{offers.widest_cause(offers.serving_causes(best))}."
    priced = offers.price_text({**best, "seller": first.get("seller")})
    # how the first accelerators keep the service level, where one was asked for
    levels: list[Row] = [
        {
            "machine": f"{row['gpus']:,} × {chip_label(row['gpu'])}",
            "held": f"{row['held_requests_per_s']:.3g}/s",
            "first": amount(row["ttft_p95_ms"], "milliseconds"),
            "token": amount(row["tpot_p95_ms"], "milliseconds"),
            "whole": amount(row["e2e_p95_s"], "seconds"),
            "cost": about(row["usd_per_mtok"]),
        }
        for row in (answer.get("levels") or [])[:_SCREEN_LEVELS]
    ]
    every = counted(answer["offers_ranked"] + len(offers.left_out(answer)), "offer")
    ask = f"{answer['offers_ranked']:,} of {every} qualify: --details · also --prompt-tokens, --tpot, --gpu"
    return [
        Table(_PICKED, rows, note=offers.budget_note(shown, "budget_usd_per_mtok")),
        *([Table(_LEVELS, levels)] if levels else []),
        KeyFigures((Fact("Price", priced), *facts, Fact("Range", ends))),
        Paragraph(ask),
    ]


_PICKED = (
    Column("kind", heading="$ per 1M tokens"),
    Column("quote", "expect", right=True),
    *(Column(name, right=True) for name in ("budget", "token", "machine")),
    Column("seller"),
)
_LEVELS = (
    Column("machine", right=True),
    Column("held", "a replica holds", right=True),
    Column("first", "TTFT p95", right=True),
    Column("token", "TPOT p95", right=True),
    Column("whole", "answer p95", right=True, priority=1),
    Column("cost", "per 1M tokens", right=True),
)


def _api(answer: Inference) -> list[Block]:
    """Return hosted prices, the volume from which self-hosting is cheaper, and both by volume."""
    blocks: list[Block] = [*table_of("Hosted prices", answer["api"], *columns_of("inference hosted"))]
    if "api_note" in answer:
        blocks.append(Paragraph(answer["api_note"]))
    # below the first volume an API is cheaper; above it replicas come in steps, so that it may yet be once more
    point = answer.get("breakeven")
    if point is not None:
        facts = (
            Fact("Break-even volume per month", point["tokens_per_month"], "tokens"),
            Fact("Never dearer from", point.get("always_tokens_per_month"), "tokens"),
            Fact("Break-even utilisation", point["utilisation_fraction"], "fraction of one"),
        )
        blocks += present_figures(facts)
        blocks.append(Paragraph(point["note"]))
    curve: Sequence[Row] = answer.get("breakeven_curve") or ()
    lines = [
        {"tokens_per_month": row["tokens_per_month"], "side": side, "usd_per_month": row[key]}
        for row in curve
        for key, side in _SIDES.items()
    ]
    if lines:
        description = (
            "Self-hosting costs nearly the same at any volume until another replica is needed; an API costs more with "
            "each token."
        )
        volume = Axis("tokens_per_month", log=True, unit="tokens")
        cost = Axis("usd_per_month", "cost per month", "USD", log=True)
        blocks.append(Chart("line", "Self-host or API by volume", description, lines, volume, cost, series="side"))
    return blocks
