"""Claims in circulation, held against arithmetic: the wrong ones are found, the right ones pass."""

import numpy as np
import pytest

import gpucost
from gpucost.claims.audit import implied_mfu
from gpucost.errors import UsageError
from gpucost.money.cashflow import annuity_usd, simple_payback_months
from gpucost.physics import collectives, transformer
from gpucost.physics.serving.roof import decode_roof


@pytest.fixture(scope="module")
def catalog():
    return gpucost.open_catalog()


def check(result, name):
    return next(row for row in result.payload["checks"] if row["name"] == name)


# "An 8B model on 100B tokens takes 7 to 10 days on 8 A100 and costs 6,291 USD."


def test_6nd_of_the_8b_run_needs_279_percent_of_the_peak(catalog):
    # 6 × 8.03e9 × 1e11 = 4.82e21 FLOP; 8 × 312e12 × 8 days = 1.73e21.
    flop = 6 * float(transformer.total_parameters(transformer.stack([catalog.architecture("llama-3-8b")]))[0]) * 1e11
    chip = catalog.accelerator("a100-80gb-sxm")
    for days, expected in ((8, 2.79), (7, 3.19), (10, 2.23)):
        assert implied_mfu(flop, chip, "bf16", 8, days * 86400) == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("days", [7, 8, 10])
def test_an_8b_run_in_days_on_8_a100_is_impossible(catalog, days):
    found = gpucost.audit(model="8b", tokens="100b", gpu="a100-80gb", gpus=8, days=days, cost=6291, catalog=catalog)
    assert found.verdict == "impossible"
    duration = check(found, "duration")
    assert duration["verdict"] == "impossible"
    assert 45 <= duration["typical"] <= 75
    assert "favourable" in " ".join(found.payload["notes"])


def test_the_same_run_in_two_months_is_possible(catalog):
    found = gpucost.audit(model="8b", tokens="100b", gpu="a100-80gb-sxm", gpus=8, days=56, catalog=catalog)
    assert found.verdict == "possible"


def test_the_price_that_the_claim_implies_is_a_price_of_its_day(catalog):
    # 32.77 USD an hour for 8 accelerators, 8 days: the multiplication is right, the days are not.
    found = gpucost.audit(
        model="8b", tokens="100b", gpu="a100-80gb", gpus=8, days=8, cost=32.77 * 24 * 8, catalog=catalog
    )
    assert check(found, "price")["value"] == pytest.approx(32.77 / 8)
    assert check(found, "price")["verdict"] == "possible"


def test_spot_and_neocloud_variants_inherit_the_error(catalog):
    for cost in (1887, 2227):
        found = gpucost.audit(model="8b", tokens="100b", gpu="a100-80gb", gpus=8, days=8, cost=cost, catalog=catalog)
        assert check(found, "cost")["verdict"] != "possible"
        assert check(found, "cost")["low"] > cost


def test_fp8_makes_more_possible_than_bf16_where_nobody_names_the_precision(catalog):
    wanted = {"model": "8b", "tokens": "100b", "gpu": "h100-sxm", "gpus": 8, "days": 6, "catalog": catalog}
    assert gpucost.audit(**wanted).verdict == "implausible"
    assert gpucost.audit(**wanted, precision="bf16").verdict == "impossible"


@pytest.mark.parametrize(
    ("model", "tokens", "gpu_hours", "verdict"),
    [
        ("llama-3.1-405b", "15.6t", "30.84m", "possible"),  # published by Meta: the model card of Llama 3.1
        ("llama-3-70b", "15t", "6.4m", "possible"),  # published by Meta: the model card of Llama 3
        ("llama-3-8b", "15t", "1.3m", "possible"),  # the same card: its hours hold more than its steps
        (
            "llama-3-70b",
            "15t",
            "0.9m",
            "impossible",
        ),  # 6 × 70.6e9 × 15e12 FLOP, and attention: 105 % in fp8
        ("llama-3-70b", "15t", "40m", "implausible"),
    ],
)
def test_gpu_hours_without_a_count_claim_no_count(catalog, model, tokens, gpu_hours, verdict):
    wanted = {"model": model, "tokens": tokens, "gpu": "h100-sxm", "catalog": catalog}
    found = gpucost.audit(**wanted, gpu_hours=gpu_hours)
    assert found.verdict == verdict
    row = check(found, "duration")
    assert row["unit"] == "GPU-hours"
    assert row["value"] == pytest.approx(float(gpu_hours[:-1]) * 1e6)
    assert "memory" not in row["explanation"]
    assert found.payload["notes"][-1].startswith("Number of GPUs")
    assert found.payload["notes"][-1].endswith("GPU-hours.")
    cost = gpucost.audit(**wanted, cost="30m")  # says nothing of a count either
    assert f"{row['typical']:,.0f} accelerator-hours" in check(cost, "cost")["explanation"]


def test_gpu_hours_on_chips_too_small_in_any_number_are_implausible(catalog):
    found = gpucost.audit(model="405b", tokens="10b", sequence="1m", gpu="t4", gpu_hours="1m", catalog=catalog)
    assert found.verdict == "implausible"
    assert "No usual number" in found.payload["lead"]
    assert not any("not given" in note for note in found.payload["notes"])


def test_short_runs_are_said_in_hours(catalog):
    found = gpucost.audit(model="70b", tokens="1b", gpu="h100-sxm", gpus=64, gpu_hours=3000, catalog=catalog)
    row = check(found, "duration")
    assert (row["unit"], row["value"]) == ("days", 3000 / 64 / 24)
    assert "in 1.953 days on 64" in row["explanation"]
    assert f"about {24 * row['typical']:.1f} hours ({24 * row['low']:.1f} to" in found.payload["lead"]


# "Training memory is parameters × 4 bytes × 2", that is 8 bytes per parameter.


@pytest.mark.parametrize(
    ("model", "claimed_gb", "true_gb"),
    [("llama-2-7b", 56, 108), ("llama-2-13b", 104, 208), ("llama-3-70b", 564, 1129), ("llama-3.1-405b", 3246, 6494)],
)
def test_eight_bytes_per_parameter_forget_the_master_weights(catalog, model, claimed_gb, true_gb):
    found = gpucost.audit(model=model, training_gb=claimed_gb, catalog=catalog)
    row = check(found, "training memory")
    assert row["verdict"] == "implausible"  # only pure 16-bit states come near it
    assert row["low"] == pytest.approx(true_gb, rel=0.01)


@pytest.mark.parametrize(("model", "gpus"), [("7b", 1), ("13b", 2), ("70b", 8), ("405b", 40)])
def test_models_do_not_train_on_as_few_as_claimed(catalog, model, gpus):
    found = gpucost.audit(model=model, gpu="h100-sxm", gpus=gpus, fits="training", catalog=catalog)
    assert found.verdict == "impossible"
    assert check(found, "fits")["low"] > gpus


def test_a_7b_model_trains_on_eight(catalog):
    assert gpucost.audit(model="7b", gpu="h100-sxm", gpus=8, fits="training", catalog=catalog).possible


@pytest.mark.parametrize(
    ("model", "precision", "claimed_gb", "really"),
    [("llama-2-13b", "bf16", 52, "fp32"), ("llama-3-70b", "fp8", 280, "fp32")],
)
def test_weights_said_in_the_wrong_precision(catalog, model, precision, claimed_gb, really):
    found = gpucost.audit(model=model, precision=precision, weights_gb=claimed_gb, catalog=catalog)
    assert found.verdict == "impossible"
    assert f"their size in {really}" in found.payload["lead"]


def test_right_claims_about_weights_pass(catalog):
    assert gpucost.audit(model="llama-3-70b", precision="bf16", weights_gb=140, catalog=catalog).verdict == "possible"
    assert gpucost.audit(model="llama-3-70b", precision="fp8", weights_gb=70.6, catalog=catalog).verdict == "possible"


def test_a_13b_run_needs_more_than_124_gb(catalog):
    # 52 of weights, 20 of activations, 52 of optimizer: gradients and master weights are missing.
    assert (
        check(gpucost.audit(model="13b", training_gb=124, catalog=catalog), "training memory")["verdict"] != "possible"
    )


# "8 RTX 6000 Ada serve a 70B model in FP8 at 160 tokens/s, 4 H100 at 560."


def test_decoding_is_bound_by_bandwidth(catalog):
    ada = gpucost.audit(
        model="llama-3-70b", precision="fp8", gpu="rtx-6000-ada", gpus=8, tokens_per_s=160, batch=1, catalog=catalog
    )
    hopper = gpucost.audit(
        model="llama-3-70b", precision="fp8", gpu="h100-sxm", gpus=4, tokens_per_s=560, batch=1, catalog=catalog
    )
    assert ada.verdict == hopper.verdict == "impossible"
    # 8 × 960 ÷ 70.6 = 109 and 4 × 3,350 ÷ 70.6 = 190 tokens/s: 1.74 times, not almost four.
    dense = catalog.architecture("llama-3-70b")
    cards = [(catalog.accelerator("rtx-6000-ada"), 8), (catalog.accelerator("h100-sxm"), 4)]
    roofs = [decode_roof(dense, chip, "fp8", gpus).at(1)[0] for chip, gpus in cards]
    assert roofs == pytest.approx([109, 190], abs=1)
    assert roofs[1] / roofs[0] == pytest.approx(1.74, abs=0.01)


def test_a_batch_lifts_the_roof(catalog):
    found = gpucost.audit(
        model="llama-3-70b", precision="fp8", gpu="h100-sxm", gpus=4, tokens_per_s=560, batch=16, catalog=catalog
    )
    assert found.possible


def test_one_h100_holds_the_fp8_weights_of_70b(catalog):
    assert gpucost.audit(
        model="llama-3-70b", precision="fp8", gpu="h100-sxm", gpus=1, fits="serving", catalog=catalog
    ).possible
    assert not gpucost.audit(
        model="llama-3-70b", precision="bf16", gpu="h100-sxm", gpus=1, fits="serving", catalog=catalog
    ).possible


# "80 GPUs for 800,000 USD pay back in about five years at 10,000 hours a month."


def test_the_enterprise_example(catalog):
    assert simple_payback_months(800e3, 20e3, 5e3) == pytest.approx(53.3, abs=0.05)
    found = gpucost.audit(
        buy="800k",
        rent_monthly="20k",
        own_monthly="5k",
        payback_months=60,
        gpus=80,
        gpu_hours_per_month=10_000,
        catalog=catalog,
    )
    assert check(found, "payback")["verdict"] == "impossible"
    assert check(found, "utilisation")["value"] == pytest.approx(0.171, abs=0.001)
    assert "about 17 GPUs" in check(found, "utilisation")["explanation"]
    assert "renting" in check(found, "present value")["explanation"]


def test_the_right_sized_cluster_pays_back(catalog):
    # 18 accelerators at 10,000 USD: 180,000 ÷ (20,000 − 1,060) a month.
    found = gpucost.audit(
        buy="180k",
        rent_monthly="20k",
        own_monthly=1060,
        payback_months=9.5,
        gpus=18,
        gpu_hours_per_month=10_000,
        catalog=catalog,
    )
    assert found.verdict == "possible"


def test_two_consumer_cards_at_full_use(catalog):
    # 4,000 USD against 2 × 0.40 USD × 730 hours a month of rent and 60 USD of power.
    assert 7 < simple_payback_months(4000, 2 * 0.40 * 730, 60) < 8


def test_owning_that_costs_as_much_as_renting_never_pays_back(catalog):
    found = gpucost.audit(buy="100k", rent_monthly="1k", own_monthly="2k", catalog=catalog)
    assert found.verdict == "impossible"
    assert "never pays" in found.payload["lead"]


def test_present_value_of_an_annuity():
    # 20,000 a month for 60 months at 10 % effective: i = 1.1^(1/12) − 1 = 0.797 %.
    rate = 1.1 ** (1 / 12) - 1
    assert annuity_usd(20e3, 60, 0.10) == pytest.approx(sum(20e3 / (1 + rate) ** month for month in range(1, 61)))
    assert annuity_usd(20e3, 60, 0.0) == pytest.approx(1.2e6)


# Arithmetic of the network --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ranks", "gb_per_s", "gigabytes", "claimed_s", "true_s"),
    [
        (8, 32, 28, 0.875, 1.53),
        (8, 300, 28, 0.093, 0.163),
        (8, 32, 14, None, 0.766),
        (4, 31.5, 40, 20, 1.90),
        (2, 32, 28, None, 0.875),
    ],
)
def test_an_all_reduce_is_not_a_copy(ranks, gb_per_s, gigabytes, claimed_s, true_s):
    # "7B gradients of 28 GB take 875 ms over PCIe 4 and 93 ms over NVLink"; "40 GB among 4 take tens of seconds".
    one = np.ones(1)
    found = collectives.all_reduce_s(
        collectives.Tier(ranks * one, gb_per_s * one, gb_per_s * one, 0 * one), gigabytes * 1e9 * one
    )[0]
    assert found == pytest.approx(true_s, rel=0.01)
    assert claimed_s is None or not 0.8 < claimed_s / found < 1.25


@pytest.mark.parametrize(
    "wanted",
    [{}, {"model": "8b"}, {"buy": "1k"}, {"model": "8b", "gpu": "h100-sxm", "tokens": "100b", "gpus": 8}],
)
def test_a_claim_without_a_claim_is_refused(catalog, wanted):
    with pytest.raises(UsageError):
        gpucost.audit(catalog=catalog, **wanted)


def test_a_model_named_in_full_is_no_note_and_what_offloading_could_change_is_said():
    named, short = (
        gpucost.audit(model=name, gpu="h100-sxm", gpus=8, fits="training").payload
        for name in ("llama-3.1-405b", "llama-3.1-405B")
    )
    assert not any("= llama-3.1-405b" in note for note in named["notes"])
    assert any("= llama-3.1-405b" in note for note in short["notes"])
    assert "offloading states" in named["checks"][0]["explanation"]


@pytest.mark.parametrize(
    ("claim", "verdict", "said"),
    [
        ({"model": "7b", "gpu": "a100-80gb"}, "implausible", "memory of 1"),
        ({"model": "1b", "gpu": "rtx-a5000"}, "implausible", "(--offload states)"),
        ({"model": "405b", "gpu": "rtx-a5000", "days": 3000}, "impossible", "memory of 1"),
    ],
)
def test_a_run_that_the_memory_of_the_host_makes_possible_is_not_called_impossible(catalog, claim, verdict, said):
    found = gpucost.audit(**{"tokens": "100m", "gpus": 1, "days": 30, "catalog": catalog, **claim})
    assert found.verdict == verdict
    assert said in str(check(found, "duration"))
