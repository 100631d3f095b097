"""Purchase options: every field of the table has an effect, and a new row works everywhere at once."""

import ast
from datetime import date
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from msgspec.structs import replace

import gpucost
from gpucost.catalog.loader import Store, shipped_root
from gpucost.catalog.price_checks import Reference, check_prices, load_prices
from gpucost.catalog.price_rows import billing_sql
from gpucost.catalog.prices import by_column
from gpucost.errors import NothingFitsError
from gpucost.invoices import rows as invoices
from gpucost.market.facts import make_market
from gpucost.market.hires import Rentable
from gpucost.options import OPTIONS, OptionRule, age_limit_days, is_plain
from gpucost.ownership import mix, offers
from gpucost.physics.training.cases import PARTS
from gpucost.schemas import TABLES
from gpucost.training.run import PART_NOTES
from tests.training.market import BUCKET, TODAY, answer, facts, offer

pytestmark = pytest.mark.usefixtures("round_speeds")

BURST = OptionRule(
    "burst",
    "preemptible",
    kind="interruptible",
    reference="given for a day, then taken",
    longest_hours=24,
    age_limit_days=7,
    interruptible=True,
)


def renter():
    catalog = gpucost.open_catalog()
    return offers.Renter(catalog, catalog.accelerator("h100-sxm"), 64, 8, TODAY)


def first(**more):
    wanted = {name: more.pop(name) for name in ("tokens", "deadline") if name in more}
    return answer([offer(2.0, **more)], **wanted)["options"][0]


def line(found, name):
    return next((row["quantity"] for row in found["lines"] if row["name"] == name), 0.0)


def reasons(**more):
    """Return why an offer that cannot be had for so long is left out; another offer is the answer."""
    found = answer([offer(2.0, **more), offer(9.0, provider="other")], gpus=8)
    return [row["reason"] for row in found["offers"] if row["standing"] == "left out"]


def odd(rows):
    """Return what is found wrong with prices, by the order in which they stand."""
    blank = dict.fromkeys(TABLES["offers"].names) | {"gpus": 1, "gpu": "x", "observed_on": TODAY, "term_months": 0}
    store = Store(shipped_root())
    prices = load_prices(store, "prices", [(number, {**blank, **row}) for number, row in enumerate(rows, 2)])
    return list(check_prices(store, prices, prices, Reference({}, {"x": {}}, {}, TODAY)))


def needs_a_term():
    stated = {"usd_per_hour": 2.0, "usd_per_gpu_hour": 2.0, "gpus": 1, "gpu": "x", "option": "on_demand"}
    row = {**stated, "term_months": 0, "observed_on": TODAY}
    return [finding.column for finding in odd([row])]


def billing():
    query = f"SELECT {billing_sql()} AS billing FROM (SELECT 'on_demand' AS option, 0 AS term_months)"
    return Store(shipped_root()).fetch(query)


def by_option():
    row = {"option": "on_demand", "term_months": 0, "rankable": True, "gpu": "x", "region": None, "source_id": "s"}
    return by_column([{**row, "usd_per_gpu_hour": 2.0, "observed_on": TODAY}], "option")


def expiry():
    """The SQL of prices is written where its module is loaded."""
    spec = find_spec("gpucost.catalog.asof")
    fresh = module_from_spec(spec)
    spec.loader.exec_module(fresh)
    return fresh.prices_macro(booked=False)


def terms(**more):
    return make_market(facts([offer(2.0, **more)])).terms


# field -> another value of it, and what a user meets that must change with it
EFFECTS = {
    "label": ("rented by the hour", lambda: answer([offer(2.0, provider="other")])["lead"]),
    "family": ("committed", needs_a_term),
    "kind": ("interruptible", by_option),
    "reference": (
        "a new sentence",
        lambda: [*reasons(option="calendar"), *first(option="flex_start", gpus=32)["notes"]],
    ),
    "minimum_hours": (1000.0, lambda: first(tokens="1b")["cost_usd"]),
    "increment_hours": (100.0, lambda: line(first(tokens="1b"), "idle and ramp")),
    "longest_hours": (24.0, lambda: first()["gpus"]),
    "age_limit_days": (3, lambda: first(observed_on=date(2026, 5, 20), age_days=12)["notes"]),
    "expires_days": (700, expiry),
    "interruptible": (True, lambda: first()["interruptions"]),
    "take_or_pay": (True, billing),
    "by_spend": (
        True,
        lambda: invoices._commitment({"option": "on_demand", "offer_id": "x", "instance_type": "x"}, None)[
            "CommitmentDiscountCategory"
        ],
    ),
    "prepaid": (
        True,
        lambda: first(billing="take_or_pay", term_months=12, payment="no_upfront")["cash_usd"],
    ),
}


@pytest.mark.parametrize("field", OptionRule.__struct_fields__)
def test_every_field_has_an_effect(field, monkeypatch):
    changed, observe = EFFECTS[field]
    before = observe()
    for name in ("on_demand", "flex_start", "calendar") if field == "reference" else ("on_demand",):
        monkeypatch.setitem(OPTIONS, name, replace(OPTIONS[name], **{field: changed}))
    assert observe() != before


@pytest.fixture
def burst(monkeypatch):
    assert TABLES["offers"].column("option")  # kept once read, without what is put in here
    monkeypatch.setitem(OPTIONS, "burst", BURST)


@pytest.mark.usefixtures("burst")
def test_a_new_option_is_never_uninterrupted_for_longer_than_it_lasts():
    found = answer([offer(1.0, option="burst"), offer(2.0, provider="other")])
    assert [row["option"] for row in found["options"]] == ["burst", "on_demand"]
    row = found["options"][0]
    assert row["days"] > 14
    # each node is lost once a day at least, and every loss costs work and a wait
    assert row["interruptions"] >= row["gpus"] / 8 * row["gpu_hours"] / row["gpus"] / 24
    assert row["stretch_paid_ratio"] > 1
    assert row["days"] > found["options"][1]["days"]


@pytest.mark.usefixtures("burst")
def test_a_new_option_works_in_every_room():
    listed = offer(1.0, option="burst")
    assert renter().choice(Rentable(listed, 1.0, 0.9, 1.1, 1.0, 1.1, 1.0, "")).stretch_ratio > 1
    plan = SimpleNamespace(special={"supply": [{"kind": "burst", "usd_per_gpu_hour": 1.0}]})
    assert mix.read_entries(plan)[0].kind == "burst"
    assert age_limit_days("burst") == 7
    assert not is_plain("burst")
    assert terms(option="burst", age_days=8).stale.all()
    rows = [{"option": "on_demand", "usd_per_gpu_hour": 2.0}, {"option": "burst", "usd_per_gpu_hour": 3.0}]
    assert [found.row for found in odd(rows)] == [3]


def decided_by_name(path):
    """Yield the lines of a module that compare with options by name, or list several of them."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        parts = [node.left, *node.comparators] if isinstance(node, ast.Compare) else getattr(node, "elts", [])
        named = [part.value for part in parts if isinstance(part, ast.Constant) and part.value in OPTIONS]
        if len(named) >= (1 if isinstance(node, ast.Compare) else 2):
            yield f"{path.name}:{node.lineno} {named}"


def test_no_other_module_decides_by_the_name_of_an_option():
    package = Path(gpucost.__file__).parent
    foreign = package / "refresh"  # reads the words of its sources into ours
    modules = [path for path in package.rglob("*.py") if path != package / "options.py" and foreign not in path.parents]
    assert [line for path in modules for line in decided_by_name(path)] == []


def test_the_schema_lists_the_options_of_the_table():
    assert TABLES["offers"].column("option").choices == tuple(OPTIONS)


def test_community_is_interruptible_everywhere():
    listed = offer(1.0, option="community", provider="pods")
    found = answer([listed, offer(2.0, provider="other")])
    assert [row["option"] for row in found["options"]] == ["community", "on_demand"]
    assert any("not measured" in note for note in found["options"][0]["notes"])
    assert any("third parties" in note for note in found["options"][0]["notes"])
    assert not any(row["saving_usd"] for row in found["alternatives"] if row["option"] == "on_demand")
    assert renter().choice(Rentable(listed, 1.0, 0.9, 1.1, 1.0, 1.1, 1.0, "")).stretch_ratio > 1


def test_what_may_not_be_interrupted_must_end_within_its_longest_purchase():
    # 100B tokens at 10,000 a second and accelerator: 17 days on 8, with overhead; 7 days are sold.
    found = answer([offer(2.0, option="flex_start"), offer(3.0, provider="other")])
    rows = {row["option"]: row for row in found["options"]}
    assert rows["flex_start"]["gpus"] > rows["on_demand"]["gpus"]
    assert rows["flex_start"]["days"] <= 7
    pinned = answer([offer(2.0, option="flex_start"), offer(3.0, provider="other")], gpus=8)
    assert [row["option"] for row in pinned["options"]] == ["on_demand"]
    assert "the longest purchase as flex start is 7 days" in pinned["offers"][-1]["reason"]


def test_a_contract_never_grows_old_in_a_market():
    old = {"observed_on": date(2025, 7, 11), "age_days": 325, "book": "user", "price_kind": "contracted"}
    found = answer([offer(2.0, **old), offer(3.0, provider="other")], strict_prices=True, max_age="90d")
    assert [row["usd_per_gpu_hour"] for row in found["options"]] == [2.0, 3.0]
    listed = answer([offer(2.0, **{**old, "price_kind": "list"}), offer(3.0, provider="other")], strict_prices=True)
    assert [row["usd_per_gpu_hour"] for row in listed["options"]] == [3.0]


def test_measured_interruptions_and_the_end_of_a_purchase_add_up(monkeypatch):
    plain = make_market(facts([offer(1.0, option="spot")], spot=[BUCKET])).terms
    monkeypatch.setitem(OPTIONS, "spot", replace(OPTIONS["spot"], longest_hours=24.0))
    short = make_market(facts([offer(1.0, option="spot")], spot=[BUCKET])).terms
    added = short.preemptions_per_node_hour - plain.preemptions_per_node_hour
    assert np.allclose(added, 1 / 24)


def test_a_service_is_not_carried_by_an_option_that_ends():
    wanted = {"as_of": "2026-11-01", "top": 0}
    found = gpucost.inference("8b", **wanted).payload
    assert "flex_start" not in {row["option"] for row in found["options"]}
    left_out = next(row["reason"] for row in found["offers"] if row["option"] == "flex_start")
    assert "a service does not end; the longest purchase as flex start is 7 days" in left_out
    with pytest.raises(NothingFitsError, match="service"):
        gpucost.inference("8b", option="flex_start", **wanted)


def test_every_part_of_a_step_has_words_for_a_reader_of_the_bill():
    phases = {"writing answers_s", "scoring answers_s", "handing weights over_s"}  # where a model trains on its answers
    assert {f"{name}_s" for name in PART_NOTES} == {*PARTS, "loading_s", *phases}
