"""The physics of serving: numbers worked out by hand, and properties that no efficiency may break."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gpucost.catalog import open_catalog
from gpucost.physics.serving import steps as serving
from gpucost.physics.serving import steps as serving_queue
from gpucost.physics.serving.cases import FORMATS, ServedReplica, build, plain_options
from gpucost.physics.serving.efficiency import DEFAULTS, ENGINES, FAMILIES

CATALOG = open_catalog()


def deployment(model="llama-3.1-8b", gpu="h100-sxm5-80gb", **more):
    accelerator = CATALOG.accelerator(gpu)
    return ServedReplica(CATALOG.architecture(model), accelerator, CATALOG.default_system(gpu), **more)


def case_of(*deployments, options=None):
    return build(deployments, DEFAULTS, options)[0]


def one(value):
    return np.array([float(value)])


def tpot(case, batch=8, prompt=1024, output=256):
    return float(serving.steady(case, one(batch), one(prompt), one(output)).tpot_s[0])


def test_weights_of_llama_3_1_8b_in_bf16_by_hand():
    """8.030 B parameters in the data sheet; both embeddings are counted: 2 bytes each."""
    assert serving.weight_bytes(case_of(deployment()))[0] == pytest.approx(2 * 8.030e9, rel=2e-3)


def test_cache_of_one_token_by_hand():
    """Llama 3.1 8B: 2 · 8 heads · 128 · 32 layers · 2 bytes = 131,072; DeepSeek-V3: (512 + 64) · 61 · 2 = 70,272."""
    assert serving.cache_bytes_per_sequence(case_of(deployment()), one(1))[0] == 131_072
    latent = case_of(deployment("deepseek-v3", format="fp8", cache="bf16"))
    assert serving.cache_bytes_per_sequence(latent, one(1))[0] == 70_272


def test_heads_fewer_than_ranks_are_repeated():
    wide = case_of(deployment("llama-3.1-70b", "b200-sxm", tensor=16))
    assert serving.cache_bytes_per_sequence(wide, one(1))[0] == 2 * 2 * 8 * 128 * 80 * 2


def test_windows_cap_what_a_layer_reads():
    """gpt-oss-120b: 18 layers read everything, 18 the last 128 tokens."""
    work = case_of(deployment("gpt-oss-120b", format="mxfp4")).work
    assert serving.keys_per_layer(work, one(8192))[0] == 18 * 8192 + 18 * 128


def test_a_step_is_never_faster_than_reading_its_weights_at_the_data_sheets_bandwidth():
    for name in ("llama-3.1-8b", "llama-3.1-70b", "gpt-oss-120b"):
        form = "mxfp4" if "oss" in name else "bf16"
        case = case_of(deployment(name, "h200-sxm-141gb", format=form, tensor=2, engine="plain"))
        active = case.work.attention * case.bytes.attention + case.work.dense * case.bytes.weights
        active = active + case.work.moe_layers * case.work.experts_per_token * case.work.expert * case.bytes.weights
        assert serving.decode_step(case, one(1), one(16)).total_s[0] > active[0] / 2 / 4.8e12


def test_speculation_yields_the_expected_tokens():
    """Leviathan et al. 2023, equation 1: three drafts kept with 0.8 each give (1 − 0.8^4)/0.2 = 2.952 tokens."""
    options = plain_options(1)
    drafted = replace(options, draft_tokens=one(3), acceptance=one(0.8))
    assert serving.tokens_per_step(options)[0] == 1.0
    assert serving.tokens_per_step(drafted)[0] == pytest.approx(2.952)


def test_a_rejected_draft_costs_time_and_an_accepted_one_saves_it():
    d = deployment("llama-3.1-70b", "h100-sxm5-80gb", format="fp8", tensor=4)
    plain = tpot(case_of(d), batch=1)
    kept = replace(plain_options(1), draft_tokens=one(3), acceptance=one(0.9), draft_cost=one(0.05))
    lost = replace(kept, acceptance=one(0.0))
    assert tpot(case_of(d, options=kept), batch=1) < plain < tpot(case_of(d, options=lost), batch=1)


def test_offloaded_weights_are_bound_by_the_host_link():
    """Half of 16 GB over 63 GB/s takes at least 127 ms."""
    half = replace(plain_options(1), offloaded=one(0.5))
    assert tpot(case_of(deployment(), options=half), batch=1) > 8.03e9 / 63e9


def test_prefix_cache_shortens_prompts():
    d = deployment()
    hit = replace(plain_options(1), prefix_hit=one(0.9))
    assert serving.prompt_s(case_of(d, options=hit), one(8192))[0] < 0.3 * serving.prompt_s(case_of(d), one(8192))[0]


def test_weights_that_do_not_fit_leave_room_for_no_sequence():
    case = case_of(deployment("llama-3.1-70b", "l4"))
    assert serving.capacity_sequences(case, one(128), one(128))[0] == 0


@pytest.mark.parametrize("engine", sorted(ENGINES))
@pytest.mark.parametrize("form", sorted(FORMATS))
def test_every_engine_and_format_gives_a_finite_time(engine, form):
    for gpu in ("v100-sxm2-16gb", "mi300x", "b200-sxm", "tpu-v5e", "gaudi3", "trainium2", "rtx-4090"):
        assert 0 < tpot(case_of(deployment(gpu=gpu, engine=engine, format=form))) < 10


models = st.sampled_from(("llama-3.1-8b", "llama-3.1-70b", "qwen3-30b-a3b", "deepseek-v3", "gpt-oss-120b"))
batches = st.integers(1, 512)


@settings(max_examples=60, deadline=None)
@given(models, batches, st.floats(1.01, 4.0), st.sampled_from((1, 2, 4, 8)))
def test_more_bandwidth_is_never_slower(model, batch, ratio, tensor):
    base = deployment(model, "h200-sxm-141gb", format="fp8", tensor=tensor)
    fast = replace(base.accelerator, hbm_gb_per_s=base.accelerator.hbm_gb_per_s * ratio)
    link = replace(base.system, scaleup_gb_per_s=base.system.scaleup_gb_per_s * ratio)
    slow_s = tpot(case_of(base), batch)
    assert tpot(case_of(replace(base, accelerator=fast)), batch) <= slow_s * (1 + 1e-12)
    assert tpot(case_of(replace(base, system=link)), batch) <= slow_s * (1 + 1e-12)


@settings(max_examples=60, deadline=None)
@given(models, batches, st.integers(16, 30_000), st.integers(1, 30_000))
def test_longer_contexts_are_never_faster(model, batch, prompt, more):
    case = case_of(deployment(model, "h200-sxm-141gb", format="fp8", tensor=8))
    assert tpot(case, batch, prompt + more) >= tpot(case, batch, prompt) * (1 - 1e-9)


@settings(max_examples=40, deadline=None)
@given(models, st.integers(1, 256))
def test_a_larger_batch_never_makes_a_token_faster(model, batch):
    case = case_of(deployment(model, "h200-sxm-141gb", format="fp8", tensor=8))
    assert tpot(case, batch + 1) >= tpot(case, batch) * (1 - 1e-9)


def test_one_accelerator_exchanges_nothing():
    assert serving.exchange_s(case_of(deployment()), one(64))[0] == 0


def test_batch_of_cases_equals_single_cases_bit_for_bit():
    rows = [deployment(gpu=g, tensor=t) for g in ("h100-sxm5-80gb", "a100-sxm4-80gb", "l40s") for t in (1, 2, 4)]
    many = serving.steady(case_of(*rows), np.full(9, 16.0), np.full(9, 1024.0), np.full(9, 256.0)).tpot_s
    single = [serving.steady(case_of(d), one(16), one(1024), one(256)).tpot_s[0] for d in rows]
    assert many.tolist() == single


def test_an_engine_that_never_evicts_sets_whole_outputs_aside():
    """TensorRT-LLM reserves prompt and output, vLLM grows into them: (0 + 2048) ÷ (0 + 1024) twice the sequences."""
    held = serving.capacity_sequences(case_of(deployment(engine="vllm")), one(0), one(2048))
    set_aside = serving.capacity_sequences(case_of(deployment(engine="trtllm")), one(0), one(2048))
    assert held[0] == pytest.approx(2 * set_aside[0], abs=1)


def test_short_prompts_of_a_bare_loop_wait_for_its_launches():
    """1B has 16 layers: 16 tokens take the host's time per layer, however fast the device is; no compiled host does."""
    bare, served = (case_of(deployment("llama-3.2-1b", engine=name)) for name in ("plain", "trtllm"))
    floor = 16 * DEFAULTS["host_layer_us"] * 1e-6
    assert serving.prompt_s(bare, one(16))[0] == pytest.approx(floor, rel=0.1)
    assert serving.prompt_s(served, one(16))[0] < floor + served.rates.host_ms[0] * 1e-3


def test_element_wise_work_by_hand():
    """8B, each kernel for itself: (14·4,096 + 5·14,336)·32 values of 2 bytes per token at the stated bandwidth."""
    case = case_of(deployment(engine="plain"))
    rate = case.chip.hbm_gb_per_s[0] * 1e9 * case.rates.elementwise[0]
    assert serving.elementwise_s(case, one(1))[0] == pytest.approx(8_257_536 / rate, rel=1e-3)


def test_attention_data_parallel_gathers_unless_ranks_hold_whole_experts():
    """Of 8 ranks' tokens 7 copies arrive; 2 experts on 8 ranks meet 2 · 7/8 = 1.75: four times fewer bytes."""
    gathered, routed = (case_of(deployment("mixtral-8x7b", data=8, expert=ranks)) for ranks in (1, 8))
    by_tokens = [serving.exchange_s(case, one(1e6))[0] - serving.exchange_s(case, one(8))[0]
                 for case in (gathered, routed)]  # fmt: skip
    assert by_tokens[0] == pytest.approx(4 * by_tokens[1], rel=1e-6)


def test_a_rank_with_a_slice_of_every_expert_copies_all_tokens():
    """Mixtral on 8 ranks: 32 layers · 2 experts · 4,096 · 4 values of 2 bytes, of all tokens or of an eighth."""
    sliced, whole = (case_of(deployment("mixtral-8x7b", data=8, expert=ranks)) for ranks in (1, 8))
    rate = sliced.chip.hbm_gb_per_s[0] * 1e9 * sliced.rates.elementwise[0]
    more = serving.elementwise_s(sliced, one(8)) - serving.elementwise_s(whole, one(8))
    assert more[0] == pytest.approx((8 - 1) * 32 * 2 * 4096 * 4 * 2 / rate, rel=1e-9)
    narrow = case_of(deployment("mixtral-8x7b", data=8, format="fp8"))
    assert serving.elementwise_s(narrow, one(8))[0] < serving.elementwise_s(sliced, one(8))[0]


def test_collectives_launched_one_by_one_wait_for_the_slowest_host():
    """Two ranks, four, eight: 1, √2 and √3 times the launch of a collective; one rank launches none."""
    cases = [case_of(deployment(engine="eager", tensor=ranks)) for ranks in (1, 2, 4, 8)]
    alone, *several = (serving.launched_s(case, case.rates.host_layer_us)[0] for case in cases)
    assert alone == pytest.approx(32 * DEFAULTS["host_layer_us"] * 1e-6)
    waits = [(time - alone) / (32 * 2 * DEFAULTS["host_reduce_us"] * 1e-6) for time in several]
    assert waits == pytest.approx([1, 2**0.5, 3**0.5])


def test_routing_in_a_bare_loop_is_as_many_kernels_as_two_dense_layers():
    case = case_of(deployment("olmoe-1b-7b", engine="plain"))
    layers = case.work.layers[0]
    assert serving.launched_s(case, case.rates.prompt_layer_us)[0] == pytest.approx(
        3 * layers * DEFAULTS["host_layer_us"] * 1e-6
    )
    assert serving.latency_s(case)[0] == pytest.approx(3 * layers * DEFAULTS["layer_us"] * 1e-6)


def test_an_engines_own_all_reduce_takes_as_long_among_eight_as_among_two():
    own, library = (
        [serving.exchange_s(case_of(deployment(engine=name, tensor=ranks)), one(0))[0] for ranks in (2, 8)]
        for name in ("vllm", "plain")
    )
    assert own[0] == own[1]
    assert library[1] / library[0] == pytest.approx(1 + 2 * DEFAULTS["allreduce_growth"])


def test_early_vllm_reads_prompts_in_chunks_where_sequences_may_be_long():
    """vLLM 0.6 enables chunked prefill by default above 32,768 tokens: Llama 3.1 has 131,072, Llama 2 4,096."""
    models = ("llama-3.1-8b", "llama-2-7b")
    assert [bool(case_of(deployment(name, engine="vllm-2025")).rates.fused[0]) for name in models] == [True, False]
    assert not case_of(deployment(engine="vllm-2023")).rates.fused[0]


def test_queue_grows_with_load_and_vanishes_without():
    loads = np.linspace(0, 0.99, 50)
    waits = serving_queue.waiting_s(loads, np.full(50, 64.0), np.full(50, 10.0))
    assert waits[0] == 0
    assert (np.diff(waits) >= 0).all()


def test_a_million_cases_stay_within_chunks_of_memory():
    """Chunked evaluation gives the same numbers as one pass over a sample."""
    case = case_of(deployment(), deployment(tensor=2))
    rows = np.arange(2000) % 2
    batch, prompt, output = np.linspace(1, 400, 2000), np.full(2000, 900.0), np.full(2000, 200.0)
    whole = serving.steady(case.take(rows), batch, prompt, output).tpot_s
    parts = [
        serving.steady(
            case.take(rows[s : s + 128]), batch[s : s + 128], prompt[s : s + 128], output[s : s + 128]
        ).tpot_s
        for s in range(0, 2000, 128)
    ]
    assert np.concatenate(parts).tolist() == whole.tolist()


def test_every_engine_and_every_family_has_its_parameters():
    of_engines = ("engine_ratio", "host_ratio", "sequence_ratio", "prefill_ratio", "saturation_ratio")
    alone = {"habana", "neuron"}  # engines that few rows speak of: those of their group
    named = {f"{prefix}.{name}" for prefix in of_engines for name in ENGINES if name not in alone}
    named |= {f"{prefix}.{name}" for prefix in ("weights_ratio", "matrix_ratio") for name in FAMILIES}
    assert named - set(DEFAULTS) == set()


def test_a_token_that_visits_every_expert_reads_them_all():
    with np.errstate(divide="raise", over="raise", invalid="raise"):
        assert serving.distinct_experts(np.array([4.0]), np.array([4.0]), np.array([8.0])) == 4.0
