"""An index: what three standard jobs cost in each month since 2022, by kind of seller, on demand and spot.

    cost = least over chips of GPU-hours of the job on the chip x price of a GPU-hour of the chip in the month

The GPU-hours are those of today's models of speed and of today's software, in every month: what moves is prices, and
which chips could be had. A price is the median over the sellers of a kind (`pricing/monthly_prices.csv`). Spot is taken
as if nothing were interrupted.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, NamedTuple

from gpucost.catalog.price_months import OF_OPTION, SPOT
from gpucost.errors import GpuCostError, PriceMissingError

if TYPE_CHECKING:
    from gpucost.catalog.core import Catalog

# Chips that clouds rent out, from those of 2022 to today's: the cheapest of a month is the price of a job.
CHIPS = (
    "t4",
    "v100-sxm2-16gb",
    "v100-sxm2-32gb",
    "a10g",
    "a100-sxm4-40gb",
    "a100-sxm4-80gb",
    "l4",
    "l40s",
    "h100-sxm5-80gb",
    "h200-sxm-141gb",
    "b200-sxm",
    "b300-sxm",
    "mi300x",
)
OPTIONS = tuple(OF_OPTION.values())
# What the prices of the early months, and of spot, cannot tell; the page and the docs say so beside the index.
FAULTS = (
    "Before mid 2023 clouds other than the largest are one or two sellers, and marketplaces none.",
    "Spot of hyperscalers is one seller before August 2022; that of the others, of 2026, rests on few sellers.",
    "From 2023 to 2025 few clouds were recorded, most in 2026: who was recorded moves their line, too.",
    "AWS spot ends in June 2024; the spot line of hyperscalers is that of Google and Azure from then on.",
    "Who can be interrupted takes on demand where that costs less: the spot line is never above it.",
    "A seller's price is the median over its regions: a new dear region moves it though no price changed.",
    "Speeds are those of today's software: a job of 2022 took longer than the GPU-hours that are counted here.",
)


class IndexJob(NamedTuple):
    """A standard job: how it is called, and the question that asks for its GPU-hours."""

    id: str
    title: str
    question: str  # estimate | inference
    arguments: Mapping[str, Any]


JOBS = (
    IndexJob("pretrain_8b", "8B, 100B tokens", "estimate", {"model": "llama-3.1-8b", "tokens": "100b"}),
    IndexJob(
        "lora_70b",
        "LoRA of a 70B",
        "estimate",
        {"model": "llama-3.1-70b", "tokens": "100m", "method": "lora"},
    ),
    IndexJob("serve_70b", "1M tokens of a 70B", "inference", {"model": "llama-3.3-70b"}),
)


def gpu_hours(job: IndexJob, chip: str) -> float | None:
    """Return the GPU-hours of a job on a chip, on its first offer on demand; None where the chip cannot do it."""
    import warnings

    from gpucost.ask.estimate import estimate
    from gpucost.ask.inference import inference

    ask = estimate if job.question == "estimate" else inference
    try:
        with warnings.catch_warnings():  # of old or few prices: only the hours count here
            warnings.simplefilter("ignore")
            best = ask(**job.arguments, gpu=chip, option="on_demand", top=1).best
    except GpuCostError:
        return None
    # a price of a million tokens ÷ that of an hour: the GPU-hours of a million tokens
    return float(best["gpu_hours"] if job.question == "estimate" else best["usd_per_mtok"] / best["usd_per_gpu_hour"])


def index_rows(
    catalog: "Catalog", jobs: Sequence[IndexJob] = JOBS, chips: Sequence[str] = CHIPS
) -> list[dict[str, Any]]:
    """Return what each job cost in each month, by kind of seller and option, on its cheapest chip."""
    cells: dict[tuple[date, str, str], list[Mapping[str, Any]]] = {}
    for row in catalog.rows("monthly_prices"):
        if row["month"] <= catalog.as_of and row["option"] in OPTIONS and row["gpu"] in chips:
            cells.setdefault((row["month"], row["seller_kind"], row["option"]), []).append(row)
    if not cells:
        raise PriceMissingError(
            f"there are no prices before {catalog.as_of}: the first month on record is January 2022."
        )
    rows = []
    for job in jobs:
        hours = {chip: gpu_hours_of_job for chip in chips if (gpu_hours_of_job := gpu_hours(job, chip)) is not None}
        for (month, kind, option), prices in sorted(cells.items()):
            # who can be interrupted takes on demand where that costs less
            on_demand = cells.get((month, kind, OF_OPTION["on demand"]), []) if option == SPOT else []
            able = [row for row in (*prices, *on_demand) if row["gpu"] in hours]
            if not able:
                continue
            best = min(
                able, key=lambda row: (hours[row["gpu"]] * row["usd_per_gpu_hour"], row["gpu"])
            )  # of equal costs the first name
            rows.append(
                {
                    "month": month,
                    "job": job.id,
                    "title": job.title,
                    "seller_kind": kind,
                    "option": option,
                    "usd": hours[best["gpu"]] * best["usd_per_gpu_hour"],
                    "gpu": best["gpu"],
                    "gpu_hours": hours[best["gpu"]],
                    "usd_per_gpu_hour": best["usd_per_gpu_hour"],
                    "sellers": best["sellers"],
                }
            )
    return rows


def yearly(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return each line of the index at the ends of its years and in its last month."""
    lines: dict[tuple[str, str, str], dict[date, float]] = {}
    for row in rows:
        lines.setdefault((row["title"], row["seller_kind"], row["option"]), {})[row["month"]] = row["usd"]
    last = max(
        row["month"] for row in rows
    )  # of the newest year there is no end yet: its last month stands in a column of its own
    ends = [date(year, 12, 31) for year in range(2022, last.year)]
    table = []
    for (title, kind, option), months in lines.items():
        line: dict[str, Any] = {"job": title, "seller_kind": kind, "option": option.replace("_", " ")}
        line |= {f"usd_{day.year}": months.get(day) for day in ends}
        day, usd = max(months.items())
        table.append({**line, "usd_last": usd, "last_month": day})
    return table


def points(rows: Sequence[Mapping[str, Any]], job: IndexJob) -> Iterator[dict[str, Any]]:
    """Yield the points of a job's chart."""
    for row in rows:
        if row["job"] == job.id:
            line = f"{row['seller_kind']}, {row['option'].replace('_', ' ')}"
            yield {"day": row["month"].isoformat(), "usd": row["usd"], "line": line}
