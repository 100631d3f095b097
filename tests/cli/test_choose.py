"""`gpucost choose`: which GPU for a workload and a budget, and several workloads over one pool."""

import pytest

import gpucost
from gpucost.answers.saved import checked
from gpucost.errors import NothingFitsError, UsageError
from gpucost.library.choose import assign, by_budget, pool_of
from gpucost.market.facts import market_of
from gpucost.market.terms import LISTED_DAYS


@pytest.fixture(scope="module")
def catalog():
    return gpucost.open_catalog()


def owned(workload, gpu, gpus, days=None):
    return {"workload": workload, "gpu": gpu, "gpus": gpus, "provider": "own", "cost_usd": 0.0, "days": days}


def candidate(workload, gpu, gpus, rent, buy=None):
    said = {"purpose": "serving", "provider": "p", "option": "on_demand"}
    return {"workload": workload, "gpu": gpu, "gpus": gpus, "rent_usd": rent, "buy_usd": buy, **said}


def is_one_screen(result, monkeypatch):
    """Tell whether an answer leaves a line for the prompt at 24 lines of 80, and names itself first."""
    monkeypatch.setenv("COLUMNS", "80")
    shown = result.to_text().splitlines()
    figures = [line for line in shown if "$" in line]
    return shown[0].startswith("Choose ") and len(shown) < 24 and max(map(len, shown)) <= 80 and len(figures) > 3


def test_the_price_of_a_run_is_the_one_that_estimate_finds(catalog, monkeypatch):
    chosen = gpucost.choose("8b", purpose="training", tokens="10b", catalog=catalog)
    assert is_one_screen(chosen, monkeypatch)
    cheapest = gpucost.estimate("8b", "10b", catalog=catalog, with_facts=False).best
    assert (chosen.best["gpu"], chosen.best["rent_usd"]) == (cheapest["gpu"], pytest.approx(cheapest["cost_usd"]))


def test_a_month_of_a_run_is_as_long_as_everywhere(catalog):
    """Renting for 730 hours at the run's rate, as often as `breakeven_months` says, costs what buying does."""
    row = next(row for row in gpucost.choose("8b", tokens="10b", catalog=catalog).payload["rows"] if row["buy_usd"])
    usd_per_month = row["rent_usd"] / (row["days"] * 24) * 730
    assert row["breakeven_months"] * usd_per_month == pytest.approx(row["buy_usd"])


@pytest.mark.parametrize(
    ("purpose", "asked"),
    [
        ("desk", {"provider": "vast"}),
        ("desk", {"gpu": "rtx-4090", "option": "interruptible"}),
        ("research", {"gpu": "h100", "provider": "aws", "region": "us"}),
    ],
)
def test_a_desk_and_research_are_offered_what_was_asked_for(catalog, purpose, asked):
    rows = gpucost.choose("8b", purpose=purpose, catalog=catalog, **asked).payload["rows"]
    market, wanted, prices = market_of(catalog), {offer.offer_id for offer in catalog.offers(**asked)}, {}
    for offer, expected in zip(market.facts.offers, market.terms.usd_per_gpu_hour, strict=True):
        if offer.offer_id in wanted:
            prices.setdefault((offer.gpu, offer.provider, offer.option), set()).add(expected * 176 * 12)
    rented = [row for row in rows if row["rent_usd"] is not None]
    assert all(purpose == "desk" and row["buy_usd"] for row in rows if row not in rented)  # what one can buy stays
    for row in rented:
        known = prices[row["gpu"], row["provider"], row["option"]]
        assert any(row["rent_usd"] == pytest.approx(row["gpus"] * price) for price in known)


def test_a_desk_that_nobody_offers_says_what_was_asked_for(catalog):
    with pytest.raises(NothingFitsError, match='gpu="h100-sxm", provider="aws"'):
        gpucost.choose("8b", purpose="desk", gpu="h100-sxm", provider="aws", catalog=catalog)
    bought = gpucost.choose("8b", purpose="desk", gpu="rtx-4080", catalog=catalog)  # nobody rents it out
    assert (bought.best["rent_usd"], bought.best["option"]) == (None, None)
    checked(bought.to_dict(), "a saved answer of it")


def test_workloads_stand_on_what_stays_where_anything_does():
    """What a budget reaches may stand first: the order of the question holds all the same."""
    rows = [candidate("w", "goes", 1, 10) | {"rank": 2}, candidate("w", "stays", 1, 20) | {"rank": 1}]
    assert [way["gpu"] for way in assign({"w": rows}, {}, {})] == ["stays"]
    assert [way["gpu"] for way in assign({"w": rows[:1]}, {}, {})] == ["goes"]


def test_at_a_desk_stand_few_cards_that_one_can_buy(catalog, monkeypatch):
    chosen = gpucost.choose("8b", purpose="desk", budget="2k", catalog=catalog)
    assert is_one_screen(chosen, monkeypatch)
    rows = chosen.payload["rows"]
    assert {row["card"] for row in rows} <= {"consumer", "workstation", "computer"}
    assert all(row["gpus"] <= 2 and row["buy_usd"] for row in rows)
    assert {row["warranty"] for row in rows} <= {"3 y", "1 y"}
    assert "buy" in next(row for row in rows if row["gpu"] == "rtx-3090")["within"]


@pytest.mark.parametrize("budget", ["2k", "50k", "1m"])
def test_what_a_budget_reaches_comes_first(catalog, budget):
    rows = gpucost.choose("70b", purpose="fine-tuning", budget=budget, catalog=catalog).payload["rows"]
    reached = [row["within"] != "neither" for row in rows]
    assert reached == sorted(reached, reverse=True)


def test_a_budget_reaches_renting_buying_both_or_neither():
    rows = [candidate("w", name, 1, *costs) for name, costs in
            {"both": (5, 10), "rent": (5, 50), "buy": (None, 10), "neither": (50, 50)}.items()]  # fmt: skip
    assert {row["gpu"]: row["within"] for row in by_budget(rows, 10)} == {
        "both": "rent or buy", "rent": "rent", "buy": "buy", "neither": "neither",
    }  # fmt: skip


def test_owned_accelerators_go_where_they_save_most():
    """Either workload fits the one owned card; renting costs 100 for the first and 30 for the second."""
    found = {"a": [candidate("a", "card", 1, 100)], "b": [candidate("b", "card", 1, 30)]}
    ways = {name: [owned(name, "card", 1)] for name in found}
    given = {row["workload"]: (row["provider"], row["cost_usd"]) for row in assign(found, {"card": 1}, ways)}
    assert given == {"a": ("own", 0), "b": ("p", 30)}
    both = assign(found, {"card": 2}, ways)
    assert sum(row["cost_usd"] for row in both) == 0


def test_two_names_of_one_accelerator_in_a_pool_are_given_twice(catalog):
    with pytest.raises(UsageError, match="--pool: 'h100-sxm5-80gb' is given twice, as 8 and as 16"):
        pool_of(catalog, {"h100-sxm": 8, "H100 SXM": 16})


def test_many_workloads_over_one_pool_are_assigned_at_once():
    """Thirty alike but for the rent, two kinds owned: the nine dearest stand on what is owned."""
    found = {f"w{n}": [candidate(f"w{n}", gpu, 2, 100 + n) for gpu in ("a", "b", "c")] for n in range(30)}
    ways = {name: [owned(name, gpu, 2) for gpu in ("a", "b", "c")] for name in found}
    given = assign(found, {"a": 11, "b": 8}, ways)
    assert [row["workload"] for row in given] == list(found)
    assert {row["workload"] for row in given if row["provider"] == "own"} == {f"w{n}" for n in range(21, 30)}
    assert sum(row["cost_usd"] for row in given) == sum(100 + n for n in range(21))


@pytest.mark.slow
def test_several_workloads_are_assigned_together(catalog, monkeypatch):
    found = gpucost.choose(
        workload={"chat": "serving 8b 5b", "tune": "fine-tuning 70b"}, pool={"h100-sxm": 8}, catalog=catalog
    )
    assert is_one_screen(found, monkeypatch)
    assert {row["workload"] for row in found.assigned} == {"chat", "tune"}
    assert found.payload["total_usd"] == pytest.approx(sum(row["cost_usd"] for row in found.assigned))


@pytest.mark.parametrize("text", ["serving", "cooking 8b", "serving 8b 1b 2b"])
def test_a_workload_that_cannot_be_read_says_how_it_is_written(catalog, text):
    with pytest.raises(UsageError, match="chat='serving 8b 5b'"):
        gpucost.choose(workload={"x": text}, catalog=catalog)


def test_runs_that_cost_the_same_end_soonest_in_all():
    """Eight cards for two runs: 4 + 4 take 20 days in all, 8 and renting cost more, 1 + 4 and 2 + 4 take longer."""
    ways = {name: [owned(name, "card", gpus, 40 / gpus) for gpus in (1, 2, 4, 8)] for name in "ab"}
    found = {name: [candidate(name, "card", 8, 100)] for name in "ab"}
    assert [way["gpus"] for way in assign(found, {"card": 8}, ways)] == [4, 4]


@pytest.mark.slow
def test_jobs_stand_on_the_machines_that_hold_them(catalog):
    """70.6e9 parameters in 16 bits are 141 GB: no single card of 80 GB fine-tunes them, and none of 24 GB serves."""
    work = {"chat": "serving 8b 5b", "tune": "fine-tuning 70b"}
    chosen = gpucost.choose(workload=work, pool={"h100-sxm": 8, "rtx-4090": 2}, catalog=catalog)
    placed = {row["workload"]: row for row in chosen.assigned}
    assert {row["provider"] for row in chosen.assigned} == {"own"}
    assert (placed["tune"]["gpu"], placed["tune"]["gpus"] >= 2) == ("h100-sxm5-80gb", True)
    assert chosen.payload["total_usd"] == 0
    timed = gpucost.throughput("70b", "h100-sxm", placed["tune"]["gpus"], method="lora", catalog=catalog)
    assert placed["tune"]["days"] == pytest.approx(1.2 * 100e6 / timed.payload["tokens_per_s"] / 86_400, rel=1e-6)


def test_a_pool_that_serves_is_as_large_as_its_load(catalog):
    from gpucost.ask.inference import request_of
    from gpucost.serving.run import fewest_for_load
    from gpucost.workloads.speeds import key_of

    key = key_of(catalog, "rtx-4090")
    request = request_of(catalog, model="8b", tokens_per_month=50e9)
    found = fewest_for_load(catalog, request, key, 100)
    served = gpucost.inference("8b", tokens_per_month=50e9, gpu="rtx-4090", catalog=catalog).best
    assert int(found.accelerators) == served["replicas"] * served["layout"]["gpus"]
    assert fewest_for_load(catalog, request, key, int(found.accelerators) - 1) is None


def test_a_run_that_is_far_slower_on_what_is_owned_is_said(catalog, monkeypatch):
    chosen = gpucost.choose("8b", purpose="fine-tuning", tokens="1b", pool={"l4": 1, "h100-sxm": 1}, catalog=catalog)
    assert chosen.assigned[0]["gpu"] == "h100-sxm5-80gb"  # the sooner of two that cost nothing
    monkeypatch.setattr("gpucost.library.choose._FAR_LONGER", 2.0)
    slow = gpucost.choose("1b", purpose="fine-tuning", tokens="10b", pool={"l4": 1}, catalog=catalog)
    assert any("days on 1 × l4 of your own" in text for text in slow.payload["warnings"])


@pytest.mark.slow
def test_each_cell_of_the_matrix_can_be_ordered_at_the_price_of_its_question(catalog, monkeypatch):
    chosen = gpucost.choose(matrix=True, catalog=catalog)
    assert is_one_screen(chosen, monkeypatch)
    assert len(chosen.payload["rows"]) == sum(" × " in line for line in chosen.to_text().splitlines())
    lately = [row for row in chosen.payload["rows"] if row["age_days"] <= LISTED_DAYS]
    assert chosen.payload["lead"].startswith(f"{len(lately)} of {len(chosen.payload['rows'])} ")
    rows = {row["workload"]: row for row in chosen.payload["rows"]}
    sizes = ("8b", "32b", "70b", "405b")
    assert set(rows) == {f"{purpose} {size}" for purpose in ("fine-tuning", "training", "serving") for size in sizes}
    assert all(row["rent_usd"] and row["provider"] for row in rows.values())
    row = rows["training 8b"]
    run = gpucost.estimate("8b", 100e9, gpu=row["gpu"], provider=row["provider"], catalog=catalog, with_facts=False)
    assert row["budget_usd"] == pytest.approx(run.best["budget_usd"])
    with pytest.raises(UsageError, match="matrix="):
        gpucost.choose("70b", matrix=True, catalog=catalog)


def test_a_workstation_is_a_set_of_cards_and_a_budget_buys_the_fastest(catalog):
    chosen = gpucost.choose("70b", purpose="workstation", budget="20k", catalog=catalog)
    rows = chosen.payload["rows"]
    assert {row["gpus"] for row in rows} == {4, 8}
    assert {row["card"] for row in rows} <= {"consumer", "workstation"}
    bought = [row for row in rows if "buy" in row["within"]]
    assert bought[0]["tokens_per_s"] == max(row["tokens_per_s"] for row in bought)
    eight = next(row for row in rows if (row["gpu"], row["gpus"]) == ("rtx-4090", 8))
    timed = gpucost.throughput("70b", "rtx-4090", 8, method="qlora", catalog=catalog)
    assert eight["tokens_per_s"] == pytest.approx(timed.payload["tokens_per_s"])


def test_another_choice_costs_what_its_own_question_says(catalog):
    rivals = gpucost.choose("8b", purpose="training", tokens="10b", catalog=catalog).rivals
    best, *others = rivals
    assert len(others) >= 3
    assert best["more_usd"] == 0
    needed = None
    for row in rivals:
        options = gpucost.estimate(
            "8b",
            "10b",
            gpu=row["gpu"],
            gpus=row["gpus"],
            option="on_demand",
            top=0,
            catalog=catalog,
            with_facts=False,
        ).options
        of_seller = [option for option in options if option["provider"] == row["provider"]]
        run = min(of_seller, key=lambda option: abs(option["cost_usd"] - row["rent_usd"]))  # of its products this one
        needed = run["budget_usd"] if needed is None else needed  # of the first
        assert row["rent_usd"] == pytest.approx(run["cost_usd"])
        assert row["more_usd"] == pytest.approx(run["budget_usd"] - needed)
        assert row["more_usd"] >= 0
        assert row["more_days"] == pytest.approx(run["days"] - best["days"])
    assert all(row["sellers"] > 3 for row in others)
