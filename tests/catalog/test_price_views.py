"""Looking at prices: what is old, a budget as an exit code, plots."""

import json
import re
from datetime import date

import pytest
from click.testing import CliRunner

from gpucost.catalog import open_catalog
from gpucost.catalog.names import admits
from gpucost.catalog.prices import (
    cheapest,
    coverage,
    current,
    difference,
    history,
    machines,
    refuse_over,
    series,
    stale,
    unseen,
)
from gpucost.cli import cli
from gpucost.errors import OverBudgetError, PriceMissingError
from gpucost.store.folder import Folder
from tests.catalog.world import offer, world, write
from tests.store.parts import publish, row

OFFERS = [
    offer("acme/one", 4.0, "2025-01-01"),
    offer("acme/one", 3.0, "2025-06-01"),
    offer("acme/spot", 1.0, "2025-06-01", option="spot"),
    offer("acme/big", 20.0, "2025-06-01", gpus=8, usd_per_gpu_hour=2.5, region="us-east-1"),
]
ALL = dict.fromkeys(("gpu", "provider", "region", "option"))


@pytest.fixture
def catalog(tmp_path):
    return open_catalog("2025-06-30", root=world(tmp_path, OFFERS), checked=False)


def test_what_is_old_for_its_kind_is_counted(catalog):
    rows = {row["option"]: row for row in stale(catalog, ALL)}
    assert (rows["spot"]["old"], rows["spot"]["limit_days"], rows["spot"]["median_age_days"]) == (1, 7, 29)
    assert rows["on_demand"]["old"] == 0


@pytest.mark.parametrize(
    ("wanted", "days", "facts", "orderable"),
    [
        ({}, None, 4, 3),
        ({"option": {"spot"}}, None, 1, 1),
        ({"region": {"us-east-1"}}, None, 1, 1),
        ({"gpu": {"h100-sxm5-80gb"}}, None, 4, 3),
        ({"provider": {"acme"}}, 29, 3, 3),
        ({"provider": {"acme"}, "gpu": {"h100-pcie-80gb"}}, None, None, None),
        ({}, 28, None, None),
    ],
)
def test_coverage_counts_what_the_filters_admit(catalog, wanted, days, facts, orderable):
    found = [(row["facts"], row["offers"]) for row in coverage(catalog, {**ALL, **wanted}, days)]
    assert found == ([] if facts is None else [(facts, orderable)])


def test_a_withdrawal_is_no_price_and_an_observation_counts_once(tmp_path):
    seen = [row(2.0, "2025-06-01"), row(5.0, "2025-06-01", "acme/two")]
    publish(Folder(tmp_path / "store"), seen, "2025-06-01")
    later = [row(2.0, "2025-06-01"), row(5.0, "2025-06-10", "acme/two", gone=True)]
    publish(Folder(tmp_path / "store"), later, "2025-06-10")
    opened = open_catalog("2025-06-30", root=world(tmp_path), store=tmp_path / "store", checked=False)
    assert [item["facts"] for item in coverage(opened, ALL)] == [2]
    assert {(item["offer_id"], item["usd_per_hour"]) for item in history(opened, ALL)} == {
        ("acme/one", 2.0), ("acme/two", 5.0),
    }  # fmt: skip
    assert {item["observed_on"] for item in history(opened, ALL)} == {date(2025, 6, 1)}


def test_coverage_hides_what_was_recorded_later(tmp_path):
    opened = open_catalog("2025-06-30", "2025-03-01", root=world(tmp_path, OFFERS), checked=False)
    assert [row["facts"] for row in coverage(opened, ALL)] == [1]


def test_what_is_older_than_asked_for_is_in_no_view(catalog):
    assert (len(stale(catalog, ALL, 29)), stale(catalog, ALL, 28)) == (2, [])
    assert [len(current(catalog, ALL, days)[0]) for days in (29, 28)] == [3, 0]


def test_machines_without_a_price_as_young_as_asked_for_are_said():
    asked = open_catalog("2026-11-20")
    wanted = asked.offer_filter(None, "aws", None, None)
    age = min(row["age_days"] for row in machines(asked, wanted) if row["age_days"] is not None)
    rows = machines(asked, wanted, age - 1)
    assert {row["age_days"] for row in rows} == {None}
    assert all(f" {age - 1} days" in line for line in unseen(rows, age - 1))


@pytest.mark.parametrize("words", ["hosted --option spot", "used --max-age 30d", "decline --max-age 30d"])
def test_a_view_takes_no_filter_that_it_would_ignore(words):
    done = CliRunner().invoke(cli, ["prices", *words.split()])
    assert (done.exit_code, "No such option" in done.output) == (2, True)


@pytest.mark.parametrize(
    "words", ["--gpu h100 history", "--format json watch --budget 1", "--as-of 2024-01-01 diff 2024-01-01 2024-02-01"]
)
def test_an_option_before_the_name_of_a_view_is_refused(words):
    done = CliRunner().invoke(cli, ["prices", *words.split()])
    assert done.exit_code == 2
    flag, view = words.split()[0], words.split()[2]
    assert f"{flag} before {view}" in done.output


def test_a_setting_stands_before_the_name_of_a_view(monkeypatch):
    monkeypatch.setenv("GPUCOST_PROVIDER", "aws")
    done = CliRunner().invoke(cli, ["prices", "stale", "--format", "json"])
    assert {row["provider"] for row in json.loads(done.stdout)["rows"]} == {"aws"}


def test_a_budget_is_held_against_the_cheapest_that_is_large_enough(catalog):
    assert cheapest(catalog, ALL, None, 1)["offer_id"] == "acme/spot"
    big = cheapest(catalog, ALL, None, 8)
    refuse_over(big, 2.5)
    with pytest.raises(OverBudgetError, match="by 25%"):
        refuse_over(big, 2.0)
    with pytest.raises(PriceMissingError):
        cheapest(catalog, ALL, None, 16)


def test_watching_ends_with_an_exit_code():
    words = ["prices", "watch", "--gpu", "h100-sxm", "--budget"]
    assert CliRunner().invoke(cli, [*words, "100"]).exit_code == 0
    assert isinstance(CliRunner().invoke(cli, [*words, "0.01"]).exception, OverBudgetError)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--budget", "$1,000", "--gpus", "1e0"], "1000"),
        (["--budget", "nan"], "--budget: cannot read 'nan'"),
        (["--budget", "inf"], "--budget: cannot read 'inf'"),
        (["--budget", "1e-300"], "--budget: '1e-300'"),
        (["--budget", "2.5", "--gpus", "1.5"], "--gpus: '1.5'"),
        (["--gpus", "8"], "--budget is missing"),
    ],
)
def test_a_budget_is_an_amount_and_gpus_a_count(words, said):
    done = CliRunner().invoke(cli, ["prices", "watch", "--gpu", "h100-sxm", *words])
    assert said in f"{done.output} {done.exception}"


@pytest.mark.parametrize(
    "wanted",
    [{"option": {"spot"}}, {"region": {"us-east-1", "eu-1"}}, {"gpu": {"h100-pcie-80gb"}}, {"provider": {"none"}}],
)
def test_a_filtered_history_is_the_whole_one_without_the_rest(tmp_path, wanted):
    either = offer("acme/either", 2.0, "2025-06-01", gpu="h100-pcie-80gb|h100-sxm5-80gb", region="eu-1")
    opened = open_catalog("2025-06-30", root=world(tmp_path, [*OFFERS, either]), checked=False)
    asked = {**ALL, **wanted}
    found = history(opened, asked)
    assert found == [row for row in history(opened, ALL) if admits(asked, row)]
    assert bool(found) == ("provider" not in wanted)


def test_a_price_is_as_old_as_its_last_sight_in_every_view():
    asked = open_catalog("2024-02-29")
    wanted = asked.offer_filter(None, "runpod", None, "secure")
    young = {row["offer_id"] for row in current(asked, wanted, 30)[0]}
    assert young
    assert young <= {row["offer_id"] for row in history(asked, wanted, 30)}


def test_a_history_of_young_prices_leaves_out_the_old(catalog):
    assert [row["price_on"] for row in history(catalog, ALL, 29)] == [date(2025, 6, 1)] * 3
    assert history(catalog, ALL, 28) == []


@pytest.mark.slow
def test_a_look_at_the_history_changes_no_later_answer():
    asked, fresh = open_catalog("2026-11-22"), open_catalog("2026-11-22")
    wanted = asked.offer_filter(None, "azure", None, None)
    history(asked, wanted)
    assert asked.offers(provider="azure") == fresh.offers(provider="azure")


def test_a_difference_names_what_came_what_went_and_what_changed(tmp_path):
    offers = [
        *OFFERS,
        offer("acme/gone", 5.0, "2025-01-01", instance_type="old"),
        offer("acme/same", 6.0, "2025-01-01"),
    ]
    root = world(tmp_path, offers)
    write(root, "price_ends", [{"provider": "acme", "instance_type": "old", "ended_on": "2025-03-01",
                                "reason": "stated", "source_id": "source"}])  # fmt: skip
    opened = open_catalog("2025-06-30", root=root, checked=False)
    rows, unknown = difference(opened, date(2025, 2, 1), ALL, True)
    assert {row["offer_id"]: row["change"] for row in rows} == {
        "acme/one": "cheaper", "acme/gone": "gone", "acme/same": "same", "acme/spot": "new", "acme/big": "new",
    }  # fmt: skip
    assert unknown == 0
    assert [row["new_usd_per_gpu_hour"] for row in rows if row["change"] == "gone"] == [None]
    assert {row["offer_id"] for row in difference(opened, date(2025, 2, 1), {**ALL, "region": {"r1"}}, False)[0]} == {
        "acme/one", "acme/gone", "acme/spot",
    }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("days", [("2026-07-15", "2026-11-23"), ("2024-02-01", "2024-06-01")])
def test_a_difference_ends_with_what_prices_lists(days):
    asked = open_catalog(days[1])
    rows, _ = difference(asked, date.fromisoformat(days[0]), ALL, True)
    listed = {row["offer_id"] for row in current(asked, ALL, None, ended=False)[0]}
    assert {row["offer_id"] for row in rows if row["change"] != "gone"} == listed
    assert listed.isdisjoint(row["offer_id"] for row in rows if row["change"] == "gone")


def test_an_event_is_a_change_of_five_percent():
    def point(day, usd, change):
        named = {"offer_id": "a", "provider": "p", "instance_type": "i", "region": None, "option": "on_demand"}
        return {
            **named,
            "price_on": date(2025, day, 1),
            "usd_per_gpu_hour": usd,
            "change_fraction": change,
            "source_id": "s",
        }

    points, events, left_out = series([point(1, 4.0, None), point(2, 3.9, -0.025), point(3, 3.0, -0.23)], 8)
    assert len(points) == 3
    assert [(event["day"].month, event["offer"]) for event in events] == [(3, "p i on_demand")]
    assert left_out == 0


def test_a_history_is_plotted_with_days_and_events():
    words = [
        "prices",
        "history",
        "--gpu",
        "h100-sxm",
        "--provider",
        "aws",
        "--option",
        "on_demand",
        "--region",
        "us-east-1",
    ]
    text = CliRunner().invoke(cli, [*words, "--plot"]).stdout
    assert "│" in text
    assert re.search(r"2025-06-01 +aws p5.48xlarge us-east-1 on_demand +6.88 +-44.0%", text)


@pytest.mark.parametrize(
    "words",
    [["--format", "json"], ["--fields", "gpu"], ["-o", "h.csv"], ["-o", "h.md"], ["-o", "h.html", "--format", "csv"]],
)
def test_a_plot_is_text_or_a_page(tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    asked = ["prices", "history", "--gpu", "h100-sxm", "--provider", "lambda", "--plot"]
    done = CliRunner().invoke(cli, [*asked, *words])
    assert (done.exit_code, "--plot draws text or a page" in done.output, list(tmp_path.iterdir())) == (2, True, [])
    monkeypatch.setenv("GPUCOST_FORMAT", "json")  # a setting of lists: a plot is none
    assert CliRunner().invoke(cli, [*asked, "-o", "h.txt"]).exit_code == 0
