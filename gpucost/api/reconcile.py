"""`gpucost.reconcile(...)`: an invoice against what was planned, and by whom it was used; `gpucost.export(...)`."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from gpucost.api.asking import framed, opened
from gpucost.api.result import Result, copied
from gpucost.errors import UsageError
from gpucost.gate import shown

if TYPE_CHECKING:
    from gpucost.catalog import Catalog

FORMS = (".csv", ".parquet")


@dataclass(frozen=True, slots=True, repr=False)
class ReconcileResult(Result):
    """An invoice against a plan: the parts of the difference, what is unmatched, and what each tag bears."""

    @property
    def parts(self) -> list[Mapping[str, Any]]:
        """The parts of the difference; billed and effective each add up to it."""
        return [*map(copied, self.payload["parts"])]

    def _rows(self) -> list[dict[str, Any]]:
        return [dict(row) for row in self.payload["parts"] or self.payload["showback"]]


def answer(given: Mapping[str, Any], catalog: "Catalog | None" = None) -> ReconcileResult:
    """Answer from arguments as they were given."""
    from gpucost.answers.read import reading
    from gpucost.catalog import open_catalog
    from gpucost.invoices.reading import read_charges
    from gpucost.invoices.reconciliation import Asked, period_of, planned, read_map, reconciled

    values, facts = opened("reconcile", given, catalog)
    charges = read_charges(values["invoice"], values["showback"])
    plan, start = plan_of(values["estimate"]), values["start"]
    with reading("the plan"):
        expected = planned(plan, charges, _moment(start), values["rank"], values["side"])
    budget, paid = _rates(values["budget_rate"], "--budget-rate"), _rates(values["rate"], "--rate")
    billed = {charge.currency for charge in [*charges, *expected]}
    idle = sorted({*budget, *paid} - billed)
    if not billed <= {"USD", *(budget.keys() & paid.keys())}:
        begin, end = period_of(charges)
        day = plan["as_of"] if isinstance(plan, Mapping) else f"{begin:%Y-%m-%d}"
        budget = {**open_catalog(min(day, facts.as_of.isoformat())).exchange_rates, **budget}
        paid = {**open_catalog(min(f"{end:%Y-%m-%d}", facts.as_of.isoformat())).exchange_rates, **paid}
    asked = Asked(
        values["showback"], values["idle_by"], values["done"], read_map(values["map"]), {"USD": 1.0, **budget},
        {"USD": 1.0, **paid},
    )  # fmt: skip
    if isinstance(plan, Mapping):
        values["estimate"] = values["estimate"] if isinstance(values["estimate"], str) else f"{plan['kind']}"
    found = reconciled(framed(facts, values), charges, expected, asked)
    told = [f"No charge is in {code}: its rate changes nothing." for code in idle]
    return ReconcileResult({**found, "warnings": [*told, *found["warnings"]]})


def plan_of(plan: Any) -> str | Mapping[str, Any] | None:
    """Return a saved answer, or the name of a FOCUS file."""
    from gpucost.bridges.saved import check_saved, read_saved

    if isinstance(plan, str):
        return read_saved(plan) if plan.lower().endswith(".json") else plan
    if plan is not None:
        if not isinstance(plan, Mapping) or not isinstance(plan.get("kind"), str):
            raise UsageError("--estimate: this mapping is no answer: it has no `kind`.")
        check_saved(plan, "--estimate")
    found: Mapping[str, Any] | None = plan
    return found


def _moment(day: str | None) -> datetime | None:
    return datetime.fromisoformat(day) if day else None


def _rates(given: Mapping[str, Any] | None, flag: str) -> dict[str, float]:
    """Read USD per unit by currency, a code of three letters."""
    from gpucost.arguments.kinds import once, plain

    read = plain(1e-9, 1e9).read
    found = once([(str(code).upper(), read(value, flag)) for code, value in (given or {}).items()], flag)
    for code in found:
        if not (len(code) == 3 and code.isascii() and code.isalpha()):
            raise UsageError(f"{flag}: {shown(code)} is no currency. Write a code of three letters, such as EUR=1.1.")
        if code == "USD":
            raise UsageError(f"{flag}: a rate is in USD for one of another currency, such as EUR=1.1; leave out USD.")
    return found


def export(
    saved: str | Mapping[str, Any] | Result, path: str, *, start: str | None = None, rank: int = 1,
    side: str | None = None, tag: Mapping[str, str] | None = None,
) -> int:  # fmt: skip
    """Write a saved answer as FOCUS rows to a .csv or .parquet file and return how many; see docs/reconcile.md."""
    import json

    from gpucost.answers.read import reading
    from gpucost.arguments import read_list
    from gpucost.arguments.kinds import FILE
    from gpucost.invoices.reading import write_rows
    from gpucost.invoices.rows import focus_rows
    from gpucost.store.files import replacing

    saved = saved.payload if isinstance(saved, Result) else saved
    asked = read_list("export", {"start": start, "rank": rank, "side": side, "tag": tag})
    path = FILE.read(path, "-o")
    form = next((form for form in FORMS if path.lower().endswith(form)), None)
    if form is None:
        raise UsageError(f"cannot tell the form of {shown(path)} from its name: {' or '.join(FORMS)}.")
    plan = plan_of(saved if isinstance(saved, Mapping) else FILE.read(saved, "saved"))
    if not isinstance(plan, Mapping):
        raise UsageError(f"{shown(plan)} is no saved answer: save one with --format json -o FILE.json.")
    begin = datetime.fromisoformat(asked["start"] or str(plan["as_of"]))
    tags = json.dumps({name: str(value) for name, value in (asked["tag"] or {}).items()}, sort_keys=True)
    with reading("the answer"):
        rows: Sequence[Mapping[str, Any]] = focus_rows(plan, begin, asked["rank"], asked["side"], tags)
    with replacing(path) as temporary:
        write_rows(rows, str(temporary), form[1:])
    return len(rows)
