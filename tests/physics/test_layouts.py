"""The search over layouts: everything it returns is legal, fits, and is the fastest there is."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from gpucost.errors import UsageError
from gpucost.physics.columns import layout_columns
from gpucost.physics.hardware import hardware_columns
from gpucost.physics.training import grid as legality
from gpucost.physics.training import layouts as search
from gpucost.physics.training import steps as training
from gpucost.physics.training.cases import build_case, recipe_columns
from gpucost.physics.training.efficiency import DEFAULTS
from gpucost.physics.training.grid import Grid, make_grid
from gpucost.physics.training.memory import from_training, training_memory, usable_bytes
from gpucost.physics.training.recomputation import grid_layouts
from gpucost.physics.transformer import stack
from gpucost.types import Layout

from .cases import GPT3, H100, LLAMA_8B, LLAMA_405B, MIXTRAL, NODE, make_case

POWERS = [2**k for k in range(3, 15)]


def best(model, gpus, chip=H100, node=NODE, **wanted):
    count = len(gpus)
    return search.best_layouts(model, [chip] * count, [node] * count, gpus, values=DEFAULTS, **wanted)


@pytest.mark.parametrize("model", [LLAMA_8B, GPT3, LLAMA_405B, MIXTRAL], ids=lambda m: m.name)
@pytest.mark.parametrize("wide", [False, True])
def test_every_best_layout_is_legal_and_fits(model, wide):
    found = best(model, POWERS, wide=wide)
    rows = np.flatnonzero(found.fits)
    assert len(rows)
    layout = found.layout.take(rows)
    hardware = hardware_columns([H100] * len(rows), [NODE] * len(rows))
    sequence = np.full(len(rows), 8192.0)
    legal = legality.reason_codes(stack([model]), hardware, layout, sequence)
    assert set(legal) <= {legality.OK, 5}  # a batch that does not divide waits for its last micro-batch
    assert layout.gpus.tolist() == [POWERS[row] for row in rows]
    need = training_memory(stack([model]), layout, recipe_columns(1, 8192.0)).total_bytes
    assert (need <= usable_bytes(np.array([H100.memory_gib]))[0]).all()
    assert (found.memory_bytes[rows] >= need * (1 - 1e-9)).all()


@pytest.mark.slow
def test_the_best_is_the_fastest_of_all_when_each_is_timed_alone():
    gpus, batch = 16, 32
    found = best(LLAMA_8B, [gpus], sequence_tokens=4096, global_batch=batch, wide=True)
    fastest = 0.0
    degrees = product(
        (1, 2, 4, 8), (1, 2, 4, 8, 16), (1, 2), (1, 2, 4, 8, 16), (1, 4), (1, 3), ("none", "selective", "full")
    )
    shape, recipe = stack([LLAMA_8B]), recipe_columns(1, 4096.0)
    capacity = usable_bytes(np.array([H100.memory_gib]))[0]
    for t, p, c, micro, v, s, recompute in degrees:
        data = gpus // (t * p * c)
        if data * t * p * c != gpus or data * micro > batch or (s == 3 and p > 1) or (v > 1 and p == 1) or p * v > 32:
            continue
        layout = Layout(gpus, t, p, c, 1, data, s, micro, batch, v, recompute)
        if training_memory(shape, layout_columns([layout]), recipe).total_bytes[0] > capacity:
            continue
        case = make_case(layout, sequence=4096.0, year=2022 + search.USUAL_AGE_YEARS)
        fastest = max(fastest, float(training.step(case).tokens_per_s_per_gpu[0]))
    assert found.step.tokens_per_s_per_gpu[0] == pytest.approx(fastest, rel=1e-12)


def test_a_key_does_not_depend_on_the_other_keys():
    chips = [H100, replace(H100, id="slow", bf16_tflops=400.0, family="ampere", memory_gib=39.4)]
    keys = [(chip, n) for chip in chips for n in (8, 24, 64)]
    together = search.best_layouts(LLAMA_8B, [c for c, _ in keys], [NODE] * 6, [n for _, n in keys], values=DEFAULTS)
    for row, (chip, n) in enumerate(keys):
        alone = best(LLAMA_8B, [n], chip=chip)
        assert together.reason[row] == alone.reason[0]
        assert together.step.total_s[row] == alone.step.total_s[0]
        assert together.layout.layout(row) == alone.layout.layout(0)


def test_what_has_no_layout_says_why():
    chip = replace(H100, fp8_tflops=None)
    assert best(LLAMA_405B, [8]).reason[0] == search.NO_MEMORY
    assert best(LLAMA_8B, [8], chip=chip, precision="fp8").reason[0] == search.NO_PRECISION
    assert np.isnan(best(LLAMA_405B, [8]).step.total_s[0])


@given(st.sampled_from([LLAMA_8B, MIXTRAL]), st.sampled_from([8, 16, 64]), st.floats(1.0, 3.0))
@settings(max_examples=15, deadline=None)
def test_more_memory_is_never_slower(model, gpus, factor):
    roomy = replace(H100, memory_gib=H100.memory_gib * factor)
    small, large = best(model, [gpus]), best(model, [gpus], chip=roomy)
    if small.fits[0]:
        assert large.step.tokens_per_s_per_gpu[0] >= small.step.tokens_per_s_per_gpu[0]


def test_layouts_that_cannot_exist_have_a_reason_in_arrays_and_a_sentence_alone():
    wrong = {
        1: Layout(gpus=8, data=8, micro_batch=-1, global_batch=8),
        2: Layout(gpus=8, tensor=3, data=2, global_batch=8),
        3: Layout(gpus=24, tensor=3, data=8, global_batch=8),
        4: Layout(gpus=64, pipeline=64, data=1, global_batch=64),
        5: Layout(gpus=8, data=8, micro_batch=3, global_batch=20),
        6: Layout(gpus=8, data=8, expert=4, global_batch=8),
        8: Layout(gpus=8, data=8, global_batch=8, precision="fp4"),
    }
    layout = layout_columns(list(wrong.values()))
    count = len(wrong)
    hardware = hardware_columns([H100] * count, [NODE] * count)
    codes = legality.reason_codes(stack([LLAMA_8B] * count), hardware, layout, np.full(count, 8192.0))
    assert codes.tolist() == list(wrong)
    for row, code in enumerate(wrong):
        text = legality.sentence(code, stack([LLAMA_8B]), layout, "h100", row)
        assert text.endswith(".")
        assert len(text) > 20


def test_too_few_accelerators_for_one_replica_are_no_missing_number():
    layout = layout_columns([Layout(gpus=4, tensor=8, data=0, global_batch=0)])
    hardware = hardware_columns([H100], [NODE])
    assert legality.reason_codes(stack([LLAMA_8B]), hardware, layout, np.array([8192.0]))[0] == 2
    assert "need 8 GPUs, --gpus is 4" in legality.sentence(2, stack([LLAMA_8B]), layout, "h100")


def test_nan_is_a_reason_not_a_figure():
    layout = layout_columns([Layout(gpus=8, data=8, global_batch=8)])
    broken = replace(layout, global_batch=np.array([np.nan]))
    hardware = hardware_columns([H100], [NODE])
    assert legality.reason_codes(stack([LLAMA_8B]), hardware, broken, np.array([8192.0]))[0] == 1


def test_a_recompute_that_does_not_exist_is_named():
    with pytest.raises(UsageError, match="selective, full"):
        layout_columns([Layout(gpus=8, recompute="half")])


@pytest.mark.parametrize("seed", range(12))
def test_the_search_agrees_with_timing_and_weighing_each_candidate_on_its_own(seed):
    """The search evaluates shared parts once and skips what cannot fit; the plain kernels know no such thing."""
    dice = np.random.default_rng(seed)
    model = [LLAMA_8B, GPT3, LLAMA_405B, MIXTRAL][dice.integers(4)]
    method = ("full", "lora", "qlora")[dice.integers(3)]
    sizes = (40.0, 79.6, 141.0)
    chips = [replace(H100, id=f"h{size}", memory_gib=size) for size in sizes]
    gpus, batch = [float(8 * n) for n in dice.integers(1, 40, 3)], int(dice.choice([64, 512]))
    wanted = {"sequence_tokens": 8192.0, "global_batch": batch, "method": method, "lora_rank": 16}
    job = search.make_job(model, **wanted, software="vendor", software_year=2025.0, values=DEFAULTS)
    grid = make_grid(model, 8192.0, batch, wide=True)
    keys = search.make_keys(chips, [NODE] * 3, gpus, lambda _: "bf16")
    found = search.search(grid, job, keys)
    shape, recipe = stack([model]), recipe_columns(1, 8192.0, method=method)
    kept = from_training(recipe, "vendor")
    capacity = np.repeat(usable_bytes(np.array(sizes)), len(grid))
    every = np.concatenate([np.full(len(grid), float(n)) for n in gpus])
    many = Grid.concatenate([grid] * 3)
    data = every / many.model_parallel
    legal = (data == np.floor(data)) & (data * many.micro_batch <= batch) & (many.tensor <= 8)
    legal &= (data * many.tensor * many.context) % many.expert == 0
    rows = many.take(legal)
    lower = np.exp2(np.floor(np.log2(data[legal])))
    at_power, at_degree = (
        np.array(
            [
                training_memory(shape, grid_layouts(rows, job, degree, np.full(len(rows), code)), kept).total_bytes
                for code in range(3)
            ]
        )
        for degree in (lower, data[legal])
    )
    need = np.where(
        (at_power <= capacity[legal]).any(axis=0), at_power, at_degree
    )  # the degree where nothing else fits
    fits = need <= capacity[legal]
    timed = np.flatnonzero(fits.any(axis=0))
    least = np.argmax(fits[:, timed], axis=0)
    layout = grid_layouts(rows.take(timed), job, data[legal][timed], least)
    case = build_case(
        shape, hardware_columns(chips[:1] * len(timed), [NODE] * len(timed)), layout, recipe, DEFAULTS,
        software=np.full(len(timed), job.software), software_year=np.full(len(timed), 2025.0),
    )  # fmt: skip
    plain = np.array([layout.gpus, least, training.step(case).tokens_per_s_per_gpu, need[least, timed]])
    quick = np.array([found.layout.gpus, found.layout.recompute, found.tokens_per_s_per_gpu, found.memory_bytes])
    assert plain.shape == quick.shape
    for one, other in zip(ordered(plain), ordered(quick), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11)


def ordered(table):
    """Return the columns sorted by GPUs, recomputation, and speed without its last digits."""
    return table[:, np.lexsort((table[3].round(-4), table[2].round(7), table[1], table[0]))]


def test_no_software_that_nobody_measured_is_usual():
    """A chip of 2025 would be met by software of mid-2027; what was measured ends in 2026."""
    chips = hardware_columns([replace(H100, year=year) for year in (2017, 2022, 2025)], [NODE] * 3)
    assert search.usual_year(chips).tolist() == [search.USUAL_YEAR, 2024.5, search.NEWEST_YEAR]
