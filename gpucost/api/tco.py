"""`gpucost.tco(...)`: own or rent, as a finance team would compute it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from functools import lru_cache
from typing import Any

from gpucost.api.result import Result, copied
from gpucost.arguments import by_field, read, refuse_idle
from gpucost.catalog import Catalog, open_catalog
from gpucost.errors import UsageError
from gpucost.ownership.plan import SPECIAL, PlanFile, once, plan_from_mapping, read_plan
from gpucost.render.document import Document

_OF_A_PRICE = ("provider", "option", "region")


@dataclass(frozen=True, slots=True, repr=False)
class TcoResult(Result):
    """Cash flows, present values, break-even and risk of owning against renting."""

    @property
    def lines(self) -> list[Mapping[str, Any]]:
        """The lines of both sides with totals and present values."""
        return [*map(copied, self.payload["lines"])]

    @property
    def assumptions(self) -> list[Mapping[str, Any]]:
        """Every input with value, range, status and source."""
        return [*map(copied, self.payload["assumptions"])]

    def explanation(self) -> Document:
        """Return the document with every formula and its numbers, and the inputs with their sources."""
        from gpucost.render.tco import explanation_document

        return explanation_document(self.payload)

    def to_plan(self) -> str:
        """Return the effective inputs as a plan file; reading it back gives the same answer."""
        from gpucost.ownership.plan import write_plan

        return write_plan(self.payload["assumptions"], self.payload["settings"], self.payload["model"]["tables"])


def answer(given: Mapping[str, Any], catalog: Catalog | None = None) -> TcoResult:
    """Answer from arguments as they were given."""
    from gpucost.ownership.answer import answer as compared

    special, flags = asked("tco", given)
    catalog = catalog or catalog_on(special.pop("as_of", None), special.pop("known_as_of", None))
    file = plan_of(catalog, given.get("plan"))
    flags = {**flags, **workload_flags(catalog, file, flags, special)}
    request = requested("tco", given)
    for name in ("gpus", "gpu"):
        if name not in request and (found := flags.get(name) or file.given.get(name) or file.special.get(name)):
            said = getattr(found, "value", found)
            request[name] = int(said) if isinstance(said, float) else said
    return TcoResult(compared(catalog, file, flags, special, request))


def catalog_on(as_of: str | None, known_as_of: str | None = None) -> Catalog:
    """Open the catalog as of a day; the same one again while day, folder, settings and book stay."""
    from gpucost.catalog.settings import book_layers, present_folder

    settings = tuple(sorted((name, value) for name, value in os.environ.items() if name.startswith("GPUCOST_")))
    return _opened(as_of, known_as_of, date.today().isoformat(), present_folder(), settings, *book_layers().values())


@lru_cache(maxsize=4)
def _opened(as_of: str | None, known_as_of: str | None, *_: Any) -> Catalog:
    return open_catalog(as_of, known_as_of)


def asked(question: str, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Sort what was asked into special names, dates among them, and inputs of the plan; each may be said once."""
    from gpucost.ownership.plan import special_value as read_special

    said = read(question, given, complete=False)
    judged = said  # of a tco a plan may say the rest: only what a price given here leaves no use for
    if question == "tco":
        judged = {name: said[name] for name in (*_OF_A_PRICE, "rent") if name in said and "rent" in said}
    refuse_idle(question, judged, said)
    named = by_field(question, said)
    named.pop("plan", None)
    inputs = named.pop("set", {})
    if isinstance(rents := named.get("rent"), dict):
        price = rents.pop("", None)
        named |= {"rent_usd_per_gpu_hour": price, "quote": rents or None}
        named = {name: value for name, value in named.items() if value is not None and name != "rent"}
    if twice := sorted(set(inputs) & set(named)):
        raise UsageError(f"{twice[0]} is given twice: as an argument and by --set. Keep one.")
    named |= {name: read_special(name, value, "--set") for name, value in inputs.items()}
    special = {name: value for name, value in named.items() if name in SPECIAL or name in ("as_of", "known_as_of")}
    inputs = {name: value for name, value in named.items() if name not in special}
    once(inputs, special, "the request")
    return special, inputs


def requested(question: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return what was asked as it was read, so that it can be asked again; quotes as they were written."""
    found = read(question, given, complete=False)
    if isinstance(rents := found.get("rent"), dict):
        found["rent"] = rents[""] if list(rents) == [""] else given["rent"]
    return found


def plan_of(catalog: Catalog, plan: "str | Mapping[str, Any] | None") -> PlanFile:
    """Read a plan from a file or a mapping."""
    from gpucost.ownership.assemble import registry_of

    if plan is None:
        return PlanFile()
    names = registry_of(catalog).names
    return plan_from_mapping(plan, names) if isinstance(plan, Mapping) else read_plan(plan, names)


def workload_flags(
    catalog: Catalog, plan: PlanFile, flags: Mapping[str, Any], special: dict[str, Any]
) -> dict[str, Any]:
    """Turn a workload (model, tokens, runs per year) into inputs, where one was given."""
    asked = {**plan.special, **special}
    refuse_idle("tco", asked, asked)
    if not asked.get("model") and asked.get("tokens_per_month") is None:
        return {}
    from gpucost.api.workload import serving_speed
    from gpucost.ownership.assemble import inputs_of

    given = {**{name: entry.value for name, entry in plan.given.items()}, **flags}
    return inputs_of(catalog, asked, given, serving_speed)
