"""Models that give no tokens out: parameters and FLOP against what their makers publish, and answers in their units."""

import pytest

import gpucost
from gpucost.catalog import open_catalog
from gpucost.errors import NothingFitsError, UsageError
from gpucost.physics import diffusion, tasks
from gpucost.serving.tasks import TaskQuestion, make_task


@pytest.fixture(scope="module")
def catalog():
    return open_catalog("2026-11-20")


def task(catalog, name, **asked):
    row = next(row for row in catalog.rows("task_models") if row["id"] == name)
    return make_task(catalog, row, TaskQuestion(**({"input_tokens": None, "side": None, "steps": None} | asked)))


# What makers publish: papers and model cards named in models/sources.csv.


@pytest.mark.parametrize(
    ("name", "published"),
    [
        ("bert-base", 109.5e6),
        ("bge-m3", 568e6),
        ("qwen3-embedding-8b", 7.57e9),
        ("whisper-small", 244e6),
        ("whisper-medium", 769e6),
        ("whisper-large-v3", 1.55e9),
        ("whisper-large-v3-turbo", 809e6),
    ],
)
def test_parameters_are_those_that_makers_publish(catalog, name, published):
    assert task(catalog, name).parameters == pytest.approx(published, rel=0.02)


@pytest.mark.parametrize(
    ("name", "published"),
    [("sd-1.5", 0.860e9), ("sdxl", 2.567e9), ("sd3-medium", 2.028e9), ("sd3.5-large", 8.1e9), ("flux.1-dev", 11.9e9)],
)
def test_networks_of_diffusion_have_the_parameters_that_makers_publish(catalog, name, published):
    row = next(row for row in catalog.rows("task_models") if row["id"] == name)
    decoder = diffusion.image_decoder(row["side"]).parameters
    assert task(catalog, name).parameters - row["text_parameters"] - decoder == pytest.approx(published, rel=0.01)


def test_an_encoder_needs_two_flop_a_weight_and_attends_both_ways(catalog):
    # BERT base, 512 tokens: 12 layers × 12 × 768² × 2 + 12 × 4 × 512 × 768 = 188.7e6 FLOP a token.
    hand = 12 * 12 * 768**2 * 2 + 12 * 4 * 512 * 768
    assert task(catalog, "bert-base", input_tokens=512).flop.typical == pytest.approx(hand * 1e6, rel=0.005)


def test_a_window_of_speech_is_1500_positions_through_the_encoder(catalog):
    # large-v3: 2 × 629e6 × 1,500 + 4 × 32 × 1,500² × 1,280 = 2.26e12 FLOP a window, 120 windows an hour.
    window = 2 * 32 * 12 * 1280**2 * 1500 + 4 * 32 * 1500**2 * 1280
    spent = task(catalog, "whisper-large-v3").flop.typical
    assert window * 120 < spent < 1.6 * window * 120


def test_an_image_takes_as_many_evaluations_as_steps_and_guidance(catalog):
    few, many = (task(catalog, "sdxl", steps=steps).flop.typical for steps in (10, 50))
    once = diffusion.unet((320, 640, 1280), (0, 2, 10), 2048, 77, 128, 2816).flop
    assert many - few == pytest.approx(40 * 2 * once)


def test_a_step_of_flux_by_hand():
    # 57 blocks × 12·3,072² weights × 2 FLOP × 4,608 tokens + 57 × 4 × 4,608² × 3,072
    hand = 57 * 12 * 3072**2 * 2 * 4608 + 57 * 4 * 4608**2 * 3072
    assert diffusion.transformer(3072, 19, 38, 4096, 512).flop == pytest.approx(hand, rel=0.001)


def test_an_image_in_a_prompt_is_as_many_tokens_as_its_patches_by_fours(catalog):
    row = next(row for row in catalog.rows("task_models") if row["id"] == "qwen2-vl-7b")
    assert tasks.sight(row, 1024).tokens == 73**2 // 4
    assert tasks.sight(row, 224).tokens == 64  # arXiv:2409.12191, section 2.1: 66 with the two that frame it
    assert tasks.sight(row, 1024).parameters == pytest.approx(675e6, rel=0.08)  # the paper counts the merger, too


# Answers.


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("qwen3-embedding-8b", "million tokens"),
        ("bert-base", "million tokens"),
        ("qwen3-reranker-0.6b", "million tokens"),
        ("whisper-large-v3", "hour of audio"),
        ("sdxl", "image"),
        ("flux", "image"),
    ],
)
def test_a_model_is_answered_in_its_own_unit(catalog, name, unit):
    answer = gpucost.inference(name, top=0, catalog=catalog)
    assert answer.payload["unit"] == unit
    for row in answer.payload["options"]:
        assert 0 < row["unit_low_s"] < row["unit_s"] < row["unit_high_s"]
        assert 0 < row["usd_per_unit_low"] < row["usd_per_unit"] < row["usd_per_unit_high"]
        assert row["usd_per_unit"] == pytest.approx(row["usd_per_gpu_hour"] * row["unit_s"] / 3600)
    assert len(answer.to_frame()) == answer.payload["offers_ranked"]


def test_no_speed_beats_the_peak(catalog):
    for name in ("qwen3-embedding-8b", "bge-m3", "whisper-large-v3", "sdxl", "flux.1-dev"):
        work = task(catalog, name)
        for chip in catalog.accelerators():
            speed = tasks.speed(work, chip, "bf16")
            if speed is not None:
                assert speed.seconds.fast >= work.flop.fast / (chip.bf16_tflops or chip.fp16_tflops) / 1e12


def test_a_load_becomes_accelerators_and_a_month(catalog):
    answer = gpucost.inference("sdxl", gpu="h100-sxm", requests_per_s=2, catalog=catalog)
    row = answer.best
    assert row["gpus"] >= 2 * row["unit_s"] / 0.7
    assert row["usd_per_month"] == pytest.approx(row["gpus"] * row["usd_per_gpu_hour"] * 730)


def test_what_does_not_fit_one_accelerator_is_named_with_what_it_needs(catalog):
    with pytest.raises(NothingFitsError, match=r"needs 3\d\.\d GB in bf16"):
        gpucost.inference("flux.1-dev", gpu="rtx-4090", catalog=catalog)
    assert gpucost.inference("flux.1-dev", gpu="rtx-4090", precision="fp8", catalog=catalog).payload["options"]


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"model": "sdxl", "output_tokens": 10}, "no tokens"),
        ({"model": "whisper-large-v3", "steps": 5}, "speech recogniser"),
        ({"model": "bert-base", "tpot": "50ms"}, "no tokens"),
        ({"model": "8b", "images": 1}, "qwen2-vl-7b"),
        ({"model": "8b", "steps": 5}, "make images"),
        ({"model": "musicgen-large"}, "language model"),
        ({"model": "flan-t5-xxl"}, "a decoder"),
    ],
)
def test_what_does_not_belong_is_refused_by_name(catalog, asked, said):
    with pytest.raises(UsageError, match=said):
        gpucost.inference(**asked, catalog=catalog)


def test_other_questions_say_where_such_a_model_is_answered(catalog):
    with pytest.raises(UsageError, match="gpucost inference"):
        gpucost.estimate("whisper-large-v3", "1b", catalog=catalog)


def test_images_in_prompts_cost_as_their_tokens(catalog):
    plain, seeing = (
        gpucost.inference("qwen2-vl-7b", gpu="h100-sxm", images=images, prompt_tokens=500, top=1, catalog=catalog)
        for images in (None, 4)
    )
    assert "1,332 tokens" in plain.payload["lead"]
    assert seeing.best["ttft_ms"] > 2 * plain.best["ttft_ms"]


def test_what_binds_for_months_does_not_lead(catalog):
    options = gpucost.inference("whisper-large-v3", catalog=catalog, top=0).payload["options"]
    assert options[0]["term_months"] in (None, 0)
    assert any(row["term_months"] for row in options)
