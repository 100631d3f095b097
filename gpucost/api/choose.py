"""`gpucost.choose(...)`: which GPU for this workload and this budget, for one workload or several together."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpucost.api.asking import framed, opened
from gpucost.api.candidates import Need, candidates, may_go, need_of
from gpucost.api.result import Result, copied
from gpucost.arguments import flag_of
from gpucost.errors import NothingFitsError, UsageError
from gpucost.limits import limit

if TYPE_CHECKING:
    from gpucost.answers.choice import Assigned, Candidate
    from gpucost.catalog import Catalog

_LISTED = "gpu", "provider", "region", "option", "max_age", "strict_prices"


@dataclass(frozen=True, slots=True, repr=False)
class ChoiceResult(Result):
    """The GPUs that a workload could run on, the cheapest first, and what several workloads get together."""

    @property
    def best(self) -> Mapping[str, Any]:
        """The first candidate, of the first workload."""
        found: Mapping[str, Any] = copied(self.payload["rows"][0])
        return found

    @property
    def assigned(self) -> list[Mapping[str, Any]]:
        """What each of several workloads gets."""
        return [*map(copied, self.payload["assigned"])]


def answer(given: Mapping[str, Any], catalog: "Catalog | None" = None) -> ChoiceResult:
    """Answer from arguments as they were given."""
    values, catalog = opened("choose", given, catalog)
    budget = values["budget"]
    needs = needs_of(values)
    filters = {name: values[name] for name in _LISTED if name in values and given.get(name) is not None}
    found = {need.name: judged(candidates(catalog, need, filters), budget) for need in needs}
    if not all(found.values()):
        empty = next(name for name, rows in found.items() if not rows)
        kept = " with " + ", ".join(f"{flag_of(name)} {value}" for name, value in filters.items()) if filters else ""
        wider = ", or widen these" if filters else ""
        raise NothingFitsError(
            f"nothing on record suits {empty or needs[0].purpose}{kept}. Try another model or purpose{wider}."
        )
    pool = pool_of(catalog, values["pool"] or {})
    assigned = assign(found, pool) if len(needs) > 1 or pool else []
    total = sum(row["cost_usd"] for row in assigned) if assigned else None
    told = catalog.taken(*(values["pool"] or ()))
    if total is not None and budget is not None and total > budget:
        told.append(f"The cheapest assignment costs {total:,.0f} USD, over the budget of {budget:,.0f} USD.")
    return ChoiceResult({
        "kind": "choice",
        **framed(catalog, values),
        "lead": lead(needs, found, assigned, budget),
        "budget_usd": budget,
        "rows": [row for rows in found.values() for row in rows],
        "assigned": assigned,
        "total_usd": total,
        "warnings": told,
        "sources": {},
    })  # fmt: skip


def needs_of(values: Mapping[str, Any]) -> list[Need]:
    """Return the workloads asked about: those named, else the one that the arguments describe."""
    hours = values["hours_per_month"]
    if values["workload"]:
        asked, most = len(values["workload"]), limit("limit_workloads")
        if asked > most:
            raise UsageError(f"--workload: {asked:,}; at most {most:,.0f}. The setting limit_workloads raises that.")
        return [need_of(name, str(text), hours) for name, text in values["workload"].items()]
    return [Need("", values["purpose"], values["model"], values["tokens"], hours)]


def judged(rows: "Sequence[Candidate]", budget: float | None) -> "list[Candidate]":
    """Say of each candidate what the budget reaches; what it reaches comes first."""
    if budget is None:
        return list(rows)
    known: list[Candidate] = []
    for row in rows:
        ways = {"rent": row["rent_usd"], "buy": row["buy_usd"]}
        within = " or ".join(way for way, cost in ways.items() if cost is not None and cost <= budget)
        known.append({**row, "within": within or "neither"})
    return sorted(known, key=lambda row: row["within"] == "neither")


def pool_of(catalog: "Catalog", pool: Mapping[str, Any]) -> dict[str, int]:
    """Return how many accelerators of each kind are owned already."""
    from gpucost.arguments.kinds import once, whole

    read = whole().read
    return once([(catalog.accelerator(name).id, read(count, "--pool")) for name, count in pool.items()], "--pool")


def assign(found: "Mapping[str, Sequence[Candidate]]", pool: Mapping[str, int]) -> "list[Assigned]":
    """Give each workload one candidate so that all together cost least: owned ones cost nothing, and run out."""
    import numpy as np

    from gpucost.money.mix import milp

    ways: list[tuple[str, Assigned]] = []
    for name, rows in found.items():
        ways += [(name, _assigned(row, "own", 0.0)) for row in rows if pool.get(row["gpu"], 0) >= row["gpus"]]
        rented = [(may_go(row), row["rent_usd"], at) for at, row in enumerate(rows) if row["rent_usd"] is not None]
        for _, cost, at in sorted(rented)[:1]:
            ways.append((name, _assigned(rows[at], rows[at]["provider"], cost)))
    if {name for name, _ in ways} < set(found):
        raise UsageError("--pool: nothing in it, and nothing for rent, suits every workload.")
    one_each = [[float(name == one) for one, _ in ways] for name in found]
    taken = [[way["gpus"] * float(way["provider"] == "own" and way["gpu"] == gpu) for _, way in ways] for gpu in pool]
    most = np.array([1.0] * len(found) + [float(count) for count in pool.values()])
    least = np.array([1.0] * len(found) + [0.0] * len(pool))
    best = milp(
        np.array([way["cost_usd"] for _, way in ways]), integrality=np.ones(len(ways)), bounds=(0, 1),
        constraints=(np.array([*one_each, *taken]), least, most),
    )  # fmt: skip
    if best.x is None:
        raise UsageError("--pool: nothing in it, and nothing for rent, suits every workload.")
    return [way for (_, way), share in zip(ways, best.x, strict=True) if share > 0.5]


def _assigned(row: "Candidate", provider: str, cost_usd: float) -> "Assigned":
    name = row["workload"] or row["purpose"]
    return {"workload": name, "gpu": row["gpu"], "gpus": row["gpus"], "provider": provider, "cost_usd": cost_usd}


def lead(
    needs: Sequence[Need],
    found: "Mapping[str, Sequence[Candidate]]",
    assigned: "Sequence[Assigned]",
    budget: float | None,
) -> str:
    """Say what to take."""
    if assigned:
        parts = [f"{row['workload']} on {row['gpus']} × {row['gpu']} ({row['provider']})" for row in assigned]
        return f"{'; '.join(parts)}: {sum(row['cost_usd'] for row in assigned):,.0f} USD in all."
    need, first = needs[0], next(iter(found.values()))[0]
    time = f" and {first['days']:.1f} days" if first["days"] else ""
    span = "" if need.purpose in ("training", "fine-tuning") else " a year"
    rent = "" if first["rent_usd"] is None else f"rent for {first['rent_usd']:,.0f} USD{span}{time}"
    buy = "" if first["buy_usd"] is None else f"buy for about {first['buy_usd']:,.0f} USD"
    if budget is not None and first["within"] != "neither":  # of a budget, what it reaches
        rent, buy = (text if way in first["within"] else "" for way, text in (("rent", rent), ("buy", buy)))
    words = " or ".join(part for part in ((buy, rent) if need.purpose == "desk" else (rent, buy)) if part)
    reach = ""
    if budget is not None:
        reached = sum(row["within"] != "neither" for row in next(iter(found.values())))
        reach = f" {budget:,.0f} USD reach {reached} of {len(next(iter(found.values())))} kinds."
    use = {"desk": "a desk with", "research": "research on"}.get(need.purpose, f"{need.purpose} of")
    return f"For {use} {need.model}: {first['gpus']} × {first['gpu']}, {words}.{reach}"
