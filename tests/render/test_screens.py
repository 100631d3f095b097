"""First screens that are tables of their own: what a claim is held against, and who sells a GPU."""

import csv
from pathlib import Path

import gpucost
from gpucost.render.prices import machine_label, offers_screen
from gpucost.render.text import write
from gpucost.render.wording import chip_label
from tests.commands import in_process

MODELS = Path(gpucost.__file__).parents[1] / "models"
NOT_SOLD = {"h100-sxm5-96gb-500w"}  # a variant of one buyer, under the label of the usual one


def lines_of(*words, columns, monkeypatch):
    monkeypatch.setenv("COLUMNS", str(columns))
    shown = in_process(*words).stdout.splitlines()
    assert len(shown) < 24, "a line is left for the prompt"
    assert max(map(len, shown)) <= columns
    return shown


def test_each_accelerator_has_a_label_of_its_own():
    with (MODELS / "accelerators.csv").open(encoding="utf-8", newline="") as file:
        ids = [row["id"] for row in csv.DictReader(file)]
    labels = {id_: chip_label(id_) for id_ in ids if id_ not in NOT_SOLD}
    assert len(set(labels.values())) == len(labels)


def test_an_audit_sets_each_figure_beside_what_is_likely(monkeypatch):
    claim = ("--model", "8b", "--tokens", "100b", "--gpu", "a100-80gb", "--gpus", "8", "--days", "8", "--cost", "6291")
    name, _, head, _, *shown = lines_of("audit", *claim, columns=80, monkeypatch=monkeypatch)
    assert name.startswith("Check a claim about 8b on 8 × A100 80GB")
    assert head.split() == ["verdict", "claim", "at", "least", "likely", "at", "most"]
    cells = {line.split()[0]: line for line in shown if line}
    assert {"impossible", "8"} <= set(cells["duration"].split())
    assert "$6,291" in cells["cost"]  # as it was claimed; what is likely has three digits
    assert {"Duration", "Cost", "Assumes"} <= set(cells)


def test_prices_have_eight_columns_where_a_hundred_letters_fit(monkeypatch):
    words = ("prices", "--gpu", "h100", "--provider", "azure,aws,gcp,oci")
    head = lines_of(*words, columns=100, monkeypatch=monkeypatch)[2]
    assert head.split("  ")[-1] == "cheapest in"
    assert len([cell for cell in head.split("  ") if cell.strip()]) == 8
    narrow = lines_of(*words, columns=80, monkeypatch=monkeypatch)
    rows = [line.split() for line in narrow if " × H100" in line]
    assert len(rows) == len({tuple(row[:-4]) for row in rows})


def test_a_seller_has_a_row_for_each_option_and_old_prices_stand_last():
    row = {"gpu": "h100-sxm5-80gb", "gpus": 8, "option": "on_demand", "term_months": 0, "region": "eastus",
           "seller": "Azure", "instance_type": "Standard_ND96isr_H100_v5", "observed_on": "2026-11-09"}  # fmt: skip
    rows = [{**row, "usd_per_gpu_hour": 11.0}, {**row, "usd_per_gpu_hour": 2.0, "option": "spot", "stale": True}]
    shown = write(offers_screen(rows, 2, 1, "h100", "2026-11-20", "v", ()), width=100, color=False, one_screen=True)
    assert "88.00" in shown  # of the whole machine
    assert machine_label(row["instance_type"]) in shown
    assert "Old" in shown


def test_one_row_for_each_seller_chip_and_option():
    from gpucost.catalog.prices import cheapest_of_sellers

    row = {"provider": "p", "gpu": "g", "option": "reserved", "term_months": 12, "region": "a", "rankable": True,
           "stale": False, "offer_id": "1", "usd_per_gpu_hour": 3.0}  # fmt: skip
    longer = {**row, "term_months": 36, "usd_per_gpu_hour": 2.0, "region": "b"}
    old = {**row, "option": "spot", "term_months": 0, "usd_per_gpu_hour": 1.0, "stale": True}
    found = cheapest_of_sellers([row, longer, old, {**old, "stale": False, "usd_per_gpu_hour": 1.5}])
    assert [(line["option"], line["term_months"], line["usd_per_gpu_hour"]) for line in found] == [
        ("spot", 0, 1.5), ("reserved", 36, 2.0),
    ]  # fmt: skip
    assert [line["regions"] for line in found] == [1, 2]
