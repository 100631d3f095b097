"""Answers that two commands give about one deployment, and answers that people outside have for common questions."""

import pytest

import gpucost


@pytest.fixture(scope="module")
def catalog():
    return gpucost.open_catalog()


def checks_of(**claim):
    answer = gpucost.audit(**claim)
    return answer, {row["name"]: row for row in answer.payload["checks"]}


@pytest.mark.parametrize(
    ("model", "gpu", "gpus"),
    [
        ("llama-2-13b", "h100-sxm", 3),
        ("llama-3.1-405b", "h100-sxm", 96),
        ("llama-3.1-8b", "h100-sxm", 3),
        ("qwen3-30b-a3b", "rtx-4090", 24),  # narrow layers and many experts: four ranks must share each layer
    ],
)
def test_what_fit_fits_on_a_count_that_is_no_power_of_two_can_be_timed_and_claimed(catalog, model, gpu, gpus):
    fits = gpucost.fit(model, gpu, gpus=gpus, sequence=4096, catalog=catalog).payload["fits"]
    timed = gpucost.throughput(model, gpu, gpus, sequence=4096, catalog=catalog).payload
    _, checks = checks_of(model=model, gpu=gpu, gpus=gpus, sequence=4096, fits="training", catalog=catalog)
    assert fits
    assert timed["tokens_per_s_per_gpu"] > 0
    assert checks["fits"]["verdict"] == "possible"


def test_a_family_is_judged_by_the_variant_that_trains_fastest_not_by_its_name(catalog):
    # the A100 of 40 GB has one peak and one memory as PCIe and as SXM; the modules have the faster links
    days = gpucost.throughput("8b", "a100-sxm4-40gb", 8, catalog=catalog).payload["tokens_per_s"]
    answer, checks = checks_of(model="8b", tokens="100b", gpu="a100-40gb", gpus=8, days=60, catalog=catalog)
    assert "judged as a100-sxm4-40gb" in " ".join(answer.payload["notes"])
    end_to_end = checks["duration"]["typical"] * 86_400 * days / 100e9
    assert 1.1 < end_to_end < 1.3  # the steps, and the usual evaluation beside them


def test_a_speed_without_a_batch_is_judged_by_the_best_one_and_the_answer_says_which_it_needs(catalog):
    # 16.06 GB of weights at 3,350 GB/s: about 209 tokens a second for one sequence
    answer, checks = checks_of(model="8b", gpu="h100-sxm", gpus=1, tokens_per_s=5000, catalog=catalog)
    assert answer.verdict == "possible"
    assert "at most 209" in checks["decode speed"]["explanation"]
    alone, _ = checks_of(model="8b", gpu="h100-sxm", gpus=1, tokens_per_s=5000, batch=1, catalog=catalog)
    assert alone.verdict == "impossible"
    beyond, _ = checks_of(model="8b", gpu="h100-sxm", gpus=1, tokens_per_s=70_000, catalog=catalog)
    assert beyond.verdict == "impossible"  # 989 TFLOP/s ÷ 16.06 GFLOP a token: about 61,600


@pytest.mark.parametrize(
    ("model", "gpu"), [("llama-2-13b", "h100-sxm"), ("llama-3.1-70b", "h100-sxm"), ("llama-3.1-405b", "h200-sxm")]
)
def test_the_fewest_that_fit_fit_and_one_unit_less_does_not(catalog, model, gpu):
    fewest = gpucost.fit(model, gpu, catalog=catalog).payload["gpus"]
    unit = 1 if fewest <= 8 else 8  # beyond a node whole nodes are counted
    assert gpucost.fit(model, gpu, gpus=fewest, catalog=catalog).payload["fits"]
    assert not gpucost.fit(model, gpu, gpus=fewest - unit, catalog=catalog).payload["fits"]


def test_methods_side_by_side_recompute_alike_so_that_smaller_weights_need_less(catalog):
    sizes = gpucost.fit("llama-2-13b", "h100-sxm", catalog=catalog).payload["sizes"]
    rows = [row for row in sizes if row["qlora_gpus"] == row["lora_gpus"]]
    assert len(rows) > 2
    assert all(row["qlora_gb"] < row["lora_gb"] for row in rows)


@pytest.mark.slow
def test_a_choice_for_serving_counts_what_inference_counts(catalog):
    rows = gpucost.choose("8b", purpose="serving", tokens="50b", catalog=catalog).payload["rows"]
    row = next(row for row in rows if row["gpu"] == "rtx-4090")
    served = gpucost.inference("8b", tokens_per_month="50b", gpu="rtx-4090", top=0, catalog=catalog).payload["options"]
    assert row["gpus"] < 20
    assert any(
        row["rent_usd"] == pytest.approx(12 * one["usd_per_month"]) for one in served if one["gpus"] == row["gpus"]
    )
    pooled = gpucost.choose("8b", purpose="serving", tokens="50b", pool={"rtx-4090": 20}, catalog=catalog).payload
    assert pooled["assigned"][0]["provider"] == "own"


def test_what_is_for_rent_alone_has_no_price_to_buy_and_modules_come_in_whole_servers(catalog):
    rows = gpucost.choose("70b", purpose="training", catalog=catalog).payload["rows"]
    bought = {row["gpu"]: row["buy_usd"] for row in rows}
    assert all(price is None for gpu, price in bought.items() if gpu.startswith(("tpu", "trainium", "inferentia")))
    modules = [row for row in rows if "-sxm" in row["gpu"] and row["buy_usd"]]
    assert modules
    assert all(row["breakeven_months"] > 1 for row in modules)  # a module of 100 USD is no server


# Random deployments: a few hundred here, ten thousand by `python -m benchmarks.oracles --questions 10000` ------------

ASKED = {"claim": 60, "fit": 80, "fewest": 50, "speed": 25, "serving": 12, "owning": 6, "fleet": 3, "faces": 2,
         "tools": 3, "owned": 1, "files": 3, "sweep": 2, "choice": 1}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", ASKED)
def test_random_deployments_have_one_answer(catalog, kind):
    from benchmarks.oracles import judge, question_of

    asked = [question_of(7, number, kind)[1] for number in range(ASKED[kind])]
    judged = {str(one): judge(kind, one, catalog) for one in asked}
    assert {one: judgement.differences for one, judgement in judged.items() if judgement.differences} == {}
    answered = sum(not judgement.refused for judgement in judged.values())
    assert answered > len(judged) / 3  # the others are refused by every face alike


def test_what_one_face_refuses_and_another_answers_differs():
    from benchmarks.oracles import AllRefuse, Refusal, refused

    small, unknown = Refusal("NothingFitsError", "too small"), Refusal("UsageError", "unknown")
    assert refused(estimate=object(), page=object()) == []
    assert "page answers" in refused(estimate=small, page=object())[0]
    assert refused(estimate=small, page=unknown) != []
    with pytest.raises(AllRefuse, match="NothingFitsError"):
        refused(estimate=small, page=small._replace(text="no room"))


def test_the_questions_are_the_same_for_the_same_seed_and_go_deep():
    from benchmarks.oracles import question_of

    drawn = [question_of(1, number) for number in range(300)]
    assert drawn == [question_of(1, number) for number in range(300)]
    assert len({str(one) for one in drawn}) > 290


# What one line of a table said, each failing before it was mended -----------------------------------------------------


def test_a_sweep_over_models_shows_the_best_of_each():
    answer = gpucost.sweep("estimate", model=["8b", "1b"], tokens=["1b", "10b"])
    assert {(row["model"], row["tokens"]) for row in answer.payload["front"]} == {
        (model, tokens) for model in ("8b", "1b") for tokens in (1e9, 1e10)
    }


def test_a_run_bound_by_its_data_has_a_range(catalog):
    fed = {"dataset": "150kb/sample", "storage_bandwidth": 0.001}
    timed = gpucost.throughput("8b", "h100-sxm", 8, catalog=catalog, **fed).payload
    assert timed["tokens_per_s_per_gpu_low"] < timed["tokens_per_s_per_gpu"] < timed["tokens_per_s_per_gpu_high"]
    run = gpucost.estimate("8b", 1e10, gpu="h100-sxm", gpus=8, catalog=catalog, with_facts=False, **fed).best
    assert run["tokens_per_s_per_gpu_high"] == pytest.approx(timed["tokens_per_s_per_gpu_high"])


def test_a_cap_of_the_power_costs_speed(catalog):
    asked = {"gpu": "h100-sxm", "gpus": 64, "rent": 2.5, "draws": 0, "catalog": catalog}
    free, capped = (gpucost.tco(**asked, set=inputs) for inputs in ({}, {"power_cap_fraction": 0.5}))
    speeds = [next(r["value"] for r in one.assumptions if r["name"] == "goodput_fraction") for one in (free, capped)]
    assert speeds[1] / speeds[0] == pytest.approx((0.5 / 0.75) ** (1 / 3), rel=1e-6)
    assert any("slower" in text for text in capped.payload["warnings"])


def test_two_desktop_cards_are_no_part_of_a_server_of_eight(catalog):
    owned = gpucost.tco("rtx-4090", 2, rent=0.5, draws=0, catalog=catalog)
    assert not any("whole servers" in text for text in owned.payload["warnings"])
    assert any("whole servers" in text for text in gpucost.tco("h100-sxm", 2, rent=2, draws=0).payload["warnings"])


@pytest.mark.parametrize("question", ["throughput", "fit"])
def test_a_chip_made_for_inference_does_not_train(catalog, question):
    with pytest.raises(gpucost.errors.GpuCostError, match="inference"):
        getattr(gpucost, question)("8b", "inferentia2", 8, catalog=catalog)


def test_a_local_engine_serves_one_user(catalog):
    row = gpucost.fit("8b", "m3-ultra", serving=True, engine="llama.cpp", catalog=catalog).best
    assert row["batch"] == 1
    assert row["tpot_ms"] < 60  # 16 GB at 819 GB/s: 20 ms at best


def test_a_fit_for_serving_takes_a_number_of_accelerators(catalog):
    row = gpucost.fit("70b", "rtx-3090", 5, serving=True, precision="int4", catalog=catalog).best
    assert (row["gpus"], row["replicas"] * sum(row["layout"].values()) > 0) == (5, True)


def test_the_price_of_a_fit_is_on_demand(catalog):
    from gpucost.market.facts import market_of
    from gpucost.market.filters import usual
    from gpucost.options import OPTIONS

    market = market_of(catalog)
    families = {OPTIONS[o.option].family for o, ok in zip(market.facts.offers, usual(market), strict=True) if ok}
    assert families == {"on demand"}


def test_a_comparison_of_speeds_says_its_batch(catalog):
    answer = gpucost.compare(speed=True, gpu="h100-sxm", gpus=8, global_batch=8, catalog=catalog)
    assert "One step: 8 sequences" in answer.payload["lead"]


def test_needs_for_memory_are_told_in_one_unit(catalog):
    job = {"method": "qlora", "sequence": 2048, "tensor": 1, "sharding": 0, "micro_batch": 1, "recompute": "full"}
    timed = gpucost.throughput("8b", "rtx-4090", 1, catalog=catalog, **job)
    need = gpucost.fit("8b", "rtx-4090", 1, catalog=catalog, **job).needed_gb
    assert f"needs {need:.1f} GB" in timed.to_text()


def test_frames_of_one_kind_of_answer_have_the_same_columns(catalog):
    asked = {"catalog": catalog, "with_facts": False, "top": 2}
    runs = [gpucost.estimate(model, "10b", **asked) for model in ("8b", "mixtral-8x7b")]
    owned = [gpucost.tco(gpu, 8, rent=2, draws=0, catalog=catalog) for gpu in ("h100-sxm", "rtx-4090")]
    for first, second in (runs, owned):
        assert set(first.to_frame().columns) == set(second.to_frame().columns)
    assert owned[0].best["npv_usd"] == min(way["npv_usd"] for way in owned[0].options)


def test_an_expired_price_is_told_to_have_expired(catalog):
    live = {(offer.gpu, offer.provider) for offer in catalog.offers()}
    expired = {(row["gpu"], row["provider"]) for row in catalog.price_rows if row["ended"] == "too old"}
    gpu, provider = next(pair for pair in sorted(expired - live) if "|" not in pair[0])
    with pytest.raises(gpucost.errors.PriceMissingError, match="expired"):
        gpucost.estimate("8b", "1b", gpu=gpu, provider=provider, catalog=catalog)


# A row of the columns that a search keeps is a deployment -------------------------------------------------------------


@pytest.mark.parametrize(("model", "gpu", "gpus"), [("8b", "h100-sxm", 16), ("mixtral-8x7b", "a100-80gb-sxm", 32)])
def test_the_deployment_of_a_row_of_training_is_the_option_of_the_estimate(catalog, model, gpu, gpus):
    from gpucost.workloads.deployment import deployed
    from gpucost.workloads.speeds import key_of
    from gpucost.workloads.training import make_workload

    workload = make_workload(catalog.architecture(model), latest_year=2026.9)
    one = deployed(catalog, workload, key_of(catalog, gpu), gpus)
    asked = {"gpu": gpu, "gpus": gpus, "usd_per_gpu_hour": 2, "with_facts": False, "catalog": catalog}
    option = gpucost.estimate(model, 1e11, **asked).best
    assert {name: one.layout[name] for name in ("tensor", "pipeline", "data")} == {
        name: option["layout"][name] for name in ("tensor", "pipeline", "data")
    }
    assert int(one.accelerators) == option["gpus"]
    assert one.tokens_per_s_per_gpu == pytest.approx(option["tokens_per_s_per_gpu"], rel=1e-3)
    assert one.needed_gb == pytest.approx(option["memory_gb"])
    assert one.needed_gb < one.usable_gb
    assert one.days(1e11)[1] == pytest.approx(1e11 / one.tokens_per_s / 86_400)


def test_a_row_that_does_not_fit_says_why_and_has_no_speed(catalog):
    from gpucost.physics.training.layouts import NO_MEMORY, REASONS
    from gpucost.workloads.deployment import deployed
    from gpucost.workloads.speeds import key_of
    from gpucost.workloads.training import make_workload

    one = deployed(catalog, make_workload(catalog.architecture("70b")), key_of(catalog, "l4"), 2)
    assert (one.fits, one.reason, one.tokens_per_s != one.tokens_per_s) == (False, REASONS[NO_MEMORY], True)


def test_weights_in_four_bits_are_judged_by_what_files_hold(catalog):
    # hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4: 39.77 GB; 70.55e9 × 0.5 B are 35.3 GB
    for claimed, verdict in ((39.8, "possible"), (35.3, "possible"), (70.6, "impossible"), (20, "impossible")):
        answer = gpucost.audit(model="70b", weights_gb=claimed, precision="int4", catalog=catalog)
        assert answer.verdict == verdict, claimed


def test_relations_list_replicas_over_nodes_as_fit_finds_them(catalog):
    rows = catalog.sql("select min(gpus) as fewest from deployments where serves and gpu = 'h100-sxm5-80gb'",
                       model="deepseek-v3")  # fmt: skip
    assert rows["fewest"][0] == gpucost.fit("deepseek-v3", "h100-sxm", serving=True, catalog=catalog).best["gpus"] == 16


def test_a_machine_whose_price_expired_is_told_from_one_that_was_never_sold(catalog):
    sold: dict[tuple[str, str], set[int]] = {}
    for offer in catalog.offers():
        sold.setdefault((offer.provider, offer.gpu), set()).add(offer.gpus)
    singles = [name for name, sizes in sold.items() if sizes == {1}]
    once = {(row["provider"], row["gpu"]) for row in catalog.price_rows if (row["gpus"] or 0) >= 8}
    expired = next(name for name in singles if name in once)
    never = next(name for name in singles if name not in once)
    for (provider, gpu), said in ((expired, "last seen"), (never, "never sold")):
        with pytest.raises(gpucost.errors.NothingFitsError, match=said):
            gpucost.estimate("1b", "1b", gpu=gpu, gpus=8, provider=provider, catalog=catalog)


def test_fit_splits_sequences_as_far_as_the_search_of_speeds_does(catalog):
    assert gpucost.fit("llama-3.1-405b", "l4", gpus=512, catalog=catalog).fits
    assert gpucost.throughput("llama-3.1-405b", "l4", 512, catalog=catalog).payload["layout"]["context"] == 2


def test_fit_tries_the_stages_that_the_search_of_speeds_does_and_more_where_they_are_given(catalog):
    asked = {"gpus": 256, "sequence": 1000, "catalog": catalog}
    assert not gpucost.fit("llama-3.1-405b", "v100-sxm2-32gb", **asked).fits
    with pytest.raises(gpucost.errors.NothingFitsError):
        gpucost.throughput("llama-3.1-405b", "v100-sxm2-32gb", **asked)
    assert gpucost.fit("llama-3.1-405b", "v100-sxm2-32gb", pipeline=32, **asked).fits
