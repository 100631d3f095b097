"""Every multiple of an offer's unit is a size; of those that meet a deadline the cheapest counts."""

from itertools import pairwise

import openpyxl
import pytest
from msgspec.structs import replace

import gpucost
from gpucost.errors import NothingFitsError
from gpucost.render.offers import training_causes
from gpucost.training import search
from gpucost.training.cases import Cases, evaluate
from gpucost.workloads.training import Workload


@pytest.fixture(scope="module")
def catalog():
    return gpucost.open_catalog()


def ask(catalog, model, tokens, **wanted):
    return gpucost.estimate(model, tokens, catalog=catalog, with_facts=False, top=0, **wanted)


def pinned(catalog, model, tokens, gpus, **wanted):
    """Return how long the best offer of a pinned size takes and what it costs; no layout takes for ever."""
    try:
        best = ask(catalog, model, tokens, gpus=gpus, **wanted).best
    except NothingFitsError:
        return float("inf"), float("inf")
    return best["days"], best["cost_usd"]


@pytest.mark.parametrize(
    ("model", "tokens", "gpu", "provider", "deadline"),
    [
        ("8b", "100b", "mi300x", "crusoe", 7),
        ("8b", "100b", "h100-sxm", "crusoe", 5),
        ("70b", "100b", "h100-sxm", "crusoe", 30),
        ("mixtral-8x7b", "200b", "h100-sxm", "crusoe", 20),
        ("1b", "300b", "h100-sxm", "azure", 2),
    ],
)
def test_no_smaller_cluster_of_the_offer_meets_the_deadline_for_less(catalog, model, tokens, gpu, provider, deadline):
    where = {"gpu": gpu, "provider": provider, "option": "on_demand"}
    found = ask(catalog, model, tokens, deadline=f"{deadline}d", **where)
    chosen = max(found.options, key=lambda option: option["gpus"])
    unit = 8
    assert chosen["gpus"] % unit == 0
    assert chosen["days"] <= deadline
    for gpus in range(unit, chosen["gpus"], unit):
        days, cost = pinned(catalog, model, tokens, gpus, **where)
        assert days > deadline or cost >= chosen["cost_usd"], gpus


@pytest.mark.parametrize(
    ("asked", "days"),
    [
        ({"model": "70b", "tokens": "100b", "gpu": "h100-sxm"}, (14, 30, 90, 180)),
        ({"model": "deepseek-v3", "tokens": "26b", "gpu": "l40s"}, (0.7, 11, 45)),  # 4,096 split the model less
        ({"model": "deepseek-v3", "tokens": "26b", "gpu": "t4"}, (45, 1000)),  # nothing below 4,096 holds it
        ({"model": "405b", "tokens": "26b", "gpu": "l4"}, (45, 1000)),
        ({"model": "8b", "tokens": "200b", "gpu": "t4"}, (15, 63)),  # 512 hold it whole, 128 in parts
        ({"model": "32b", "tokens": 43649709573, "gpu": "t4", "sequence": 2048}, (7.498, 7.573)),  # 114 nodes, not 109
        ({"model": "deepseek-v3", "tokens": "100b", "gpu": "h100-sxm"}, (3, 7, 45)),
        ({"model": "8b", "tokens": "100b", "gpu": "l4"}, (30, 45, 90)),
        ({"model": "32b", "tokens": "1b", "gpu": "h100-sxm", "method": "qlora", "option": "on_demand"}, (1, 5, 10)),
    ],
)
def test_more_time_never_costs_more(catalog, asked, days):
    """Small clusters waste where the batch does not divide; larger ones stay in the race when there is more time."""
    limits = [*(f"{one}d" for one in days), "none"]
    answers = [ask(catalog, **asked, deadline=one).options for one in limits]
    least = [min(option["budget_usd"] for option in options) for options in answers]
    assert least == sorted(least, reverse=True)


def test_three_machines_of_eight_are_a_size(catalog):
    found = ask(catalog, "8b", "100b", gpu="mi300x", deadline="7d")
    assert {option["gpus"] for option in found.options} >= {24}


def test_the_largest_order_is_a_size_even_where_it_is_no_doubling(catalog, tmp_path):
    pool = tmp_path / "pool.toml"
    pool.write_text('[[pool]]\ngpu = "h100-sxm"\navailable_gpus = 24\nloaded_usd_per_gpu_hour = 2.0\n', "utf-8")
    found = ask(catalog, "8b", "100b", pool=str(pool), deadline="8d", gpu="h100-sxm")
    assert {option["gpus"] for option in found.options if option["provider"] == "own"} == {24}


def test_the_curve_of_cost_against_days_is_in_the_answer_and_in_the_workbook(catalog, tmp_path):
    found = ask(catalog, "8b", "100b", gpu="h100-sxm", provider="crusoe", option="on_demand")
    rows = found.payload["scaling"]
    days, gpus = [row["days"] for row in rows], [row["gpus"] for row in rows]
    assert len(rows) > 4
    assert days == sorted(days, reverse=True)
    assert gpus == sorted(set(gpus))
    assert [row["cost_usd"] for row in rows if row["chosen"]] == [found.best["cost_usd"]]
    found.to_excel(tmp_path / "sizes.xlsx")
    sheet = openpyxl.load_workbook(tmp_path / "sizes.xlsx")["Sizes"]
    written = {row[0] for row in sheet.iter_rows(values_only=True)}
    assert set(gpus) <= written


@pytest.mark.parametrize(
    ("gpu", "gpus", "sequence", "sizes"),
    [
        ("h100-sxm", 1024, 8192, ("1.103b", "1.324b", "1.588b", "6.235b", "7.482b")),
        ("a100-80gb", 1024, 8192, ("1.007b", "1.208b", "1.45b")),
        ("l4", 256, 2048, ("2.589b", "3.107b", "3.728b", "4.474b")),
    ],
)
def test_the_larger_of_two_bare_sizes_is_never_the_cheaper_one(catalog, gpu, gpus, sequence, sizes):
    """Layers that divide by the stages and layers that do not are placed in different ways."""
    asked = {"gpu": gpu, "gpus": gpus, "sequence": sequence, "global_batch": 1024, "deadline": "none"}
    found = [ask(catalog, size, "100b", **asked).options for size in sizes]
    costs = [{option["offer_id"]: option["cost_usd"] for option in options} for options in found]
    for smaller, larger in pairwise(costs):
        assert all(smaller[offer] <= larger[offer] for offer in smaller.keys() & larger.keys())


def test_of_the_sizes_between_two_doublings_only_the_judged_are_kept(catalog, monkeypatch):
    """They may be hundreds of thousands: what is kept of each bounds the memory of an answer."""
    tried, kept = [], []

    def counted(*asked):
        cases = evaluate(*asked)
        tried.append(len(cases))
        return cases

    def joined(parts):
        kept.append(sum(map(len, parts)))
        return concatenate(parts)

    monkeypatch.setattr(search, "evaluate", counted)
    concatenate = Cases.concatenate
    monkeypatch.setattr(Cases, "concatenate", joined)
    ask(catalog, "8b", "3t", deadline="45d")
    assert kept[0] < sum(tried) / 5


def test_a_short_run_has_the_range_of_its_start_and_more_tokens_never_lower_an_end(catalog):
    """The start takes 0.1 to 2 hours where it usually takes half an hour, and is paid like any other."""
    where = {"gpu": "h100-sxm", "gpus": 64, "provider": "aws", "option": "on_demand"}
    found = [ask(catalog, "1b", tokens, **where).best for tokens in (8192, "1m", "10m", "100m", "1b", "1t")]
    assert found[0]["cost_low_usd"] == pytest.approx(found[0]["cost_usd"] * 0.2, rel=0.01)
    assert found[0]["cost_high_usd"] == pytest.approx(found[0]["cost_usd"] * 4, rel=0.01)
    for name in ("cost_low_usd", "cost_usd", "cost_high_usd", "days_low", "days", "days_high"):
        assert [row[name] for row in found] == sorted(row[name] for row in found), name
    causes = [[row["share"] for row in training_causes({}, option)] for option in (found[0], found[-1])]
    assert [("start-up" in names) for names in causes] == [True, False]


def test_more_accelerators_than_the_batch_can_use_ask_for_fewer(catalog):
    with pytest.raises(NothingFitsError, match=r"Try fewer accelerators or a larger (--global-batch|global_batch=)"):
        ask(catalog, "8b", 8192, gpus=7)


def test_a_chip_of_which_no_peak_is_known_hides_no_size(catalog):
    """MI430X is announced without peaks: what it would need is unknown, and no cluster is skipped for it."""
    known, unknown = catalog.accelerator("mi325x"), catalog.accelerator("mi430x")
    run = Workload(catalog.architecture("llama-3-8b"), 4096, 1024, None, "full", 0, "", "typical")
    assert search.peak_flop_per_s(known, run) == known.bf16_tflops * 1e12
    assert search.peak_flop_per_s(replace(known, bf16_tflops=None, fp16_tflops=None), run) == known.fp8_tflops * 1e12
    assert search.peak_flop_per_s(unknown, run) == float("inf")
