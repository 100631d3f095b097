"""`gpucost fit` as a user meets it, and the changes that it proposes, tried again one by one."""

import json

import pytest
from click.testing import CliRunner

import gpucost
from gpucost.catalog import open_catalog
from gpucost.cli.question import command_of
from gpucost.errors import AmbiguousNameError, NothingFitsError, UnknownNameError, UsageError
from gpucost.fitting.fit import COSTS
from gpucost.physics.training.memory import CONTEXT_BYTES, FRAGMENTATION_RATIO
from gpucost.units import GB, GIB

command = command_of("fit")


@pytest.fixture(scope="module")
def catalog():
    return open_catalog()


def fit(catalog, *arguments, **wanted):
    return gpucost.fit(*arguments, catalog=catalog, **wanted)


def run(*arguments):
    return CliRunner().invoke(command, list(arguments))


# What is known from elsewhere -----------------------------------------------------------------------------------


def test_a_70b_model_needs_more_than_a_node_of_h100(catalog):
    """16 bytes × 70.55 B = 1,129 GB of states exceed 8 × 80 GB and fit in 16 × 80 GB."""
    found = fit(catalog, "llama-3-70b", "h100-sxm")
    assert found.fits
    assert found.gpus == 16


def test_an_8b_model_does_not_fit_one_h100_with_adamw(catalog):
    """Its states alone are 128 GB."""
    found = fit(catalog, "llama-3-8b", "h100-sxm", 1)
    assert not found.fits
    assert found.needed_gb > 128
    assert found.smallest_change["fits"]


@pytest.mark.parametrize(("model", "gpu"), [("llama-65b", "rtx-a6000"), ("llama-33b", "rtx-4090")])
def test_qlora_fits_where_its_paper_says(catalog, model, gpu):
    """arXiv:2305.14314: 65B on one 48 GB GPU, 33B on one 24 GB GPU, at the paper's sequence of 512."""
    assert fit(catalog, model, gpu, 1, method="qlora", sequence=512).fits


def test_16_bit_lora_of_65b_does_not_fit_48_gb(catalog):
    """arXiv:2305.14314, abstract: 16-bit fine-tuning of 65B needs far more than 48 GB; its weights alone are 130 GB."""
    assert not fit(catalog, "65b", "rtx-a6000", 1, method="lora", sequence=512).fits


# The answer ------------------------------------------------------------------------------------------------------


def test_components_add_up_and_each_has_its_formula_and_reference(catalog):
    payload = fit(catalog, "llama-3-8b", "h100-sxm", 8).payload
    assert sum(row["needed_gb"] for row in payload["components"]) == pytest.approx(payload["needed_gb"], rel=1e-9)
    assert sum(row["share_fraction"] for row in payload["components"]) == pytest.approx(1)
    assert payload["headroom_gb"] == pytest.approx(payload["usable_gb"] - payload["needed_gb"])
    for row in payload["components"]:
        assert row["formula"]
        assert row["reference"]
    assert payload["sources"]


def test_the_fewest_gpus_are_the_fewest(catalog):
    found = fit(catalog, "llama-3-8b", "h100-sxm")
    assert found.fits
    assert not fit(catalog, "llama-3-8b", "h100-sxm", found.gpus // 2).fits


@pytest.mark.parametrize(
    ("change", "wanted"),
    [
        ("QLoRA, rank 16", {"method": "qlora"}),
        ("LoRA, rank 16", {"method": "lora"}),
        ("bf16 states without a master copy", {"optimizer": "adamw-bf16"}),
        ("optimizer states in host memory", {"offload": "states"}),
        ("more GPUs", {"gpus": None}),
    ],
)
def test_a_proposed_change_does_what_it_says(catalog, change, wanted):
    proposed = fit(catalog, "llama-3-8b", "h100-sxm", 1).payload["changes"]
    row = next(row for row in proposed if row["change"].startswith(change))
    again = fit(catalog, "llama-3-8b", "h100-sxm", **{"gpus": 1, **wanted})
    assert row["helps"]
    assert again.fits
    assert again.needed_gb == pytest.approx(row["needed_gb"], rel=1e-9)
    assert again.gpus == row["gpus"]


def test_the_gentlest_change_comes_first(catalog):
    explicit = fit(catalog, "llama-3-8b", "h100-sxm", 8, sharding=0, tensor=1, pipeline=1, recompute="none")
    assert not explicit.fits
    assert explicit.smallest_change["change"] == "shard weights too (FSDP)"
    costs = [row["cost"] for row in explicit.payload["changes"] if row["helps"]]
    assert costs == sorted(costs, key=COSTS.index)


def test_host_memory_has_an_end(catalog):
    """States of 671 B parameters are 9.4 TB: no proposal for one node with 2 TB of host memory."""
    rows = fit(catalog, "deepseek-v3", "h200-sxm").payload["changes"]
    assert not any("host memory" in row["change"] and row["gpus"] <= 8 for row in rows)


def test_sizes_grow_with_the_model_and_adapters_need_no_more(catalog):
    rows = fit(catalog, "llama-3-8b", "h100-sxm").payload["sizes"]
    assert [row["size"] for row in rows] == ["7b", "13b", "34b", "70b", "180b", "405b", "671b", "1t"]
    for method in ("full_gpus", "lora_gpus", "qlora_gpus"):
        counts = [row[method] for row in rows]
        assert counts == sorted(counts)
    assert all(row["full_gpus"] >= row["lora_gpus"] >= row["qlora_gpus"] for row in rows)


def test_a_million_tokens_are_spread_over_context_ranks(catalog):
    """The layers' inputs alone, 2^20 tokens × 8,192 bytes × 32 ÷ 8 tensor ranks, are 34 GB; then come the logits."""
    found = fit(catalog, "llama-3-8b", "h100-sxm", sequence=2**20)
    assert found.payload["layout"]["context"] > 1
    assert found.fits
    assert not fit(catalog, "llama-3-8b", "h100-sxm", found.gpus, sequence=2**20, context=1, pipeline=1).fits


# The command -----------------------------------------------------------------------------------------------------


def test_the_command_writes_every_format():
    asked = ("--model", "llama-3-8b", "--gpu", "h100-sxm", "--gpus", "8")
    for format_, sign in (("table", "Fits "), ("md", "| component"), ("csv", "component,needed_gb")):
        result = run(*asked, "--format", format_)
        assert result.exit_code == 0, result.output
        assert sign in result.output
    payload = json.loads(run(*asked, "--format", "json").output)
    assert payload["kind"] == "fit"
    assert payload["fits"] is True
    assert payload["gpus"] == 8


def test_explain_shows_formulas_and_references():
    plain = run("--model", "llama-3-8b", "--gpu", "h100-sxm", "--gpus", "8").output
    explained = run("--model", "llama-3-8b", "--gpu", "h100-sxm", "--gpus", "8", "--explain").output
    assert "arXiv:1910.02054" in explained
    assert "arXiv:1910.02054" not in plain


def test_what_does_not_fit_is_exit_code_6():
    result = run("--model", "llama-3-70b", "--gpu", "h100-sxm", "--gpus", "1")
    assert result.exit_code == 6
    assert "Does not fit" in result.output
    assert "What would make it fit" in result.output


def test_a_model_that_fits_nowhere_says_so_in_one_sentence_with_a_way_out():
    result = run(
        "--model", "llama-3-70b", "--gpu", "a100-40gb-sxm", "--tensor", "1", "--pipeline", "1", "--sharding", "0"
    )
    assert isinstance(result.exception, NothingFitsError)
    assert result.exception.exit_code == 6
    assert "16384 × a100-sxm4-40gb" in str(result.exception)
    assert "Try: shard weights too (FSDP)" in str(result.exception)


@pytest.mark.parametrize(
    ("wanted", "error", "words"),
    [
        ({"gpu": "hopper"}, AmbiguousNameError, "ambiguous"),
        ({"gpu": "h1000-sxm"}, UnknownNameError, "h100-sxm"),
        ({"tensor": 3}, UsageError, "32 heads"),
        ({"gpus": 6, "tensor": 4}, UsageError, "6 GPUs"),
        ({"pipeline": 64}, UsageError, "exceeds the 32 layers"),
        ({"expert": 2}, UsageError, "expert"),
        ({"micro_batch": 0}, UsageError, "is not a"),
        ({"sequence": float("nan")}, UsageError, "is not a"),
        ({"optimizer": "adamx"}, UsageError, "adamx"),
        ({"sharding": 4}, UsageError, "is beyond 3"),
        ({"system": "dgx-a100-640"}, UsageError, "not h100"),
    ],
)
def test_bad_input_gets_one_sentence(catalog, wanted, error, words):
    given = {"model": "llama-3-8b", "gpu": "h100-sxm"} | wanted
    with pytest.raises(error, match=words):
        fit(catalog, given.pop("model"), given.pop("gpu"), **given)


# Serving ---------------------------------------------------------------------------------------------------------


def test_serving_answers_for_every_accelerator_and_names_the_cheapest():
    payload = json.loads(run("--model", "70b", "--serving", "--prompt-tokens", "2048", "--format", "json").output)
    assert payload["kind"] == "serving_fit"
    assert len(payload["options"]) > 10
    for row in payload["options"]:
        held = row["gpus"] * row["memory_gb"]
        assert held > (70.5 if row["precision"] == "fp8" else 141)  # 70.55 B parameters in 8 or 16 bits
    priced = [row["usd_per_hour"] for row in payload["options"] if row["usd_per_hour"] is not None]
    assert payload["cheapest"]["usd_per_hour"] == min(priced)


def test_training_and_serving_options_do_not_mix():
    for asked in (("--gpu", "h100-sxm", "--tpot", "30"), ("--serving", "--optimizer", "sgd"), ("--gpus", "8")):
        result = run("--model", "8b", *asked)
        assert isinstance(result.exception, UsageError)


def test_without_a_gpu_every_accelerator_is_answered_for(catalog):
    found = gpucost.fit("13b", catalog=catalog)
    rows = {row["gpu"]: row for row in found.payload["rows"]}
    assert len(rows) > 50
    for gpu in ("rtx-4090", "a100-sxm4-80gb", "h200-sxm-141gb"):
        alone = gpucost.fit("13b", gpu, catalog=catalog)
        assert (rows[gpu]["gpus"], rows[gpu]["needed_gb"]) == (alone.gpus, pytest.approx(alone.needed_gb))
    prices = [row["usd_per_hour"] for row in found.payload["rows"] if row["usd_per_hour"] is not None]
    assert prices == sorted(prices)


@pytest.mark.slow
def test_the_longest_context_and_the_largest_batch_fit_and_the_next_do_not(catalog):
    row = next(
        row for row in gpucost.fit("8b", method="qlora", catalog=catalog).payload["rows"] if row["gpu"] == "rtx-4090"
    )
    ask = {"model": "8b", "gpu": "rtx-4090", "gpus": row["gpus"], "method": "qlora", "catalog": catalog}
    assert gpucost.fit(**ask, sequence=row["longest_tokens"]).fits
    assert not gpucost.fit(**ask, sequence=2 * row["longest_tokens"]).fits
    assert gpucost.fit(**ask, micro_batch=row["largest_batch"]).fits
    assert not gpucost.fit(**ask, micro_batch=2 * row["largest_batch"]).fits


def test_a_shorter_sequence_a_chunked_loss_and_smaller_moments_are_tried_together(catalog):
    ask = {"gpus": 1, "method": "qlora", "style": "library", "catalog": catalog}
    found = gpucost.fit("32b", "rtx-4090", **ask)
    assert not found.fits
    row = next(row for row in found.payload["changes"] if "+ sequence" in row["change"])
    chunk, tokens = (int(word) for word in row["change"].split() if word.isdigit())
    assert tokens >= 1024
    moments = {"optimizer": "adamw-8bit"} if "8-bit" in row["change"] else {}
    assert gpucost.fit("32b", "rtx-4090", loss_chunk=chunk, sequence=tokens, **moments, **ask).fits


def test_32b_in_4_bits_on_a_4090_is_what_bitsandbytes_keeps(catalog):
    # NF4 with double quantisation (4.127 bits) on the 64 layers; embeddings and head are no Linear4bit and stay bf16;
    # rank 16 on all seven matrices in fp32 with fp32 gradients, and two moments of 4 or of 1 byte.
    hidden, wide, heads, layers, vocabulary = 5120, 27648, 1024, 64, 152064
    linear = layers * (2 * hidden * hidden + 2 * hidden * heads + 3 * hidden * wide)
    ends, adapters = 2 * vocabulary * hidden, layers * 16 * (4 * hidden + 2 * (hidden + heads) + 3 * (hidden + wide))
    ask = {"gpus": 1, "method": "qlora", "sequence": 1024, "loss_chunk": 256, "style": "library"}
    for optimizer, moments in (("adamw", 8), ("adamw-8bit", 2)):
        found = gpucost.fit("qwen2.5-32b", "rtx-4090", optimizer=optimizer, catalog=catalog, **ask).payload
        parts = {row["component"]: row["needed_gb"] * 1e9 for row in found["components"]}
        assert parts["weights"] == pytest.approx(linear * 4.127 / 8 + 2 * ends + 4 * adapters, rel=1e-3)
        assert parts["optimizer"] == pytest.approx(moments * adapters, rel=1e-3)
    assert found["fits"]  # with 8-bit moments; fp32 ones are 0.4 GB too much, within the range


def test_no_accelerator_is_proposed_that_nobody_sells(catalog):
    sold = {offer.gpu for offer in catalog.offers()}
    named = {chip.id for chip in catalog.accelerators()}
    changes = gpucost.fit("32b", "rtx-4090", 1, catalog=catalog).payload["changes"]
    assert {row["change"] for row in changes} & named <= sold


def test_a_price_over_all_accelerators_is_of_a_seller_that_hosts_so_many(catalog):
    rows = gpucost.fit("13b", catalog=catalog).payload["rows"]
    for row in rows:
        usual = [o for o in catalog.offers(gpu=row["gpu"]) if not o.term_months]
        if row["usd_per_hour"] is None:
            assert row["sold"] in ("", "as singles") or int(row["sold"].removeprefix("up to ")) < row["gpus"]
        else:
            assert any(
                o.provider == row["sold"] and row["usd_per_hour"] >= row["gpus"] * o.usd_per_gpu_hour for o in usual
            )
    singles = [row for row in rows if row["sold"] == "as singles"]
    assert any(row["gpus"] > 1 for row in singles)
    assert all(row["usd_per_hour"] is None for row in singles)


def test_what_does_not_fit_names_what_would_on_as_many_gpus_where_the_smallest_change_takes_more(catalog):
    # 70.6e9 parameters in 4 bits are 35 GB, 18 GB on each of two cards of 22.9 GB: the rest is activations and logits
    found = gpucost.fit("70b", "rtx-4090", 2, method="qlora", style="library", catalog=catalog)
    assert not found.fits
    lead = found.payload["lead"]
    assert "more GPUs, 4; on 2: " in lead
    here = next(row for row in found.payload["changes"] if row["change"] == lead.split("on 2: ")[1].rstrip("."))
    assert (here["helps"], here["gpus"]) == (True, 2)


@pytest.mark.parametrize(
    ("degrees", "gpus"),
    [({"pipeline": 7}, 7), ({"pipeline": 3}, 3), ({"context": 3}, 3), ({"tensor": 8, "pipeline": 31}, 248)],
)
def test_the_fewest_gpus_are_multiples_of_the_degrees_that_are_given(catalog, degrees, gpus):
    found = gpucost.fit("llama-3.1-8b", "h100-sxm", **degrees, sequence=8192, catalog=catalog).payload
    assert (found["fits"], found["gpus"]) == (True, gpus)


@pytest.mark.slow
def test_a_mixture_is_searched_on_fewer_gpus_than_usual_expert_ranks(catalog):
    """What fits by `fit` on four is timed by the search on four."""
    for model, gpu in (("gpt-oss-120b", "h100-sxm"), ("llama-4-scout", "h100-pcie")):
        asked = {"method": "lora", "sequence": 8192, "catalog": catalog}
        fewest = gpucost.fit(model, gpu, **asked).payload["gpus"]
        assert fewest == 4
        timed = gpucost.throughput(model, gpu, gpus=fewest, **asked).payload
        assert timed["layout"]["expert"] < 8


# Longest sequences that Hugging Face's Trainer with fused attention takes, by the card's GiB: QLoRA of rank 32 on all
# matrices, one sequence at a time (Unsloth, "Fine-tune Llama 3.3", 2024-12-10, and the table of Llama 3.1 8B beside it)
TRAINER_LIMITS = [
    ("llama-3.1-8b", 12, 932),
    ("llama-3.1-8b", 16, 2_551),
    ("llama-3.1-8b", 24, 5_789),
    ("llama-3.1-8b", 40, 12_264),
    ("llama-3.1-8b", 48, 15_502),
    ("llama-3.1-8b", 80, 28_454),
    ("llama-3.3-70b", 80, 6_916),
]


@pytest.mark.parametrize(("model", "gib", "tokens"), TRAINER_LIMITS)
def test_the_longest_sequence_of_a_trainer_fills_the_card(catalog, model, gib, tokens):
    found = gpucost.fit(
        model, "h100-sxm", 1, method="qlora", sequence=tokens, lora_rank=32, recompute="full", catalog=catalog
    )
    usable = (gib * GIB - CONTEXT_BYTES) / FRAGMENTATION_RATIO / GB
    assert found.needed_gb == pytest.approx(usable, rel=0.10)


def test_70b_in_4_bits_does_not_fit_48_gb_in_a_trainer(catalog):
    """Unsloth, 2024-12-10: "OOM" for Hugging Face with fused attention on 48 GB, whatever the length."""
    found = gpucost.fit("llama-3.3-70b", "rtx-a6000", 1, method="qlora", sequence=512, lora_rank=32, catalog=catalog)
    assert not found.fits


def test_savers_stand_side_by_side_on_one_layout_at_equal_recomputation():
    """Llama-3 8B on 8 H100: 16 bytes a parameter, sharded by what each stage shards (arXiv:1910.02054, figure 1)."""
    answer = gpucost.fit("8b", "h100-sxm", gpus=8).payload
    rows = {row["change"]: row for row in answer["savers"]}
    gb = 8.03
    whole, stage1, stage2, stage3 = (
        rows[name]["needed_gb"] for name in ("nothing sharded", "ZeRO-1", "ZeRO-2", "ZeRO-3 (FSDP)")
    )
    assert whole - stage1 == pytest.approx(12 * gb * 7 / 8, rel=0.01)
    assert stage1 - stage2 == pytest.approx(2 * gb * 7 / 8, rel=0.01)
    assert stage3 < stage2
    base = rows["as it is, nothing recomputed"]
    assert base["saved_fraction"] == 0
    assert rows["full recomputation"]["needed_gb"] < base["needed_gb"] < rows["without fused attention"]["needed_gb"]
    eight = rows["fp8 products"]
    assert 0 < 1 - eight["needed_low_gb"] / base["needed_gb"] < 0.25  # it does not halve memory
    assert rows["QLoRA, rank 16"]["needed_gb"] < rows["LoRA, rank 16"]["needed_gb"] < base["needed_gb"]
