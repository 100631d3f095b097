"""Whether a question has the same answer on every way.

Asked by a sweep, a command, a scenario or a tool, of one offer alone, or run again, it has the figures of the library.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from random import Random
from typing import Any

from benchmarks.fuzz.cases import Case, InternalError
from benchmarks.fuzz.effects import Given, answer_of
from benchmarks.fuzz.meaning import flat
from benchmarks.fuzz.rounds import ALWAYS, AT_TIMES, PARTS

DAYS = [None, None, "2026-11-20", "2026-06-15", "2025-03-01"]
TOOL_DIGITS, DIGITS = 1e-3, 1e-9
Pairs = Iterator[tuple[Mapping[str, Any], Mapping[str, Any]]]
_OF_OFFERS = ("rank", "value", "reason", "asked_gpus", "also_in")
_OWN_SPEED = ("mfu", "tokens_per_s_per_gpu", "step_time")


def routes(random: Random) -> Case:
    """A question, and another way to ask the same."""
    name = random.choice(list(PARTS))
    given = {key: random.choice(values) for key, values in ALWAYS[name].items()}
    given |= {key: random.choice(values) for key, values in AT_TIMES[name].items() if random.random() < 0.12}
    if day := random.choice(DAYS):
        given["as_of"] = day
    return Case([name, random.choice([*ROUTES])], face="route", given=given)


def route(asked: Case) -> None:
    """Ask the library, then the other way; figures of one name that differ are an internal error."""
    (name, way), given = asked.arguments, asked.given
    answer = answer_of(name, given)
    for said, told in ROUTES[way](name, given, answer):
        for key in said.keys() & told.keys():
            if said[key] != told[key] and not _near(said[key], told[key], TOOL_DIGITS if way == "tool" else DIGITS):
                raise InternalError(f"{name} by {way}: {key} is {told[key]!r}, not {said[key]!r}, of {given}")


def _near(one: Any, other: Any, share: float) -> bool:
    numbers = isinstance(one, (int, float)) and isinstance(other, (int, float))
    return numbers and abs(one - other) <= share * max(abs(one), abs(other))


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in row.items() if not isinstance(value, (dict, list)) and key not in _OF_OFFERS}


def _by_sweep(name: str, given: Given, answer: Mapping[str, Any]) -> Pairs:
    import gpucost

    given = {key: value for key, value in given.items() if key not in ("top", "draws", "optimize")}
    found = answer_of(name, {**given, **({"draws": 0} if name == "tco" else {})})
    (row,) = gpucost.sweep(name, **given).to_dict()["rows"]
    best = found["options"][0] if name != "tco" and found["options"] else {}
    if name == "tco":
        best = {"npv_own_usd": found["npv_usd"]["own"], "npv_rent_usd": found["npv_usd"]["rent"]}
    yield _plain(best), {key: value for key, value in row.items() if key not in given and key not in _OF_OFFERS}


def _by_command(name: str, given: Given, answer: Mapping[str, Any]) -> Pairs:
    from click.testing import CliRunner

    from gpucost.arguments import flag_of
    from gpucost.cli import cli

    words = [f"{flag_of(key)}={value}" if value is not True else flag_of(key) for key, value in given.items()]
    done = CliRunner().invoke(cli, [name, *words, "--format", "json"])
    if done.exit_code not in (0, 3):
        raise InternalError(f"{name} {words} is refused: {done.output[-300:]}")
    yield _rounded(answer), dict(flat(json.loads(done.stdout)))


def _rounded(answer: Mapping[str, Any]) -> dict[str, Any]:
    from gpucost.render.json import dumps

    return dict(flat(json.loads(dumps(answer))))


def _by_scenario(name: str, given: Given, answer: Mapping[str, Any]) -> Pairs:
    import gpucost

    given = dict(given)
    plan = {key: given.pop(key) for key in ("as_of",) if key in given}
    report = gpucost.report({"name": "One", **plan, PARTS[name]: [{"name": "Part", **given}]}).to_dict()
    keys = ("options", "npv_usd", "lines", "breakeven", "scaling")
    whole = report["parts"][0]["payload"]
    said, told = (dict(pair for key in keys for pair in flat(part.get(key), key)) for part in (answer, whole))
    yield said, told


def _by_tool(name: str, given: Given, answer: Mapping[str, Any]) -> Pairs:
    from gpucost.agents.server import answered

    text, failed = answered(name, json.loads(json.dumps(given)))
    if failed:
        raise InternalError(f"the tool {name} refuses {given}: {text[:300]}")
    rows = json.loads(text).get("options", [])
    if isinstance(rows, list) and rows and isinstance(rows[0], dict):
        yield _plain(answer["options"][0]), rows[0]


def _by_filter(name: str, given: Given, answer: Mapping[str, Any]) -> Pairs:
    """Ask for the best offer's own provider and size alone: it has the figures that it had among all."""
    best = next(iter(answer["options"]), None)
    if name == "tco" or best is None:
        return
    narrow = {"gpu": best["gpu"], "option": best["option"], **({"provider": best["provider"]} if name != "tco" else {})}
    found = answer_of(name, given | narrow | ({"gpus": best["gpus"]} if name == "estimate" else {}) | {"top": 0})
    offers = {row["offer_id"]: row for row in found["options"] if row["gpus"] == best["gpus"]}
    if best["offer_id"] not in offers:
        raise InternalError(f"{name}: {best['offer_id']} is gone once it is asked for alone: {given} with {narrow}")
    yield _plain(best), _plain(offers[best["offer_id"]])


def _by_speed(name: str, given: Given, answer: Mapping[str, Any]) -> Pairs:
    """Time the layout that an estimate chose, where it needs no network that an offer has of its own."""
    from gpucost.catalog import open_catalog

    best = next((row for row in answer.get("options", ()) if row.get("nodes") == 1), None)
    if name != "estimate" or best is None or any(key in given for key in _OWN_SPEED):
        return
    if best["gpus"] > open_catalog().default_system(best["gpu"]).gpus:
        return  # in a node of its own
    kept = ("sequence", "method", "precision", "software", "software_year", "offload", "document_tokens", "as_of")
    layout = {key: value for key, value in best["layout"].items() if key != "gpus"}
    layout |= {key: given[key] for key in kept if key in given}
    found = answer_of("throughput", {"model": given["model"], "gpu": best["gpu"], "gpus": best["gpus"], **layout})
    yield {"tokens_per_s_per_gpu": best["tokens_per_s_per_gpu"]}, found


def _by_rerun(name: str, given: Given, answer: Mapping[str, Any]) -> Pairs:
    """Run a saved estimate again: every figure is the saved one."""
    if name == "estimate":
        import gpucost
        from gpucost.ask.estimate import rerun
        from gpucost.catalog import open_catalog
        from gpucost.catalog.calibrations import training_calibration
        from gpucost.render.json import dumps

        saved = json.loads(dumps(gpucost.estimate(**given).to_dict()))
        yield dict(flat(saved)), dict(flat(json.loads(dumps(rerun(saved, training_calibration(open_catalog()))))))


ROUTES: dict[str, Callable[[str, Given, Mapping[str, Any]], Pairs]] = {
    "sweep": _by_sweep, "command": _by_command, "scenario": _by_scenario, "tool": _by_tool, "filter": _by_filter,
    "speed": _by_speed, "rerun": _by_rerun,
}  # fmt: skip
