"""Saved answers are a stranger's files: what cannot be is refused, and what was changed is not called reproduced."""

import json

import pytest

import gpucost
from gpucost.answers.read import read_answer, read_estimate
from gpucost.ask.estimate import rerun
from gpucost.ask.result import Result
from gpucost.bridges.saved import read_saved
from gpucost.errors import UsageError
from gpucost.render.excel import write_workbook
from gpucost.render.json import dumps
from gpucost.training.rerun import verdict
from tests.render.answers import QUESTIONS
from tests.training.market import CALIBRATION, answer, offer


@pytest.fixture
def saved(round_speeds):
    return json.loads(dumps(answer([offer(2.0), offer(1.1, "slow")])))


def written(tmp_path, payload):
    path = tmp_path / "saved.json"
    path.write_text(json.dumps(payload))
    return path


def change_prices(payload, factor):
    """Multiply every price in the facts, consistently, as a forger would."""
    names = payload["facts"]["offers"][0].split(",")
    places = [names.index(name) for name in ("usd_per_hour", "usd_per_gpu_hour")]
    lines = [line.split(",") for line in payload["facts"]["offers"][1:]]
    for cells in lines:
        for place in places:
            cells[place] = str(float(cells[place]) * factor)
    payload["facts"]["offers"][1:] = [",".join(cells) for cells in lines]


def test_an_untouched_answer_is_reproduced(tmp_path, saved):
    read = read_estimate(written(tmp_path, saved))
    assert verdict(read, json.loads(dumps(rerun(read, CALIBRATION))))["equal"]


def test_negative_prices_in_the_facts_are_refused(tmp_path, saved):
    change_prices(saved, -1)
    read = read_estimate(written(tmp_path, saved))
    with pytest.raises(UsageError, match=r"usd_per_hour = -\d.*the file was changed"):
        rerun(read, CALIBRATION)


@pytest.mark.parametrize("value", [-2.0, -1e9])
def test_a_negative_price_in_an_option_is_refused(tmp_path, saved, value):
    saved["options"][0]["usd_per_gpu_hour"] = value
    with pytest.raises(UsageError, match=r"usd_per_gpu_hour .* cannot be negative"):
        read_answer(written(tmp_path, saved))


@pytest.mark.parametrize(
    ("key", "value"), [("as_of", "2024-01-01"), ("catalog_version", "2024-01-01+0123456789ab"), ("prices", 0.5)]
)
def test_a_forged_day_version_or_price_is_not_reproduced(tmp_path, saved, key, value):
    """Also where every figure was recomputed to agree with the forged facts."""
    if key == "prices":
        change_prices(saved, value)
    else:
        saved[key] = value
    seal = saved["facts"]["seal"]
    forged = json.loads(dumps(rerun(read_estimate(written(tmp_path, saved)), CALIBRATION)))
    forged["facts"]["seal"] = seal
    read = read_estimate(written(tmp_path, forged))
    found = verdict(read, json.loads(dumps(rerun(read, CALIBRATION))))
    assert not found["equal"]
    assert "changed by hand" in found["lead"]


@pytest.mark.parametrize("version", ["3", "99", "", None, 2, "x" * 9999])
def test_a_schema_version_that_is_not_known_is_refused(tmp_path, saved, version):
    saved["schema_version"] = version
    with pytest.raises(UsageError, match="schema version") as error:
        read_answer(written(tmp_path, saved))
    assert len(str(error.value)) < 400
    assert ("has no schema version" in str(error.value)) == (version is None)


@pytest.mark.parametrize("day", ["soon", "2026-13-01", "9" * 9999])
def test_a_day_that_is_none_is_refused(tmp_path, saved, day):
    saved["as_of"] = day
    with pytest.raises(UsageError, match="no day"):
        read_answer(written(tmp_path, saved))


def changed(payload, place, value):
    """Put a value at a place such as options.0.factors.gpus; a text multiplies what stands there."""
    *way, last = (int(word) if word.isdigit() else word for word in place.split("."))
    record = payload
    for word in way:
        record = record[word]
    record[last] = record[last] * float(value) if isinstance(value, str) else value


@pytest.mark.parametrize(
    ("kind", "place", "value"),
    [
        ("estimate", "options.0.factors.gpus", 4000),
        ("estimate", "options.0.factors.usd_per_gpu_hour", "1000"),
        ("estimate", "options.0.factors.tokens", "1000"),
        ("estimate", "options.0.factors.dataset_gb", "1000"),
        ("estimate", "options.0.mfu_fraction", 519.0),
        ("estimate", "options.0.mfu_fraction", -0.5),
        ("estimate", "options.0.goodput_fraction", 998.0),
        ("estimate", "options.0.days_low", -3.0),
        ("estimate", "options.0.kgco2e", -3.0),
        ("estimate", "options.0.energy_kwh", -3.0),
        ("estimate", "options.0.memory_gb", -3.0),
        ("estimate", "options.0.term_months", -12),
        ("estimate", "options.0.layout.tensor", -1),
        ("estimate", "options.0.lines.0.quantity", -5.0),
        ("estimate", "options.0.lines.0.unit_price_usd", "10"),
        ("inference", "options.0.lines.0.cost_usd", "1000"),
        ("inference", "options.0.factors.gpu_hours", "10"),
        ("inference", "options.0.ttft_ms", -3.0),
        ("tco", "npv_usd.own", "10"),
        ("tco", "npv_usd.saving", "10"),
        ("tco", "options.0.npv_usd", "10"),
        ("mix", "cost_usd", "1000"),
        ("mix", "best_pure_usd", "1000"),
    ],
)
def test_an_answer_that_contradicts_itself_is_refused(tmp_path, kind, place, value):
    payload = json.loads(dumps(QUESTIONS[kind]()))
    whole = written(tmp_path, payload)
    assert read_saved(whole)["kind"] == kind
    changed(payload, place, value)
    with pytest.raises(UsageError, match="the file was changed"):
        gpucost.report(str(written(tmp_path, payload)))


def figures(part, way=()):
    """Yield the way to each number of a part of an answer."""
    if isinstance(part, (dict, list)):
        for key, value in part.items() if isinstance(part, dict) else enumerate(part):
            yield from figures(value, (*way, key))
    elif isinstance(part, (int, float)) and not isinstance(part, bool):
        yield way


@pytest.mark.parametrize("kind", QUESTIONS)
def test_what_was_changed_after_it_was_saved_is_refused(tmp_path, kind):
    """Any figure of any kind of answer: where no rule knows it wrong, the seal does."""
    (tmp_path / "saved.json").write_text(Result(QUESTIONS[kind]()).to_json(), "utf-8")
    untouched = json.loads((tmp_path / "saved.json").read_text("utf-8"))
    assert read_saved(written(tmp_path, dict(reversed(untouched.items())))) == read_saved(tmp_path / "saved.json")
    for *way, last in list(figures({**untouched, "request": None}))[::97]:
        payload = json.loads(json.dumps(untouched))
        record = payload
        for key in way:
            record = record[key]
        record[last] = 2 * record[last] + 1
        with pytest.raises(UsageError):
            read_saved(written(tmp_path, payload))
    payload = untouched | {"lead": "It costs nothing."}
    with pytest.raises(UsageError, match="its seal is that of other content"):
        read_saved(written(tmp_path, payload))
    del payload["seal"]
    assert read_saved(written(tmp_path, payload))["lead"] == "It costs nothing."


def test_the_lines_of_a_month_of_serving_add_up(tmp_path):
    payload = json.loads(dumps(QUESTIONS["inference"]()))
    payload["options"][0]["lines"].pop(0)
    with pytest.raises(UsageError, match="usd_per_month"):
        read_saved(written(tmp_path, payload))


@pytest.mark.parametrize(
    ("model", "more"),
    [("8b", {"gpu": "h100-sxm", "gpus": 8, "method": "lora", "tokens_per_s_per_gpu": 20_000}),
     ("0.5b", {"option": "spot", "experiments": "300%"}),
     ("8b", {"option": "reserved", "gpus": 64, "commitment": "full"})],
)  # fmt: skip
def test_what_the_tool_saves_it_reads(tmp_path, model, more):
    made = gpucost.estimate(model=model, tokens="20m", top=50, as_of="2026-11-20", **more)
    path = tmp_path / "made.json"
    path.write_text(made.to_json(), encoding="utf-8")
    assert len(read_saved(path)["options"]) == len(made.payload["options"])


def test_the_checks_of_a_workbook_are_stored_as_they_are(tmp_path):
    """A reader that does not calculate shows what was stored."""
    import openpyxl

    payload = json.loads(dumps(QUESTIONS["estimate"]()))
    stored = []
    for factor in ("1", "2"):
        changed(payload, "options.0.cost_usd", factor)
        write_workbook(payload, str(tmp_path / "made.xlsx"))
        book = openpyxl.load_workbook(tmp_path / "made.xlsx", data_only=True)
        verdicts = {row[0]: row[1] for sheet in ("Cover", "Checks") for row in book[sheet].values}
        stored.append((verdicts["Master check"], [name for name, said in verdicts.items() if said == "LOOK"]))
    (fine, none), (faulty, found) = stored
    assert (fine, none, faulty) == ("OK", [], "LOOK BELOW")
    assert [name.rpartition(": ")[2] for name in found] == ["cost_usd agrees with gpucost"]


def test_a_comparison_of_reports_has_a_line_for_each_part(tmp_path):
    part = {"name": "run", "part": "training", "payload": json.loads(dumps(QUESTIONS["estimate"]()))}
    whole = {**part["payload"], "kind": "scenario", "lead": "", "name": "all", "description": "", "parts": [part]}
    path = str(written(tmp_path, {name: value for name, value in whole.items() if name != "headline"}))
    assert gpucost.compare(path, path).headline == "run: Nothing that affects the training run differs."
