"""Stacked discounts and commitments against calculations by hand."""

import json
from datetime import datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gpucost
from gpucost.errors import DataError, PriceMissingError, UsageError
from gpucost.money.commitments import Agreement, Usage, advised, level, quantile, regret, stacked
from tests.invoices.charges import charge, write

YEAR = datetime(2026, 1, 1), datetime(2027, 1, 1)


def agreement(kind, start=YEAR[0], end=YEAR[1], name=None, **figures):
    return Agreement(name or kind, kind, start, end, **figures)


def days(*gpus, start=YEAR[0]):
    return Usage(
        np.datetime64(start, "s") + np.arange(len(gpus)) * np.timedelta64(86_400, "s"), 24.0, np.array(gpus, float)
    )


RESERVED = agreement("reservation", gpus=2, usd_per_gpu_hour=1.5)
PLAN = agreement("savings_plan", usd_per_hour=2.0, usd_per_gpu_hour=2.0)  # pays for one GPU at 2


def test_a_reservation_covers_first_a_savings_plan_next_and_never_both_one_hour():
    # 4 GPUs at a list of 3 for a day: two reserved at 1.50, one under the plan at 2, one at the list
    bill = stacked(days(4), 3.0, [PLAN, RESERVED])
    assert bill["at list"] == 4 * 3 * 24
    assert bill["reservations"] == -2 * 1.5 * 24
    assert bill["savings plans"] == -1 * 1 * 24
    assert bill["total"] == (2 * 1.5 + 1 * 2 + 1 * 3) * 24
    # with 2 GPUs in use the plan has nothing left to cover, and is owed all the same
    bill = stacked(days(2), 3.0, [PLAN, RESERVED])
    assert bill["savings plans"] == 0
    assert bill["savings plans, unused"] == 2 * 24
    assert bill["total"] == (2 * 1.5 + 2) * 24


def test_a_contract_replaces_everything():
    held = [RESERVED, PLAN, agreement("private", fraction=0.1), agreement("credit", usd=1e6)]
    bill = stacked(days(4), 3.0, [*held, agreement("contract", usd_per_gpu_hour=2.5)])
    assert bill["total"] == 4 * 2.5 * 24
    assert {name for name, cost in bill.items() if cost} == {"at list", "contracts", "total"}
    later = agreement("contract", start=YEAR[0] + timedelta(days=1), usd_per_gpu_hour=2.5)  # from the second day on
    assert stacked(days(4, 4), 3.0, [later])["total"] == (4 * 3 + 4 * 2.5) * 24


def test_a_private_percentage_takes_its_share_of_what_is_charged_then():
    bill = stacked(days(4), 3.0, [RESERVED, PLAN, agreement("private", fraction=0.1)])
    assert bill["private discount"] == pytest.approx(-0.1 * (2 * 1.5 + 2 + 3) * 24)
    assert bill["total"] == pytest.approx(0.9 * 8 * 24)


def test_credits_end_at_their_cap_their_amount_and_their_expiry():
    # 31 days of January at 72 USD a day, 28 of February
    january, both = days(*[1] * 31), days(*[1] * 59)
    assert stacked(january, 3.0, [agreement("credit", usd=100)])["credits"] == -100
    capped = agreement("credit", usd=1000, usd_per_month=300)
    assert stacked(both, 3.0, [capped])["credits"] == -600
    ends = agreement("credit", end=datetime(2026, 1, 11), usd=1e6)
    assert stacked(both, 3.0, [ends])["credits"] == -10 * 72
    assert stacked(january, 3.0, [agreement("credit", usd=1e9)])["total"] == 0  # never more than is owed
    late = agreement("credit", name="late", usd=1e6)
    bill = stacked(january, 3.0, [late, ends])  # the first to expire pays first, the other the rest
    assert bill["credits"] == -31 * 72


def test_what_an_annual_commitment_lacks_is_a_line():
    usage = days(*[1] * 365)  # 26,280 USD at the list
    annual = agreement("annual", usd=30_000)
    bill = stacked(usage, 3.0, [annual])
    assert bill["annual shortfall"] == 30_000 - 26_280
    assert bill["total"] == 30_000
    discounted = stacked(usage, 3.0, [annual, agreement("private", fraction=0.1), agreement("credit", usd=500)])
    assert discounted["annual shortfall"] == pytest.approx(30_000 - 0.9 * 26_280)  # credits are money spent
    half = stacked(days(*[1] * 73), 3.0, [annual])  # a fifth of a year owes a fifth
    assert half["annual shortfall"] == pytest.approx(30_000 / 5 - 73 * 72)


@pytest.mark.parametrize(
    ("start", "end", "usd", "gpus", "lacking"),
    [
        ((2024, 1, 1), (2025, 1, 1), 100_000, [1] * 366, 100_000 - 8_784),
        ((2023, 1, 1), (2026, 1, 1), 12_000, [1] * 365 + [2] * 366 + [1] * 365, 2 * (12_000 - 8_760)),
        ((2024, 7, 1), (2025, 7, 1), 20_000, [1] * 365, 20_000 - 8_760),
        ((2024, 2, 29), (2025, 2, 28), 20_000, [1] * 365, 20_000 - 8_760),  # its year ends with February
        ((2024, 1, 1), (2025, 1, 1), 36_600, [1] * 183, 18_300 - 183 * 24),  # half of 366 days
    ],
)
def test_the_years_of_an_annual_commitment_end_on_its_anniversaries(start, end, usd, gpus, lacking):
    annual = agreement("annual", datetime(*start), datetime(*end), usd=usd)
    assert stacked(days(*gpus, start=annual.start), 1.0, [annual])["annual shortfall"] == lacking


agreements = st.lists(
    st.builds(
        agreement, st.sampled_from(["contract", "reservation", "savings_plan", "private", "credit", "annual"]),
        start=st.integers(0, 40).map(lambda day: YEAR[0] + timedelta(days=day)),
        name=st.text("abc", min_size=1, max_size=3),
        gpus=st.floats(0, 20), usd_per_gpu_hour=st.floats(0.1, 3), usd=st.floats(0, 1e5), usd_per_hour=st.floats(0, 30),
        fraction=st.floats(0, 1),
    ),
    max_size=6,
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(st.lists(st.floats(0, 50), min_size=1, max_size=50), agreements)
def test_the_lines_add_up_and_nothing_is_covered_twice(gpus, held):
    bill = stacked(days(*gpus), 3.0, held)
    total = bill.pop("total")
    assert sum(round(cost * 100) for cost in bill.values()) == round(total * 100)
    assert total >= 0
    covered = -bill["reservations"] - bill["savings plans"]
    assert covered <= bill["at list"] + 0.02


def test_the_newsvendor_by_hand():
    # ten equally likely demands of 10 to 100; 4 USD on demand, 1.40 committed: the quantile at 1 - 1.4 / 4 = 65 % is 70
    demand = np.arange(10, 101, 10.0)
    assert advised(demand, 4.0, 1.4) == 70
    # 1.4 x 70 and 4 x (10 + 20 + 30) / 10 beyond
    assert level(demand, 70, 4.0, 1.4).usd_per_hour == pytest.approx(98 + 24)
    assert level(demand, 70, 4.0, 1.4).covered_fraction == pytest.approx((10 + 20 + 30 + 40 + 50 + 60 + 4 * 70) / 550)
    every = [level(demand, gpus, 4.0, 1.4).usd_per_hour for gpus in range(121)]
    assert min(every) == pytest.approx(122)
    assert advised(demand, 4.0, 4.0) == 0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 60), min_size=1, max_size=60), st.floats(0.1, 5), st.sampled_from([1.0, 4.0, 8.0]))
def test_no_other_amount_is_cheaper(values, committed_price, step):
    demand = np.array(values, float)
    best = advised(demand, 3.0, committed_price, step)
    costs = [level(demand, gpus, 3.0, committed_price).usd_per_hour for gpus in np.arange(0, 80, step)]
    assert level(demand, best, 3.0, committed_price).usd_per_hour == pytest.approx(min(costs))


@pytest.fixture
def history(tmp_path):
    path = tmp_path / "usage.csv"
    path.write_text(
        "time,gpus\n" + "".join(f"2026-11-01T{hour:02}:00:00Z,{10 * (hour + 1)}\n" for hour in range(10)), "utf-8"
    )
    return str(path)


@pytest.mark.parametrize("price", [3.99, 2.349, 0.1])
def test_a_commitment_at_the_price_on_demand_is_never_regretted_by_less_than_nothing(price):
    found = [regret(gpus, demand, price, price) for gpus in (7.1, 30.3, 64) for demand in (3.3, 30.3, 41.7, 97.9)]
    assert min(found) == 0


def test_the_answer_says_the_amount_and_its_regret(history):
    result = gpucost.commit(history, on_demand=4, committed=1.4, as_of="2026-11-20")
    payload = result.payload
    assert (result.gpus, payload["critical_fraction"]) == (70, pytest.approx(0.65))
    assert (payload["usage"]["p10_gpus"], payload["usage"]["p90_gpus"]) == (10, 90)
    (row,) = [row for row in payload["levels"] if row["level"] == "advised"]
    assert row["usd_per_month"] == pytest.approx(122 * 730)
    assert row["regret_low_usd_per_month"] == pytest.approx(1.4 * 60 * 730)  # 60 committed for nothing
    assert row["regret_high_usd_per_month"] == pytest.approx((4 - 1.4) * 20 * 730)  # 20 at the dearer price
    assert result.payload["saving_usd_per_month"] == pytest.approx((4 * 55 - 122) * 730)
    assert "Commit 70 GPUs for 12 months" in result.headline
    assert gpucost.commit(list(range(10, 101, 10)), on_demand=4, committed=1.4).gpus == 70
    assert "Commit nothing" in gpucost.commit(history, on_demand=4, committed=4.5).headline


def test_advice_stands_on_what_is_paid_under_the_agreements_of_the_day(history, tmp_path):
    def advice(*rows):
        path = tmp_path / "held.csv"
        path.write_text("\n".join(("name,kind,start,end,usd_per_gpu_hour,fraction", *rows)), "utf-8")
        return gpucost.commit(history, on_demand=4, committed=1.4, agreements=str(path), as_of="2026-11-20").payload

    private = "p,private,2026-01-01,2027-01-01,,25%"
    off = advice(private, "old,private,2025-01-01,2026-01-01,,90%")
    assert (off["usd_per_gpu_hour"], off["committed_usd_per_gpu_hour"]) == (3.0, pytest.approx(1.05))
    assert off["critical_fraction"] == pytest.approx(0.65)  # both prices fall alike
    assert off["saving_usd_per_month"] == pytest.approx(0.75 * (4 * 55 - 122) * 730)
    assert "25.0%" in off["prices"][-1]
    bill = {row["line"]: row["cost_usd"] for row in off["bill"]}
    assert bill["private discount"] == pytest.approx(-bill["at list"] / 4)
    contract = advice(private, "c,contract,2026-01-01,2027-01-01,2,")
    assert (contract["usd_per_gpu_hour"], contract["committed_usd_per_gpu_hour"]) == (2.0, pytest.approx(1.05))
    with pytest.raises(UsageError, match="whole price"):
        advice("p,private,2026-01-01,2027-01-01,,100%")


def test_a_ladder_spreads_what_lacks_and_renews_what_ends(history, tmp_path):
    (tmp_path / "held.csv").write_text(
        "name,kind,start,end,gpus,usd_per_gpu_hour,usd_per_hour\n"
        "old,reservation,2025-03-01,2027-03-01,30,2,\nplan,savings_plan,2026-01-01,2029-01-01,,2,20\n"
        "gone,reservation,2025-01-01,2026-01-01,8,2,\n", "utf-8",
    )  # fmt: skip
    payload = gpucost.commit(
        history, on_demand=4, committed=1.4, rungs=3, step=10, agreements=str(tmp_path / "held.csv"), as_of="2026-11-20"
    ).payload
    assert payload["held_gpus"] == 40
    bought = [
        (row["name"], row["gpus"], row["from_day"], row["until_day"]) for row in payload["rungs"] if not row["held"]
    ]
    assert bought == [
        ("buy 1", 10, "2026-11-20", "2027-11-20"), ("buy 2", 10, "2027-03-20", "2028-03-20"),
        ("buy 3", 10, "2027-07-20", "2028-07-20"), ("renew old", 30, "2027-03-01", "2028-03-01"),
    ]  # fmt: skip
    wall = {row["month"]: row["ending_gpus"] for row in payload["by_month"] if row["ending_gpus"]}
    assert wall["2027-03-01"] == 30
    assert sum(wall.values()) == sum(row["gpus"] for row in payload["rungs"])
    assert max(row["committed_gpus"] for row in payload["by_month"]) == 70
    assert "gone ended on 2026-01-01." in payload["warnings"]


@pytest.mark.parametrize(
    ("has", "step", "committed", "bought", "renewed"),
    [
        (5, 8, 1.4, 8, 0),  # 8 × 1.40 beside what is held, or 3 × 4 on demand
        (5, 8, 2, 0, 5),  # 8 × 2 or 3 × 4
        (7, 8, 1.4, 0, 7),
        (3, 8, 2, 8, 0),  # 8 × 2 or 5 × 4
        (7.6, 1, 1.4, 1, 7),  # 1.40 or 0.4 × 4, and 8 in all once what is held has ended
        (7.6, 1, 2, 0, 7.6),
        (12, 1, 2, 0, 8),  # more is held than one would commit
    ],
)
def test_whole_steps_are_bought_beside_what_is_held(has, step, committed, bought, renewed, tmp_path):
    path = tmp_path / "held.csv"
    path.write_text(f"name,kind,start,end,gpus,usd_per_gpu_hour\nr,reservation,2026-01-01,2027-01-01,{has},2\n")
    found = gpucost.commit(
        [8.0] * 48, on_demand=4, committed=committed, step=step, agreements=str(path), as_of="2026-11-20"
    ).payload
    rungs = {row["name"]: row["gpus"] for row in found["rungs"]}
    assert (rungs.get("buy 1", 0), rungs.get("renew r", 0)) == (bought, pytest.approx(renewed))
    assert f", {bought} beside the {has} held" in found["headline"]
    assert found["advised_gpus"] == (has + bought if has < 8 else 8)


def test_what_lasts_beyond_the_term_is_not_doubled_by_a_renewal(tmp_path):
    path = tmp_path / "held.csv"
    path.write_text(
        "name,kind,start,end,gpus,usd_per_gpu_hour\n"
        "long,reservation,2026-01-01,2029-01-01,6,2\nshort,reservation,2026-01-01,2027-01-01,4,2\n"
    )
    found = gpucost.commit([8.0] * 48, on_demand=4, committed=2, agreements=str(path), as_of="2026-11-20").payload
    assert {row["name"]: row["gpus"] for row in found["rungs"] if not row["held"]} == {"renew short": 2}


@pytest.mark.parametrize("committed", [4, 4.5])
def test_a_commitment_that_costs_no_less_never_pays(committed, history):
    lead = gpucost.commit(history, on_demand=4, committed=committed).payload["lead"]
    assert f"At {committed:.2f} against 4.00 USD per GPU-hour a committed GPU never pays." in lead


def test_days_and_hours_of_gpus_are_read_and_gaps_are_said(tmp_path):
    path = tmp_path / "usage.csv"
    path.write_text("day,gpu_hours\n2026-11-01,240\n2026-11-02,480\n2026-11-04,720\n", "utf-8")
    payload = gpucost.commit(str(path), on_demand=4, committed=2).payload
    assert payload["usage"]["mean_gpus"] == 20
    assert payload["usage"]["hours"] == 72
    assert payload["warnings"][0] == "1 of 4 days are missing: left out."


@pytest.mark.parametrize(
    "days",
    [
        [f"2026-08-{day:02} 00:00:00" for day in range(1, 31)],
        ["2026-08-01 00:00:00", *(f"2026-08-{day:02}" for day in range(2, 31))],
        ["2026-08-01 00:00:00"],  # as the column says
        ["2026-10-25T00:00:00+02:00", "2026-10-26T00:00:00+01:00", "2026-10-27T00:00:00+01:00"],  # a day of 25 hours
    ],
)
def test_midnights_are_days(days, tmp_path):
    path = tmp_path / "usage.csv"
    path.write_text("day,gpu_hours\n" + "".join(f"{day},240\n" for day in days), "utf-8")
    payload = gpucost.commit(str(path), on_demand=4, committed=1.4).payload
    assert (payload["usage"]["mean_gpus"], payload["usage"]["hours"]) == (10, 24 * len(days))
    assert not any("missing" in said for said in payload["warnings"])


def test_hours_of_one_day_stay_hours(tmp_path):
    path = tmp_path / "usage.csv"
    path.write_text("time,gpu_hours\n2026-08-01 00:00:00,240\n2026-08-01 01:00:00,240\n", "utf-8")
    assert gpucost.commit(str(path), on_demand=4, committed=1.4).payload["usage"]["mean_gpus"] == 240


def test_prices_are_looked_up_and_named(history):
    payload = gpucost.commit(history, gpu="h100-sxm", provider="crusoe", committed=1.5, as_of="2026-11-20").payload
    assert payload["prices"][0].startswith("crusoe ")
    assert len(payload["sources"]) == 1
    with pytest.raises(UsageError, match=r"(--on-demand|on_demand=) is missing"):
        gpucost.commit(history, committed=1)
    with pytest.raises(PriceMissingError, match="no price of a commitment of 7 months"):
        gpucost.commit(history, gpu="h100-sxm", on_demand=3, term=7)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("name,kind,start,end\na,rebate,2026-01-01,2027-01-01\n", "is not one of contract, reservation"),
        ("name,kind,start,end,gpus\na,reservation,2026-01-01,2027-01-01,5\n", "usd_per_gpu_hour: is missing"),
        ("name,kind,start,end,gpus\na,private,2026-01-01,2027-01-01,5\n", "a private has no gpus"),
        ("name,kind,start,end,fraction\na,private,2026-01-01,2027-01-01,150%\n", "100%"),
        ("name,kind,start,end,usd\na,credit,2027-01-01,2026-01-01,5\n", "before it"),
        ("name,kind,start,end,usd\na,credit,soon,2026-01-01,5\n", "soon"),
        ("name,kind,start,end,usd\na,credit,2026-01-01,2027-01-01,nan\n", "nan"),
        (
            "name,kind,start,end,gpus,usd_per_gpu_hour\na,reservation,2026-01-01,2027-01-01,50%,2\n",
            "'50%' is not a number",
        ),
        ("name,colour\n", "colour"),
        ("", "has no column name; needed are name, kind, start, end"),
        ("name,kind\na,credit\n", "has no column start"),
        ("name,kind,start,end\n", "no rows"),
    ],
)
def test_agreements_that_cannot_be_are_named(text, said, history, tmp_path):
    (tmp_path / "held.csv").write_text(text, "utf-8")
    with pytest.raises(DataError) as caught:
        gpucost.commit(history, on_demand=4, committed=2, agreements=str(tmp_path / "held.csv"))
    assert said in str(caught.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("time,gpus\n2026-11-01T00:00:00Z,-1\n", "csv:2:gpus: '-1' is not a number"),
        ("time,gpus\n2026-11-01T00:00:00Z,1\n2026-11-01T02:00:00+02:00,1\n", "csv:3:time: appears twice"),
        ("time,gpus\n2026-11-01T00:00,8\n2026-11-01T00:15,8\n", "csv:3:time: is in an hour that has a row already"),
        ("time,gpus\n2026-11-01T00:00,8\n2026-11-01T00:15,8\n", "one row, the mean of its GPUs"),
        ("time,gpu_hours\n2026-11-01T00:00,2\n2026-11-01T00:15,2\n", "one row, the sum of its GPU-hours"),
        ("time,gpus\n2026-11-01T05:00,8\n2026-11-02,8\n", "csv:3:time: is a day among hours"),
        ("time,gpus\nsoon,1\n", "csv:2:time: 'soon' is not a day or hour"),
        ("time,gpus\n2026-11-01,0\n", "zero"),
        ("a,b\n1,2\n", "needs a column of time"),
    ],
)
def test_a_history_that_cannot_be_is_named(text, said, tmp_path):
    (tmp_path / "usage.csv").write_text(text, "utf-8")
    with pytest.raises(DataError) as caught:
        gpucost.commit(str(tmp_path / "usage.csv"), on_demand=4, committed=2)
    assert said in str(caught.value)


def test_a_scenario_asks_for_invoices_and_commitments(history, tmp_path):
    write(tmp_path / "invoice.csv", charge())
    (tmp_path / "s.toml").write_text(
        '[[training]]\nname = "Run"\nmodel = "8b"\ntokens = "1b"\ngpu = "h100-sxm"\ngpus = 8\ntop = 1\n'
        '[[commitment]]\nname = "Commit"\nusage = "usage.csv"\non_demand = 4\ncommitted = 1.4\n'
        '[[invoice]]\nname = "November"\ninvoice = "invoice.csv"\nestimate = "Run"\n', "utf-8",
    )  # fmt: skip
    parts = {part["name"]: part["payload"] for part in gpucost.report(tmp_path / "s.toml").payload["parts"]}
    assert parts["Commit"]["advised_gpus"] == 70
    assert parts["November"]["totals"]["charged_effective_usd"] == 10
    assert parts["November"]["totals"]["planned_effective_usd"] > 0
    public = gpucost.report(tmp_path / "s.toml", share_safe=True)
    assert [part["name"] for part in public.payload["parts"]] == ["Run"]
    assert (
        "invoice, commitment" in public.payload["warnings"][-1]
        or "commitment, invoice" in public.payload["warnings"][-1]
    )


def test_the_answer_shows_the_ladder_and_the_wall_in_every_medium(history, tmp_path):
    result = gpucost.commit(history, on_demand=4, committed=1.4)
    assert "Expiry wall" in result.to_text(details=True)
    assert result.charts() == ["Commitments by month", "Expiry wall"]
    assert json.loads(result.to_json())["advised_gpus"] == 70
    assert result.to_csv().startswith("level,gpus")
    assert quantile(np.array([1.0]), 0.0) == 1


def test_an_agreement_without_an_end_in_sight_is_shown_for_twenty_years(tmp_path):
    held = tmp_path / "a.csv"
    held.write_text("name,kind,start,end,gpus,usd_per_gpu_hour\nr,reservation,2026-01-01,9999-12-31,4,2\n")
    found = gpucost.commit([8.0] * 48, on_demand=4, committed=2, agreements=str(held), as_of="2026-11-20").payload
    assert found["rungs"][0]["until_day"] == "9999-12-31"
    assert (found["by_month"][0]["month"], found["by_month"][-1]["month"]) == ("2026-11-01", "2046-11-01")


@pytest.mark.parametrize("time", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:00:00-14:00"])
def test_a_time_of_use_that_no_calendar_holds_in_utc_is_refused(time, tmp_path):
    use = tmp_path / "u.csv"
    use.write_text(f"time,gpus\n{time},8\n")
    with pytest.raises(DataError, match="day or hour"):
        gpucost.commit(str(use), on_demand=4, committed=2)


@pytest.mark.parametrize("usage", [[1.7e308] * 24, [1e13] * 24, [True] * 24, [8.0, None]])
def test_a_use_that_nobody_has_is_refused(usage):
    with pytest.raises(UsageError, match="1,000,000,000,000"):
        gpucost.commit(usage, on_demand=4, committed=2)


def test_a_cell_of_use_beyond_the_bound_is_refused_with_the_bound(tmp_path):
    use = tmp_path / "u.csv"
    use.write_text("time,gpus\n2026-01-01,1e30\n")
    with pytest.raises(DataError, match="'1e30' is not a number from 0 to 1,000,000,000,000"):
        gpucost.commit(str(use), on_demand=4, committed=2)


def test_a_price_that_is_nearly_nothing_is_refused(tmp_path):
    held = tmp_path / "a.csv"
    held.write_text(
        "name,kind,start,end,usd_per_hour,usd_per_gpu_hour\ns,savings_plan,2026-01-01,2027-01-01,8,5e-324\n"
    )
    with pytest.raises(DataError, match="usd_per_gpu_hour"):
        gpucost.commit([8.0] * 48, on_demand=4, committed=2, agreements=str(held))
