"""One question, one answer: whoever is asked, speed, batch, layout, memory, peak and price agree."""

import itertools
import json
import math
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import gpucost
from gpucost.errors import NothingFitsError, PriceMissingError
from gpucost.market.budget import LIKELY
from gpucost.physics.columns import PRECISIONS
from gpucost.physics.hardware import hardware_columns, peak
from gpucost.units import GB, GIB

pytestmark = pytest.mark.later

TOKENS = 1e11
QUESTIONS = (
    ("8b", "h100-sxm", 8),
    ("70b", "h100-sxm", 512),
    ("llama-3-70b", "h200-sxm", 64),
    ("1b", "h100-sxm", 8),
    ("8b", "a100-80gb-sxm", 24),
    ("mixtral-8x7b", "h100-sxm", 128),
    ("llama-3.1-405b", "h100-sxm", 4096),
)
V100 = "v100-32gb-sxm2"


@pytest.fixture(scope="module")
def catalog():
    return gpucost.open_catalog()


def ask_estimate(catalog, model, gpu, gpus, **more):
    """Return the workload and the first option of a pinned cluster."""
    wanted = {"gpu": gpu, "gpus": gpus, "catalog": catalog, "with_facts": False} | more
    found = gpucost.estimate(model, TOKENS, **wanted).payload
    return found["workload"], found["options"][0]


def ask_throughput(catalog, model, gpu, gpus, **more):
    return gpucost.throughput(model, gpu, gpus, catalog=catalog, **more).payload


def ask_audit(catalog, **claim):
    found = gpucost.audit(catalog=catalog, **claim)
    return found, {check["name"]: check for check in found.payload["checks"]}


# Speed, batch, layout ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("model", "gpu", "gpus"), QUESTIONS)
@pytest.mark.parametrize("method", ["full", "lora"])
def test_estimate_and_throughput_find_the_same_layout_and_speed(catalog, model, gpu, gpus, method):
    if method == "lora" and gpus > 128:
        pytest.skip("a batch of 128 sequences keeps no such cluster busy")
    workload, option = ask_estimate(catalog, model, gpu, gpus, method=method)
    timed = ask_throughput(catalog, model, gpu, gpus, method=method)
    assert timed["layout"]["global_batch"] == workload["global_batch"]
    assert timed["sequence_tokens"] == workload["sequence_tokens"]
    assert timed["layout"] == option["layout"]
    assert timed["tokens_per_s_per_gpu"] == pytest.approx(option["tokens_per_s_per_gpu"], rel=1e-9)
    assert timed["mfu_fraction"] == pytest.approx(option["mfu_fraction"], rel=1e-9)
    assert timed["peak_tflops"] == pytest.approx(option["factors"]["peak_tflops"], rel=1e-9)
    assert timed["memory_gib"] * GIB / GB == pytest.approx(option["memory_gb"], rel=1e-9)


@pytest.mark.parametrize(("model", "gpu", "gpus"), QUESTIONS[:3])
def test_roofline_draws_the_step_that_throughput_times(catalog, model, gpu, gpus):
    from gpucost.ask.speed import roofline

    drawn = roofline(gpu, model=model, gpus=gpus, catalog=catalog).payload
    timed = ask_throughput(catalog, model, gpu, gpus)
    assert drawn["layout"] == timed["layout"]
    assert drawn["step_s"] == pytest.approx(timed["step_s"], rel=1e-9)
    assert drawn["peak_tflops"] == pytest.approx(timed["peak_tflops"], rel=1e-9)


@pytest.mark.parametrize(("model", "gpu", "gpus"), QUESTIONS[:4])
def test_audit_judges_a_duration_by_the_speed_that_estimate_finds(catalog, model, gpu, gpus):
    _, option = ask_estimate(catalog, model, gpu, gpus)
    _, checks = ask_audit(catalog, model=model, tokens=TOKENS, gpu=gpu, gpus=gpus, days=1)
    steps_s = TOKENS / (option["tokens_per_s_per_gpu"] * gpus)
    assert checks["duration"]["typical"] == pytest.approx(steps_s * 1.2 / 86400, rel=1e-9)  # 20 % beside the steps


@pytest.mark.parametrize(("model", "gpu", "gpus"), [("8b", "h100-sxm", 8), ("70b", "h100-sxm", 512)])
def test_owning_counts_on_the_speed_that_estimate_finds(catalog, model, gpu, gpus):
    _, option = ask_estimate(catalog, model, gpu, gpus)
    owned = gpucost.tco(gpu, gpus, model=model, tokens=TOKENS, runs_per_year=0.01, catalog=catalog)
    speed = next(row for row in owned.assumptions if row["name"] == "tokens_per_s_per_gpu")
    assert speed["value"] == pytest.approx(option["tokens_per_s_per_gpu"], rel=1e-9)


def test_choose_and_side_by_side_give_the_prices_of_their_questions(catalog):
    run = gpucost.estimate("8b", TOKENS, catalog=catalog, with_facts=False, top=1).best
    served = gpucost.inference("8b", tokens_per_month="1b", catalog=catalog).best
    chosen = gpucost.choose("8b", tokens=TOKENS, catalog=catalog).best
    beside = gpucost.compare(model="8b", tokens=TOKENS, catalog=catalog).payload["rows"][0]
    assert (chosen["gpu"], chosen["rent_usd"], chosen["days"]) == (run["gpu"], run["cost_usd"], run["days"])
    assert (beside["gpu"], beside["cost_usd"], beside["days"]) == (run["gpu"], run["cost_usd"], run["days"])
    rented = gpucost.choose("8b", purpose="serving", catalog=catalog).best
    assert rented["rent_usd"] / 12 == pytest.approx(served["usd_per_month"], rel=1e-9)
    assert [rented[name] for name in ("gpu", "provider", "option")] == [
        served[name] for name in ("gpu", "provider", "option")
    ]


THEN = "2022-06-01"  # before attention was fused, and before anyone had kernels for H100


def test_every_question_of_a_past_day_times_the_software_of_that_day(catalog):
    asked, then = {"model": "8b", "gpu": V100, "gpus": 8}, gpucost.open_catalog(as_of=THEN)
    best = gpucost.estimate(tokens=TOKENS, as_of=THEN, with_facts=False, **asked).best
    cost_usd, speed = best["cost_usd"], best["tokens_per_s_per_gpu"]
    assert gpucost.estimate(tokens=TOKENS, catalog=then, with_facts=False, **asked).best["cost_usd"] == cost_usd
    swept = gpucost.sweep(tokens=[TOKENS], as_of=THEN, **asked).frame
    assert swept["cost_usd"].iloc[0] == pytest.approx(cost_usd, rel=1e-9)
    timed = gpucost.throughput(catalog=then, **asked).payload
    assert timed["tokens_per_s_per_gpu"] == pytest.approx(speed, rel=1e-9)
    assert timed["tokens_per_s_per_gpu"] < 0.7 * gpucost.throughput(catalog=catalog, **asked).tokens_per_s_per_gpu
    layout = {name: timed["layout"][name] for name in ("tensor", "pipeline", "sharding", "micro_batch", "recompute")}
    given = gpucost.throughput(catalog=then, **asked, **layout, global_batch=timed["layout"]["global_batch"])
    assert given.tokens_per_s_per_gpu == pytest.approx(speed, rel=1e-9)
    drawn = gpucost.roofline(catalog=then, **asked).payload
    assert sum(row["time_s"] for row in drawn["points"]) == pytest.approx(timed["step_s"], rel=1e-6)
    _, checks = ask_audit(then, tokens=TOKENS, days=1, **asked)
    assert checks["duration"]["typical"] == pytest.approx(TOKENS / (speed * 8) * 1.2 / 86400, rel=1e-9)
    owned = gpucost.tco(tokens=TOKENS, runs_per_year=0.01, rent=1, draws=0, catalog=then, **asked)
    assert next(row for row in owned.assumptions if row["name"] == "tokens_per_s_per_gpu")["value"] == pytest.approx(
        speed, rel=1e-9
    )


def test_choose_and_side_by_side_of_a_past_day_give_the_cost_of_that_day():
    run = gpucost.estimate("1b", TOKENS, as_of=THEN, with_facts=False, top=1).best
    then = gpucost.open_catalog(as_of=THEN)
    beside = gpucost.compare(model="1b", tokens=TOKENS, catalog=then).payload["rows"][0]
    assert gpucost.choose("1b", tokens=TOKENS, catalog=then).best["rent_usd"] == run["cost_usd"] == beside["cost_usd"]


def test_a_day_of_today_has_the_newest_software(catalog):
    asked = {"model": "8b", "gpu": "h100-sxm", "gpus": 8, "with_facts": False}
    today = gpucost.estimate(tokens=TOKENS, as_of=str(catalog.as_of), **asked).best
    assert today["days"] == gpucost.estimate(tokens=TOKENS, catalog=catalog, **asked).best["days"]


# Memory --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["full", "lora", "qlora"])
def test_fit_and_throughput_count_the_same_bytes_for_one_layout(catalog, method):
    layout = {"tensor": 2, "sharding": 1, "micro_batch": 1, "recompute": "full"}
    timed = ask_throughput(catalog, "8b", "h100-sxm", 8, method=method, **layout)
    fitted = gpucost.fit("8b", "h100-sxm", 8, method=method, catalog=catalog, **layout)
    assert fitted.payload["sequence_tokens"] == timed["sequence_tokens"]
    assert fitted.needed_gb == pytest.approx(timed["memory_gib"] * GIB / GB, rel=1e-9)


def test_a_frozen_4_bit_weight_has_one_size(catalog):
    # NF4 with double quantisation: 4 bits, and 0.127 bits of scales (arXiv:2305.14314, section 3)
    _, checks = ask_audit(catalog, model="70b", training_gb=60, method="qlora")
    parameters = ask_estimate(catalog, "70b", "h100-sxm", 8, method="qlora")[0]
    adapters = parameters["trained_parameters"] * 16
    expected = (parameters["parameters"] * 4.127 / 8 + adapters) / GB
    assert checks["training memory"]["low"] == pytest.approx(expected, rel=1e-3)


def test_what_fits_is_not_judged_impossible(catalog):
    fitted = gpucost.fit("gpt-3-175b", V100, 1024, catalog=catalog)
    found, _ = ask_audit(catalog, model="gpt-3-175b", gpu=V100, gpus=1024, fits="training")
    assert fitted.fits
    assert found.possible


# Names ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("bare", "flagship"), [("h100", "h100-sxm5-80gb"), ("a100", "a100-sxm4-80gb")])
def test_a_bare_name_is_one_chip_and_one_answer_to_every_question_about_one_chip(catalog, bare, flagship):
    def answers(gpu):
        return {
            "throughput": ask_throughput(catalog, "8b", gpu, 8),
            "fit": gpucost.fit("8b", gpu, 8, catalog=catalog).payload,
            "roofline": gpucost.roofline(gpu, model="8b", gpus=8, catalog=catalog).payload,
            "tco": gpucost.tco(gpu, 8, rent=2.0, draws=0, catalog=catalog).payload,
            "served": gpucost.tco(gpu, 8, model="8b", tokens_per_month="5b", rent=2, draws=0, catalog=catalog).payload,
        }

    named = answers(flagship)
    for question, found in answers(bare).items():
        assert found["lead"] == named[question]["lead"], question
        assert found["warnings"][0].startswith(f"{bare} is taken as {flagship}, not "), question
        assert found["warnings"][1:] == named[question]["warnings"], question
    claim = ask_audit(catalog, model="8b", tokens="100b", gpu=bare, gpus=8, days=25)[0].payload
    assert (
        claim["lead"] == ask_audit(catalog, model="8b", tokens="100b", gpu=flagship, gpus=8, days=25)[0].payload["lead"]
    )
    assert any(flagship in note for note in claim["notes"])


# Peaks ---------------------------------------------------------------------------------------------------------------


def test_every_reader_of_a_peak_reads_the_same(catalog):
    from gpucost.claims.audit import implied_mfu

    for chip in catalog.accelerators():
        column = hardware_columns([chip], [catalog.default_system(chip.id)]).peaks_tflops[0]
        for code, precision in enumerate(PRECISIONS):
            dense = peak(chip, precision).tflops
            np.testing.assert_equal(dense, column[code], err_msg=f"{chip.id} {precision}")
            share = implied_mfu(1e12, chip, precision, 1, 1.0)
            assert share is None if math.isnan(dense) else share == pytest.approx(1 / dense), (chip.id, precision)


@pytest.mark.parametrize("flash", [True, False])
@pytest.mark.parametrize("model", ["gpt2-small", "0.5b", "mixtral-8x7b"])
def test_no_step_exceeds_the_peak_of_its_precision(catalog, model, flash):
    chips = [chip.id for chip in catalog.accelerators()]
    cases = list(itertools.product(chips, PRECISIONS, (2048, 131072)))
    gpu, precision, sequence = map(list, zip(*cases, strict=True))
    asked = {"precision": precision, "sequence": sequence, "software": "vendor", "flash": flash, "catalog": catalog}
    table = gpucost.throughput(model, gpu, 8, global_batch=512, **asked)
    timed = table["reason"] == 0
    assert timed.sum() > len(chips)
    assert table["mfu_fraction"][timed].max() < 1


def test_a_stand_in_for_a_peak_is_marked_and_a_missing_one_is_no_number(catalog):
    v100, h100 = catalog.accelerator(V100), catalog.accelerator("h100-sxm")
    assert peak(h100, "bf16").native
    assert math.isnan(peak(v100, "bf16").tflops)
    assert peak(v100, "fp16").native
    stood_in = [peak(chip, "fp16") for chip in catalog.accelerators() if not chip.fp16_tflops and chip.bf16_tflops]
    assert stood_in
    assert not any(found.native for found in stood_in)


def test_a_chip_without_bf16_is_judged_by_the_precision_that_it_is_timed_in(catalog):
    # Brown et al. 2020 (arXiv:2005.14165) trained GPT-3 on V100: 3.14e23 FLOP, in fp16
    timed = ask_throughput(catalog, "gpt-3-175b", V100, 1024)
    assert timed["layout"]["precision"] == "fp16"
    claim = {"model": "gpt-3-175b", "tokens": 300e9, "gpu": V100, "gpus": 1024}
    found, checks = ask_audit(catalog, **claim, days=80)
    assert found.possible
    assert "fp16 peak" in checks["duration"]["explanation"]
    assert ask_audit(catalog, **claim, days=8)[0].verdict == "impossible"


PLAIN_16_BIT = ("v100-sxm2-32gb", "t4", "a100-80gb-sxm", "h100-sxm", "mi300x")  # the first two lack bf16


@pytest.mark.parametrize("gpu", PLAIN_16_BIT)
def test_where_no_precision_is_named_every_command_takes_the_16_bit_format_of_the_chip(catalog, gpu):
    meant = "fp16" if gpu in PLAIN_16_BIT[:2] else "bf16"
    workload, option = ask_estimate(catalog, "1b", gpu, 8)
    assert (workload["precision"], option["layout"]["precision"]) == (meant, meant)
    assert option["factors"]["peak_tflops"] == peak(catalog.accelerator(gpu), meant).tflops
    timed = ask_throughput(catalog, "1b", gpu, 8)
    assert timed["layout"]["precision"] == meant
    assert timed["tokens_per_s_per_gpu"] == pytest.approx(option["tokens_per_s_per_gpu"], rel=1e-9)
    assert gpucost.roofline(gpu, model="1b", gpus=8, catalog=catalog).payload["precision"] == meant
    _, checks = ask_audit(catalog, model="1b", tokens="1b", gpu=gpu, gpus=8, days=30)
    assert f"{meant} peak" in checks["duration"]["explanation"]
    owned = gpucost.tco(gpu, 8, model="1b", tokens="1b", rent=1, runs_per_year=0.01, catalog=catalog)
    speed = next(row for row in owned.assumptions if row["name"] == "tokens_per_s_per_gpu")
    assert speed["value"] == pytest.approx(option["tokens_per_s_per_gpu"], rel=1e-9)


def test_chips_of_either_format_compete_in_one_ranking(catalog):
    found = gpucost.estimate("1b", "1b", gpu="v100,h100-sxm", top=0, catalog=catalog, with_facts=False).payload
    formats = {(option["gpu"].split("-")[0], option["layout"]["precision"]) for option in found["options"]}
    assert formats == {("v100", "fp16"), ("h100", "bf16")}


# Interruptions -------------------------------------------------------------------------------------------------------


@pytest.mark.fresh
def test_renting_to_compare_with_owning_counts_interruptions_as_a_training_run_does(catalog):
    from gpucost.market.hires import rentable
    from gpucost.market.interruptions import InterruptionRates, held_ratio
    from gpucost.ownership.offers import Renter

    option = gpucost.estimate("8b", "100b", gpu="h100-sxm", option="spot", gpus=64, catalog=catalog).best
    offer = next(offer for offer in catalog.offers() if offer.offer_id == option["offer_id"])
    rate = InterruptionRates(catalog.rows("spot")).of_offer(offer)
    assert rate.three[1] == pytest.approx(option["factors"]["preemptions_per_node_hour"], rel=1e-9)
    chip = catalog.accelerator("h100-sxm")
    renter = Renter(catalog, chip, 64, 8, catalog.as_of)
    entry = next(entry for entry in rentable(catalog, chip.id, 64, option="spot") if entry.offer == offer)
    rented, memory_gb = renter.choice(entry), chip.memory_gib * GIB / GB * 8
    assert rented.stretch_ratio == held_ratio(rate, 8, memory_gb)
    # a stop every 1 ÷ λ hours loses half an interval and a restart: 1 + √(2 λ C) + λ R in the first order
    stops, save = rate.three[1] * 8, memory_gb / 2 / 3600
    assert rented.stretch_ratio == pytest.approx(1 + (2 * stops * save) ** 0.5 + stops * 0.25, abs=0.02)


# Names and files -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["H100 SXM5 80GB", "h100-sxm-80gb", "a100-80gb-sxm", "p5.48xlarge"])
def test_a_chip_goes_by_the_same_names_everywhere(catalog, name):
    meant = catalog.accelerator(name).id
    assert ask_throughput(catalog, "8b", name, 8)["gpu"] == meant
    assert gpucost.fit("8b", name, 8, catalog=catalog).payload["gpu"] == meant
    assert ask_estimate(catalog, "8b", meant, 8)[1]["gpu"] == meant


def config(folder: Path) -> Path:
    path = folder / "config.json"
    shape = {
        "model_type": "llama", "num_hidden_layers": 32, "hidden_size": 4096, "num_attention_heads": 32,
        "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 128256, "tie_word_embeddings": False,
        "max_position_embeddings": 8192,
    }  # fmt: skip
    path.write_text(json.dumps({"architectures": ["LlamaForCausalLM"], **shape}), "utf-8")
    return path


def test_a_config_may_be_given_as_a_path_object(catalog, tmp_path):
    path = config(tmp_path)
    workload, _ = ask_estimate(catalog, path, "h100-sxm", 8)
    assert ask_throughput(catalog, path, "h100-sxm", 8)["model"] == workload["model"]
    assert ask_throughput(catalog, tmp_path, "h100-sxm", 8)["model"] == workload["model"]
    assert gpucost.throughput([path, path], "h100-sxm", 8, catalog=catalog).speeds.step.total_s.shape == (2,)
    assert gpucost.fit(path, "h100-sxm", 8, catalog=catalog).payload["model"] == workload["model"]
    assert gpucost.inference(path, gpu="h100-sxm", catalog=catalog).best["gpu"] == "h100-sxm5-80gb"
    assert gpucost.fit(path, "h100-sxm", serving=True, catalog=catalog).fits
    assert gpucost.audit(model=path, gpu="h100-sxm", gpus=8, fits="training", catalog=catalog).possible
    assert gpucost.tco("h100-sxm", model=path, tokens=TOKENS, catalog=catalog).payload["kind"] == "tco"


# Prices --------------------------------------------------------------------------------------------------------------


def test_a_price_of_low_confidence_is_said_to_be_one_by_training_and_by_serving(catalog):
    asked = {"gpu": "h100", "catalog": catalog, "top": 0}
    trained = gpucost.estimate("8b", 1e10, all_regions=True, with_facts=False, **asked)
    for found in (trained, gpucost.inference("8b", **asked)):
        options = found.payload["options"]
        doubted = {row["offer_id"] for row in options if row["price_confidence"] == "low"}
        said = {row["offer_id"] for row in options if any("low confidence" in note for note in row["notes"])}
        assert said == doubted != set()


def test_prices_not_used_are_counted_by_training_and_by_serving_alike(catalog):
    trained = gpucost.estimate("8b", 1e10, gpu="h100", catalog=catalog, with_facts=False)
    served = gpucost.inference("8b", gpu="h100", catalog=catalog)
    counted = [[line for line in found.payload["remarks"] if "not used" in line] for found in (trained, served)]
    assert counted[0] == counted[1]
    assert len(counted[0]) == 1


def test_offers_that_nobody_sells_are_refused_in_one_sentence(catalog):
    asked = {"gpu": "v100", "region": "africa", "catalog": catalog}
    said = []
    for ask in (lambda: gpucost.estimate("8b", 1e9, **asked), lambda: gpucost.inference("1b", **asked)):
        with pytest.raises(PriceMissingError) as refused:
            ask()
        said.append(str(refused.value))
    assert said[1].startswith(said[0])  # what is served has a speed all the same


@pytest.mark.fresh
def test_an_offer_costs_the_same_wherever_it_is_named(catalog):
    where = {"gpu": "h100-sxm", "provider": "crusoe", "option": "on_demand"}
    listed = {offer.offer_id: offer for offer in catalog.offers(**where)}
    assert listed
    trained = gpucost.estimate("8b", "1b", catalog=catalog, with_facts=False, **where).best
    served = gpucost.inference("8b", catalog=catalog, **where).best
    for option in (trained, served):
        same = [offer for offer in listed.values() if offer.instance_type == option["instance_type"]]
        assert option["usd_per_gpu_hour"] in {offer.usd_per_gpu_hour for offer in same}
        assert option["price_observed_on"] in {str(offer.observed_on) for offer in same}


@pytest.mark.parametrize("gpu", ["h100-sxm", "h200-sxm", "b200", "a100-sxm4-80gb"])
@pytest.mark.parametrize("gpus", [8, 64])
@pytest.mark.fresh
def test_renting_costs_the_same_in_every_question(catalog, gpu, gpus):
    """One rule: the first offer on demand that one can order, at its quote."""
    first = gpucost.estimate("8b", "100b", gpu=gpu, gpus=gpus, option="on_demand", catalog=catalog).best
    rent = gpucost.tco(gpu=gpu, gpus=gpus, catalog=catalog)
    rented = next(row for row in rent.options if row["name"] == "rent")
    assert rented["offer_id"] == first["offer_id"]
    for name in ("usd_per_gpu_hour", "price_observed_on"):
        assert rented[name] == (first[name] if name == "price_observed_on" else pytest.approx(first[name]))
    claim = gpucost.audit(model="8b", gpu=gpu, gpus=gpus, tokens="100b", days=30, cost=1e5, catalog=catalog)
    price = next(check for check in claim.options if check["name"] == "price")
    assert price["typical"] == pytest.approx(first["usd_per_gpu_hour"])
    assert f"{first['usd_per_gpu_hour']:.2f}" in price["explanation"]


def test_choose_rents_at_the_price_of_its_question_and_shows_the_quote(catalog):
    chosen = gpucost.choose("8b", purpose="training", tokens="100b", gpu="h100-sxm", catalog=catalog)
    first = gpucost.estimate("8b", "100b", gpu="h100-sxm", catalog=catalog).best
    row = chosen.options[0]
    assert row["rent_usd"] == first["cost_usd"]
    assert row["usd_per_gpu_hour"] == first["usd_per_gpu_hour"]


# Examples ------------------------------------------------------------------------------------------------------------


def test_every_question_says_that_sequences_are_longer_than_the_model_takes(catalog):
    asked = {"model": "llama-2-13b", "gpu": "h100-sxm", "gpus": 64, "catalog": catalog}
    questions = (gpucost.fit, gpucost.throughput, gpucost.roofline, partial(gpucost.estimate, tokens="1b"))
    for question in questions:
        usual, long = (question(**asked, sequence=tokens).payload["warnings"] for tokens in (4096, 65536))
        assert any("4,096 tokens" in line for line in set(long) - set(usual))


def test_a_sequence_of_millions_of_tokens_that_fits_is_timed_and_priced(catalog):
    """On 256 H100s one sequence of 10 million tokens of 8B fits, split over tensor 8 and context 32."""
    asked = {"model": "8b", "gpu": "h100-sxm", "sequence": "10m", "catalog": catalog}
    assert gpucost.fit(**asked, gpus=256).payload["fits"]
    timed = gpucost.throughput(**asked, gpus=256)
    assert timed.layout["context"] > 8
    costed = gpucost.estimate(**asked, tokens="1b", gpus=256, deadline="none", top=1).payload["options"][0]
    assert costed["layout"]["context"] == timed.layout["context"]


@pytest.mark.parametrize(
    ("gpus", "sequence", "said"),
    [(65, "10m", "65 GPUs"), (64, "10m", "the memory"), (2048, "8k", "batch of 1")],
)
def test_a_search_without_a_layout_gives_the_true_reason(catalog, gpus, sequence, said):
    with pytest.raises(NothingFitsError, match=said):
        gpucost.throughput("8b", "h100-sxm", gpus=gpus, sequence=sequence, global_batch=1, catalog=catalog)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["throughput", "roofline", "fit", "audit"])
def test_the_examples_of_a_command_run(name, tmp_path, monkeypatch):
    import re
    import shlex

    from click.testing import CliRunner

    from gpucost.cli import cli
    from gpucost.errors import CheckFailedError

    monkeypatch.chdir(tmp_path)
    (tmp_path / "article.txt").write_text("An H100 SXM reaches 989 TFLOPS dense in BF16.\n", "utf-8")
    text = CliRunner().invoke(cli, [name, "--help"], terminal_width=300).output.replace("\\\n", "")
    examples = [line.strip() for line in text.splitlines() if re.match(rf"\s+gpucost {name} -", line)]
    assert examples
    for example in examples:
        result = CliRunner().invoke(cli, shlex.split(example)[1:])
        assert result.exit_code == 0 or isinstance(result.exception, CheckFailedError), f"{example}: {result.exception}"


# Formats -------------------------------------------------------------------------------------------------------------


def test_models_and_serving_name_the_same_published_format(catalog):
    from gpucost.catalog.models import model_rows
    from gpucost.workloads.service import native_format

    presets = catalog.presets
    shown = {row["id"]: row for row in model_rows(catalog, presets)}
    assert [(one.name, native_format(one)) for one in presets if native_format(one) != "bf16"] == [
        (one.name, shown[one.name]["native_precision"]) for one in presets if native_format(one) != "bf16"
    ]
    for name, size_gib in {"gpt-oss-120b": 60.8, "gpt-oss-20b": 12.8}.items():  # arXiv:2508.10925, table 1
        assert shown[name]["weight_bytes"] / GIB == pytest.approx(size_gib, rel=0.01), name
    assert shown["kimi-k2"]["weight_bytes"] == pytest.approx(shown["kimi-k2"]["parameters"], rel=0.01)


# Offers: one table behind every face ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def run(catalog):
    return gpucost.estimate("8b", TOKENS, catalog=catalog, with_facts=False, top=0).payload


@pytest.fixture(scope="module")
def service(catalog):
    return gpucost.inference("8b", tokens_per_month="1b", catalog=catalog, top=0).payload


def ranked(rows):
    return [row for row in rows if row["rank"] is not None]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("face", "cost", "more"),
    [
        ("estimates", "cost_usd", {"tokens": "100b"}),
        ("served", "usd_per_mtok", {"tokens_per_month": "1b"}),
    ],
)
def test_sql_by_rank_is_the_answer_to_the_digit(catalog, request, face, cost, more):
    answer = request.getfixturevalue("run" if face == "estimates" else "service")
    rows = catalog.ask(f"SELECT * FROM {face} ORDER BY rank NULLS LAST", {"model": "8b", **more}).rows
    first = rows[: len(answer["options"])]
    names = ("rank", "offer_id", "gpus", "usd_per_gpu_hour", cost)
    assert [[row[name] for name in names] for row in first] == [
        [row[name] for name in names] for row in answer["options"]
    ]
    behind = rows[len(first) :]
    assert behind
    assert all(row["rank"] is None and row["reason"] for row in behind)
    labels = {row["offer_id"]: row["labels"] for row in answer["offers"] if row["labels"]}
    assert {row["offer_id"]: (row["labels"] or "").split("; ") for row in rows if row["labels"]} == labels


@pytest.mark.slow
def test_sql_says_of_each_price_what_the_list_of_prices_says(catalog):
    from gpucost.catalog.prices import current

    listed, _ = current(catalog, catalog.offer_filter(None, None, None, None), None)
    rows = catalog.ask("SELECT offer_id, ranks, stale, not_ranked_because FROM prices", {}).rows
    assert {tuple(row.values()) for row in rows} == {
        (row["offer_id"], row["rankable"], row["stale"], row["not_ranked_because"]) for row in listed
    }


@pytest.mark.slow
def test_the_examples_of_sql_return_what_one_can_order(catalog, run):
    """The help asks `estimates` by rank, and joins speeds with prices that rank and are not stale."""
    first = (
        "SELECT rank, provider, gpu, gpus, cost_usd, days FROM estimates WHERE rank IS NOT NULL ORDER BY rank LIMIT 10"
    )
    rows = catalog.ask(first, {"model": "8b", "tokens": "100b"}).rows
    assert [row["cost_usd"] for row in rows] == [row["cost_usd"] for row in run["options"][:10]]
    joined = """SELECT offer_id FROM speeds JOIN prices USING (gpu, gpus) WHERE fits AND ranks AND NOT stale
        ORDER BY usd_per_gpu_hour * gpu_hours LIMIT 10"""
    offers = {offer.offer_id for offer in catalog.offers()}
    assert {row["offer_id"] for row in catalog.ask(joined, {"model": "8b", "tokens": "100b"}).rows} <= offers


@pytest.mark.parametrize(("name", "cost"), [("run", "cost_usd"), ("service", "usd_per_mtok")])
def test_options_are_the_ranked_rows_of_the_table(request, name, cost):
    answer = request.getfixturevalue(name)
    table = {row["rank"]: row for row in ranked(answer["offers"])}
    assert [*table] == sorted(table)
    options = {row["rank"]: row for row in answer["options"]}
    for rank, row in table.items():
        option = options[rank]
        assert [row[key] for key in ("offer_id", "gpus", "usd_per_gpu_hour", cost)] == [
            option[key] for key in ("offer_id", "gpus", "usd_per_gpu_hour", cost)
        ]
        assert row["reason"] == ""
    unranked = [row for row in answer["offers"] if row["rank"] is None]
    assert all(row["reason"] and row["offer_id"] and row["usd_per_gpu_hour"] > 0 for row in unranked)


@pytest.mark.parametrize(("name", "budget"), [("run", "budget_usd"), ("service", "budget_usd_per_mtok")])
def test_offers_stand_by_their_budgets_and_the_first_of_a_region_is_the_first(request, name, budget):
    answer = request.getfixturevalue(name)
    rows = ranked(answer["offers"])
    for stand in {row["standing"] for row in rows}:
        budgets = [row[budget] for row in rows if row["standing"] == stand]
        assert budgets == sorted(budgets)
    firsts = {}
    for option in answer["options"]:
        firsts.setdefault(option["region"], option)
    by_region = {row["region"]: row for row in answer["regions"]}
    for region, option in firsts.items():
        assert by_region[region][budget] <= option[budget]


def test_choose_compare_page_and_agents_read_the_table(catalog, run):
    from gpucost.agents.compact import short
    from gpucost.page import questions
    from gpucost.render.build import document
    from gpucost.render.document import Chart

    best = run["options"][0]
    chosen = gpucost.choose("8b", tokens=TOKENS, catalog=catalog).payload
    of_gpu = {}
    for row in run["options"]:
        of_gpu.setdefault(row["gpu"], row)
    names = ("gpu", "gpus", "provider", "option", "usd_per_gpu_hour", "budget_usd")
    assert [[row[name] for name in names] for row in chosen["rows"]] == [
        [row[name] for name in names] for row in of_gpu.values()
    ]
    assert [row["rent_usd"] for row in chosen["rows"]] == [row["cost_usd"] for row in of_gpu.values()]
    picture = next(b for part in document(chosen).sections for b in part.blocks if isinstance(b, Chart))
    assert [bar["rent_usd"] for bar in picture.data] == [row["rent_usd"] for row in chosen["rows"]][:15]
    told = short(run)["options"]
    assert [row["rank"] for row in told] == sorted(row["rank"] for row in told)
    assert told[0]["cost_usd"] == round(best["cost_usd"])
    beside = gpucost.compare(model="8b", gpu="tpu-v5p,b200", tokens=TOKENS, catalog=catalog)
    assert [row["cost_usd"] is None for row in beside.payload["rows"]] == [False, True]  # rows with answers first
    alone = gpucost.estimate("8b", TOKENS, gpu="b200", catalog=catalog, with_facts=False).best
    assert beside.best["cost_usd"] == alone["cost_usd"]  # one falls back on what is asked for alone
    plan = questions.plan({"model": "8b", "tokens": "100b"})
    assert [(row["provider"], row["cost_usd"]) for row in plan["rows"]] == [
        (row["provider"], row["cost_usd"]) for row in run["options"][: questions.ROWS]
    ]


def test_a_label_is_one_offer_at_one_price_on_every_screen(run):
    labelled = {row["labels"][0]: row for row in run["offers"] if row["labels"]}
    for shown in run["highlights"]:
        row = labelled[shown["kind"]]
        assert [row[key] for key in ("provider", "gpu", "gpus", "cost_usd", "usd_per_gpu_hour")] == [
            shown[key] for key in ("provider", "gpu", "gpus", "cost_usd", "usd_per_gpu_hour")
        ]
    sure = [row for row in run["offers"] if row["standing"] == "orderable"]
    lowest = min(row["budget_usd"] for row in sure)
    assert labelled["lowest budget"]["budget_usd"] == lowest
    labels = {label: row for row in run["offers"] for label in row["labels"]}
    soon = [row for row in sure if row["budget_usd"] <= 2 * lowest and row["chance_available_fraction"] >= LIKELY]
    assert labels["fastest"]["days"] == min(row["days"] for row in soon)
    if unlikely := labels.get("if still there"):  # long after, no quote is that much lower
        assert unlikely["chance_available_fraction"] < LIKELY
        assert unlikely["cost_usd"] < 0.9 * labels["lowest budget"]["cost_usd"]
