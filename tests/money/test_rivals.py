"""Each option against its closest rival: whom it is, where the two cost the same, and how often it wins."""

import re

import pytest

import gpucost
from gpucost.answers.ownership import promised
from gpucost.errors import UsageError
from gpucost.render.tco import document
from gpucost.units import about
from tests.money.plans import catalog, compare

QUOTES = [
    {"name": "acme", "rent_usd_per_gpu_hour": 1.9, "rent_billing": "take_or_pay", "rent_term_months": 12.0},
    {"name": "bolt", "rent_usd_per_gpu_hour": 2.2},
    {"name": "long", "rent_usd_per_gpu_hour": 2.0, "rent_billing": "take_or_pay", "rent_term_months": 36.0},
    {"name": "half", "parts": [{"share": "50%", "rent_usd_per_gpu_hour": 2.1}, {"share": "50%"}]},
]  # fmt: skip


def rows(**changes):
    payload = compare(rent_options=changes.pop("rent_options", QUOTES), **changes)
    return {row["name"]: row for row in payload["options"]}


@pytest.fixture(scope="module")
def found():
    return rows(draws=400, tax_basis="after", lead_time_months=3.0, rent_usd_per_gpu_hour={"value": 2.35, "low": 1.5,
                                                                                           "high": 4.5})  # fmt: skip


def test_the_closest_rival_is_the_cheapest_of_the_others_and_not_the_dearest(found):
    for name, row in found.items():
        others = {other: one["npv_usd"] for other, one in found.items() if other != name}
        assert row["rival"]["name"] == min(others, key=others.__getitem__)
        assert row["rival"]["saving_usd"] == pytest.approx(min(others.values()) - row["npv_usd"])


@pytest.mark.parametrize("name", ["acme", "bolt", "long", "long_then_rent"])
def test_at_its_break_even_price_an_option_costs_what_its_rival_costs(found, name):
    quote = next(entry for entry in QUOTES if entry["name"] == name.removesuffix("_then_rent"))
    price, rival = found[name]["rival"]["breakeven_usd_per_gpu_hour"], found[name]["rival"]["name"]
    moved = rows(rent_options=[entry for entry in QUOTES if entry != quote]
                 + [{**quote, "rent_usd_per_gpu_hour": price}], tax_basis="after", lead_time_months=3.0)  # fmt: skip
    assert moved[name]["npv_usd"] == pytest.approx(found[rival]["npv_usd"], rel=1e-9)


@pytest.mark.parametrize("option", ["spot", "on_demand"])
def test_a_way_to_rent_stands_once_among_the_options(option):
    """Rent that is asked for as spot is the spot option: beside itself it would be a toss-up."""
    listed = gpucost.tco("h200-sxm", 64, provider="coreweave", option=option, draws=0, catalog=catalog()).payload
    bought = [row["option"] for row in listed["options"] if "option" in row]
    assert bought.count("spot") == 1
    assert [row["name"] for row in listed["options"] if row.get("option") == "spot"] == [
        "rent" if option == "spot" else "spot"
    ]


def test_at_its_break_even_price_the_rent_as_asked_costs_what_owning_costs():
    alone = rows(rent_options=[], lead_time_months=3.0)
    price = alone["rent"]["rival"]["breakeven_usd_per_gpu_hour"]
    moved = rows(rent_options=[], lead_time_months=3.0, rent_usd_per_gpu_hour=price)
    assert alone["own"]["rival"]["breakeven_usd_per_gpu_hour"] == price
    assert moved["rent"]["npv_usd"] == pytest.approx(moved["own"]["npv_usd"], rel=1e-9)


def test_at_its_break_even_use_a_commitment_costs_what_use_costs():
    quotes = [QUOTES[0]]
    pair = rows(rent_options=quotes, server_usd=2_000_000)
    share = pair["acme"]["rival"]["breakeven_utilisation_fraction"]
    assert share == pytest.approx(1.9 / 2.35, abs=0.15)  # but for support, and a price that falls by the term
    moved = rows(rent_options=quotes, server_usd=2_000_000, utilisation_fraction=share)
    assert moved["acme"]["npv_usd"] == pytest.approx(moved["rent"]["npv_usd"], rel=1e-9)


def test_an_option_wins_as_often_as_its_rival_loses_and_spreads_around_what_it_saves(found):
    best = min(found.values(), key=lambda row: row["npv_usd"])
    second = found[best["rival"]["name"]]
    assert second["rival"]["name"] == best["name"]
    assert best["rival"]["probability_wins_fraction"] + second["rival"]["probability_wins_fraction"] == pytest.approx(1)
    assert best["rival"]["saving_p10_usd"] == pytest.approx(-second["rival"]["saving_p90_usd"])
    for row in found.values():
        rival = row["rival"]
        assert rival["saving_p10_usd"] <= rival["saving_p50_usd"] <= rival["saving_p90_usd"]


def test_what_is_drawn_of_the_rent_as_asked_is_what_the_simulation_draws():
    payload = compare(draws=300, rent_usd_per_gpu_hour={"value": 2.35, "low": 1.5, "high": 4.5})
    row = next(row for row in payload["options"] if row["name"] == "own")
    assert row["rival"]["probability_wins_fraction"] == payload["probability_buy_wins_fraction"]
    assert row["rival"]["saving_p90_usd"] == pytest.approx(payload["monte_carlo"]["saving_p90_usd"])


@pytest.mark.parametrize(("changes", "first"), [
    ({"rent_options": [{"name": "deal", "rent_usd_per_gpu_hour": 0.5}]}, ("deal at $0.50 per GPU-hour", "rent")),
    ({"rent_options": [{"name": "dear", "rent_usd_per_gpu_hour": 99.0}], "rent_usd_per_gpu_hour": 9.0},
     ("Buying", "renting at $9.00 per GPU-hour")),
    ({"rent_options": [], "rent_usd_per_gpu_hour": 0.4}, ("Renting at $0.40 per GPU-hour", "buying")),
    ({"rent_options": [{"name": "near", "rent_usd_per_gpu_hour": 8.0}], "rent_usd_per_gpu_hour": 9.0},
     ("Buying", "near at $8.00 per GPU-hour")),
])  # fmt: skip
def test_the_first_words_say_the_cheapest_option_and_by_how_much_against_the_next(changes, first):
    payload = compare(**changes)
    best, other = sorted(payload["options"], key=lambda row: row["npv_usd"])[:2]
    saving = f"{about(other['npv_usd'] - best['npv_usd'])} less over "
    assert payload["lead"].startswith(f"{first[0]} is cheapest: {saving}")
    assert f" than {first[1]}" in payload["lead"]
    sides = {best["name"], other["name"]} == {"own", "rent"}
    assert sides or "Against renting, buying wins above" in payload["lead"]


def test_the_screen_shows_the_option_that_decides_and_what_it_saves():
    rent = {"value": 2.35, "low": 1.5, "high": 4.5}
    deal = [{"name": "deal", "rent_usd_per_gpu_hour": 0.5}]
    payload = compare(rent_options=deal, rent_usd_per_gpu_hour=rent, draws=50)
    worth = payload["npv_usd"]
    table, facts, _ = document(payload).screen
    costs = {row["side"]: row["cost"] for row in table.rows}
    assert costs == {side: about(worth[name]) for side, name in (("buy", "own"), ("deal", "deal"), ("rent", "rent"))}
    told = {fact.label: fact.value for fact in facts.items}
    assert told["Answer"] == payload["headline"]
    assert about(worth["rent"] - worth["deal"]) in told["Answer"]
    for option in ("--utilisation", "--set server_usd", "--wacc", "--financing"):
        assert option in told["Assumes"]
    (part,) = [part for part in document(payload).sections if part.title == "Where the money goes"]
    said = part.blocks[0]
    owning, renting = re.match(r"Owning pays \(USD today\): (.*?)\. Renting pays: (.*?)\.(?: |$)", said.text).groups()
    for line in ("servers", "people", "storage", "power", "cooling and losses (PUE 1.3)"):
        assert re.search(rf"{re.escape(line)}[^%]* [\d,]+ \(-?\d+%\)", owning), line
    for line in ("GPU-hours", "people", "storage"):
        assert re.search(rf"{re.escape(line)}[^%]* [\d,]+ \(-?\d+%\)", renting), line
    best = next(row for row in payload["options"] if row["name"] == "deal")
    assert payload["confidence"]["wins_of_ten"] == round(10 * best["rival"]["probability_wins_fraction"])


def test_spot_and_the_purchase_in_cash_are_no_decision():
    cheap = [{"name": "spot", "npv_usd": 1.0, "option": "spot"}, {"name": "own_in_cash", "npv_usd": 2.0},
             {"name": "rent", "npv_usd": 3.0}, {"name": "own", "npv_usd": 4.0}]  # fmt: skip
    assert [row["name"] for row in promised(cheap)] == ["rent", "own"]


def test_spot_that_costs_less_than_the_decision_is_said_with_its_risk():
    found = gpucost.tco("l4", 64, catalog=catalog(), draws=0).payload
    best, spot = promised(found["options"])[0], found["options"][-1]
    named = f"{spot['name'].capitalize()} from {spot['seller']}"
    said = f"{named} at ${spot['usd_per_gpu_hour']:.2f} per GPU-hour would cost "
    assert found["lead"].endswith(f"{said}{about(best['npv_usd'] - spot['npv_usd'])} less, but is interruptible.")


def test_no_lead_says_that_something_costs_nothing_less():
    found = gpucost.tco("h100-sxm", 8, rent=["2", "a=2/h"], draws=0, catalog=catalog()).payload
    assert found["lead"].startswith("Toss-up: ")
    found = gpucost.tco("l4", 64, rent=["a=0.1/h", "b=0.2/h"], draws=0, catalog=catalog()).payload["options"]
    at = {row["name"]: row["npv_usd"] for row in found}
    same = 0.1 + 0.1 * (found[-1]["npv_usd"] - at["a"]) / (at["b"] - at["a"])  # of the spot price at the end
    lead = gpucost.tco("l4", 64, rent=f"a={same + 1e-9}/h", draws=0, catalog=catalog()).payload["lead"]
    assert lead.startswith("a at")
    assert "would cost" not in lead


def test_the_option_and_not_the_name_decides_whether_capacity_is_promised():
    quote = {"name": "spotless 1y", "rent_usd_per_gpu_hour": 0.2, "rent_billing": "take_or_pay",
             "rent_term_months": 12.0}  # fmt: skip
    payload = compare(rent_options=[quote])
    assert payload["lead"].startswith("spotless 1y at $0.20 per GPU-hour is cheapest")
    assert "taken away" not in payload["lead"]
    assert payload["options"][0]["name"] == "spotless 1y"  # sorted among what is promised


@pytest.mark.parametrize("name", ["own", "own_in_cash", "rent", "api"])
def test_a_quote_takes_no_name_that_an_option_of_every_comparison_has(name):
    with pytest.raises(UsageError, match=f"cannot be called '{name}'"):
        compare(rent_options=[{"name": name, "rent_usd_per_gpu_hour": 2.0}])


@pytest.mark.slow
def test_owning_stands_beside_spot_where_no_rent_is_promised(tmp_path):
    result = gpucost.tco("h200-sxm", 64, provider="coreweave", option="spot", draws=0, as_of="2026-11-20")
    assert [row["name"] for row in promised(result.options)] == ["own"]
    assert "interruptible" in result.headline
    above = result.to_dict()["breakeven"]["utilisation_fraction"]
    assert f"wins above {above:.0%} utilisation" in " ".join(result.to_text(details=True).split())
    result.to_html(str(tmp_path / "plan.html"))
    result.to_excel(str(tmp_path / "plan.xlsx"))
