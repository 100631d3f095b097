"""`gpucost.report(...)`: the answers of a scenario as one result that becomes a workbook, a page or a text.

And what makes it fit to be handed on: who stands behind it, and what of it may be shared.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Annotated, Any

from gpucost import clock
from gpucost.answers import SCHEMA_VERSION
from gpucost.answers.combined import ScenarioAnswer as Answer
from gpucost.answers.saved import read_answer, reading, seal_of, with_change_warnings
from gpucost.arguments import read_list
from gpucost.arguments import vocabulary as v
from gpucost.arguments.kinds import named
from gpucost.arguments.signature import PLACE, arguments_of
from gpucost.ask import QUESTIONS
from gpucost.ask.dispatch import answered
from gpucost.ask.result import Result
from gpucost.catalog.names import listed
from gpucost.catalog.settings import without_book
from gpucost.catalog.shared import shared_catalog
from gpucost.errors import GpuCostError, UsageError
from gpucost.gate import read_toml
from gpucost.library.scenario import ASKS, Scenario, ScenarioQuestion, make_scenario, read_scenario
from gpucost.options import OPTIONS, is_plain
from gpucost.store.files import write_text

# Of the arguments of a question: what may hold a price or a name that somebody agreed upon in private.
_PRIVATE = ("rent", "pool", "rent_curve", "on_demand", "committed", "agreements")
_SELLER = ("provider", "region")  # left out together where no public price names the seller
_PRIVATE_INPUTS = ("rent", "quote", "supply", "price")  # beginnings of such inputs of a plan
# The part of a scenario that asks again for a saved answer of each kind.
PARTS = {"estimate": "training", "inference": "serving", "tco": "ownership", "mix": "mix"}

_Payload = Mapping[str, Any]
SUFFIXES = (".xlsx", ".html", ".pdf", ".md", ".json", ".txt")
# Arguments of a run that bound its speed; its layout comes from the answer.
_SPEED_ARGUMENTS = ("model", "document_tokens", "method", "software", "software_year", "offload")
# List prices of one GPU by the month in which they were seen.
_HISTORY = """
    SELECT strftime(observed_on, '%Y-%m-01') AS month, median(usd_per_gpu_hour) AS usd_per_gpu_hour,
        min(usd_per_gpu_hour) AS low_usd_per_gpu_hour, max(usd_per_gpu_hour) AS high_usd_per_gpu_hour,
        count(*) AS prices
    FROM offers
    WHERE gpu = $gpu AND list_contains($plain, option) AND offer_kind = 'offer' AND observed_on <= CAST($day AS DATE)
    GROUP BY month
    ORDER BY month"""


@dataclass(frozen=True, slots=True, repr=False)
class ReportResult(Result):
    """The answers of a scenario, or a saved answer, ready to be written in any medium."""

    name: str = "the answer"  # the file it was read from

    def write(self, path: str) -> None:
        """Write the report; the suffix says how: .xlsx, .html, .pdf, .md, .json or .txt."""
        suffix = check_suffix(path)
        documents = {".xlsx": self.to_excel, ".html": self.to_html, ".pdf": self.to_pdf}
        if suffix in documents:
            documents[suffix](path)
        else:
            texts = {".md": self.to_markdown, ".json": self.to_json, ".txt": self.to_text}
            write_text(path, texts[suffix]())

    @contextmanager
    def _guard(self) -> Iterator[None]:
        with reading(self.name):
            yield


def check_suffix(path: str) -> str:
    """Return the suffix of a report's path, or say which ones there are."""
    suffix = Path(path).suffix.lower()
    if suffix not in SUFFIXES:
        raise UsageError(f"cannot tell the format of {path!r} from its name. A report ends in {', '.join(SUFFIXES)}.")
    return suffix


def report(
    source: Annotated[str | PathLike[str] | Mapping[str, Any], named("SCENARIO.toml|ANSWER.json"), PLACE],
    *,
    status: v.Status | None = None,
    by: v.StampedBy | None = None,
    date: v.StampedOn | None = None,
    share_safe: v.ShareSafe = False,
    accept_changed: v.AcceptChanged = False,
) -> ReportResult:
    """Answer a scenario (a TOML file or its content), or load a saved answer (a JSON file) to render it again.

    `status` (draft or approved), `by` and `date` stamp it with the hash of the answer. `share_safe` asks without the
    user's own price book and without prices, quotes, pools and files that the request holds. `accept_changed` goes on
    with a saved answer that no longer matches its seal, and the report says so.
    """
    stated = {"status": status, "by": by, "date": date, "share_safe": share_safe, "accept_changed": accept_changed}
    # a mapping at hand needs no name of a file, and its content is checked as a scenario's
    at_hand = isinstance(source, Mapping)
    arguments = arguments_of(report)
    values = read_list(arguments, stated if at_hand else {**stated, "source": source}, complete=not at_hand)
    scenario = source if isinstance(source, Mapping) else values["source"]
    share_safe = values["share_safe"]
    name = "the answer" if isinstance(scenario, Mapping) else scenario
    if isinstance(scenario, Mapping):
        payload = _in_public(scenario) if share_safe else _answer(make_scenario(scenario))
    elif not scenario.lower().endswith(".json"):
        payload = _in_public(read_toml(scenario)) if share_safe else _answer(read_scenario(scenario))
    else:
        payload = read_answer(scenario, values["accept_changed"])
        if share_safe:
            with reading(scenario):  # the request of a file that was edited may be anything
                request = asked_anew(payload)
            payload = with_change_warnings(_in_public(request), payload)
    return ReportResult(issued(payload, values["status"], values["by"], values["date"]), name=name)


def _in_public(content: Mapping[str, Any]) -> Mapping[str, Any]:
    """Ask without anything private, and say what was left out."""
    left_out: list[str] = []
    with without_book():
        catalog = shared_catalog()
        # who sells in public; any other seller is somebody's own
        sellers = catalog.offer_values("provider")
        public = shareable(content, left_out, lambda name: catalog.alias("provider", name).lower() in sellers)
        without = ", ".join(["the price book of one's own", *left_out])
        try:
            answer = _answer(make_scenario(public))
        except GpuCostError as error:
            error.args = (f"asked without {without}, to be safe to share: {error}",)
            raise
    return {**answer, "warnings": [*answer["warnings"], f"Safe to share: asked without {without}."]}


def _answer(scenario: Scenario) -> Answer:
    """Ask the questions of a scenario in their order, and return their answers as one."""
    answers: list[tuple[ScenarioQuestion, dict[str, Any]]] = []
    for part in scenario.parts:
        # a comparison or an invoice may name parts before it: it gets their answers
        before = {earlier.name: payload for earlier, payload in answers}
        payload = asked_part(part.naming(before, part.arguments))
        if part.kind == "training":
            # what a report shows beside it: how the price came about, and what bounds the speed
            best, request = payload["options"][0], payload["request"]
            gpu, day = best["gpu"], payload["as_of"]
            catalog = shared_catalog(day, request.get("known_as_of"))
            parameters = {"gpu": gpu, "day": day, "plain": [name for name in OPTIONS if is_plain(name)]}
            history = catalog.query(_HISTORY, "offers", parameters=parameters)
            run = {name: request[name] for name in _SPEED_ARGUMENTS if request[name] is not None}
            adapters = {"lora_rank": request["lora_rank"]} if request["method"] != "full" else {}
            sequence = {"sequence": payload["workload"]["sequence_tokens"]}
            bounds = answered("roofline", {"gpu": gpu, **best["layout"], **run, **adapters, **sequence}, catalog)
            payload |= {"price_history": [dict(row) for row in history], "roofline": bounds.payload}
        answers.append((part, payload))
    first = answers[0][1]
    sources: dict[str, Any] = {}
    for _, payload in answers:
        sources |= payload["sources"]
    return {
        "kind": "scenario",
        "schema_version": SCHEMA_VERSION,
        "lead": "",
        "name": scenario.name,
        "description": scenario.description,
        "request": dict(scenario.request),
        "as_of": first["as_of"],
        "catalog_version": first["catalog_version"],
        "parts": [{"name": part.name, "part": part.kind, "payload": payload} for part, payload in answers],
        "warnings": [],
        "sources": sources,
    }


def asked_part(part: ScenarioQuestion) -> dict[str, Any]:
    """Answer one part; an error says which part it is about."""
    try:
        result: Result = answered(ASKS[part.kind], part.arguments)
    except GpuCostError as error:
        error.args = (f"{part.kind} part {part.name!r}: {error}",)
        raise
    return dict(result.payload)


def issued(payload: _Payload, status: str | None, by: str | None, on: str | None) -> dict[str, Any]:
    """Return an answer with its stamp, which names the seal of the answer without it; an older stamp gives way."""
    from gpucost.render.json import dumps

    if not (status or by or on):
        return dict(payload)
    # the stamp names the hash of the answer without it, so that a reader can check the one by the other
    unstamped = {key: value for key, value in payload.items() if key != "issued"}
    stamp = {"status": status or "draft", "by": by or "", "on": on or clock.today().isoformat()}
    return {**unstamped, "issued": {**stamp, "sha256": seal_of(dumps(unstamped))}}


def shareable(content: _Payload, left_out: list[str], sells: Callable[[str], bool], where: str = "") -> dict[str, Any]:
    """Return what was asked, without private prices, sellers and files; `left_out` gets their names.

    At the top `where` is empty; below it says in which part or plan.
    """
    shared: dict[str, Any] = {}
    seller = content.get("provider")
    is_public = not isinstance(seller, (str, list)) or all(map(sells, listed(seller)))
    for key, value in content.items():
        is_private = (
            key in _PRIVATE
            or (not where and key in ("invoice", "commitment"))  # parts: what a buyer paid or signed
            or (where and key.startswith(_PRIVATE_INPUTS))
            or (key in _SELLER and not is_public)
        )
        if is_private:
            left_out.append(f"{where}{key}")
        elif isinstance(value, Mapping):
            shared[key] = shareable(value, left_out, sells, f"{where}{key}.")
        elif isinstance(value, list) and all(isinstance(item, Mapping) for item in value):
            shared[key] = [
                shareable(item, left_out, sells, f"{where}{key}[{number}].") for number, item in enumerate(value, 1)
            ]
        elif isinstance(value, str) and value.lower().endswith((".toml", ".csv", ".json", ".xlsx")):  # a file
            left_out.append(f"{where}{key}")
        else:
            shared[key] = value
    return shared


def asked_anew(payload: _Payload) -> dict[str, Any]:
    """Return the request of a saved answer as a scenario, so that it can be asked without private facts."""
    kind = str(payload["kind"])
    if kind == "scenario":
        return dict(payload["request"])
    if kind not in PARTS:
        raise UsageError(f"a saved {kind} cannot be made safe to share; these can: {', '.join(PARTS)}.")
    names = {item.field or item.name: item.name for item in QUESTIONS[kind].arguments if not item.library_only}
    saved = payload["request"]
    # What the answer filled in is left out, so that the default of today counts: `ttft_given` is False beside a
    # `ttft_ms` that nobody stated.
    filled_in = set()
    for name in names:
        without_unit = name.rpartition("_")[0]
        if saved.get(f"{without_unit}_given") is False:
            filled_in.add(name)
    stated = {key: value for key, value in saved.items() if value is not None and key not in filled_in}
    # who lifted a limit that is assumed otherwise, or was answered before any was, had none
    unlimited = ("ttft_ms", "tpot_ms") if kind == "inference" else ()
    stated |= {key: "none" for key in unlimited if key not in filled_in and saved.get(key) is None}
    # a request has the names of fields; a scenario takes those of arguments
    request = {names.get(key, key): value for key, value in stated.items() if key in names or key in names.values()}
    return {"name": kind.capitalize(), "as_of": payload["as_of"], PARTS[kind]: [{"name": kind.capitalize(), **request}]}
