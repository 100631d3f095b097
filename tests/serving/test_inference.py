"""`gpucost inference` as a user meets it: bills that add up, monotone answers, anchors from outside, clear refusals."""

import json
import re
from datetime import date

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

import gpucost
from gpucost.ask.inference import request_of
from gpucost.catalog import open_catalog
from gpucost.catalog.calibrations import serving_calibration
from gpucost.cli.question import command_of
from gpucost.errors import DataError, GpuCostError, NothingFitsError, OverBudgetError, UsageError
from gpucost.options import OPTIONS
from gpucost.physics.serving import steps as serving
from gpucost.physics.serving.cases import ServedReplica, build, plain_options
from gpucost.render.inference import document
from gpucost.serving import costing, run
from gpucost.serving.costing import MonthlyLoad, profile_of
from gpucost.serving.run import mig_key, serving_fit_payload
from gpucost.workloads.counts import units_for

command = command_of("inference")

CATALOG = open_catalog()


def ask(model="llama-3.1-8b", **wanted):
    return gpucost.inference(model, catalog=CATALOG, **wanted)


def test_lines_add_up_to_the_month_and_the_month_to_the_price_of_tokens():
    for wanted in (
        {},
        {"requests_per_s": 7.5, "redundancy": 1, "profile": "office"},
        {"tokens_per_month": "3b", "autoscale": True},
    ):
        for option in ask(**wanted).options:
            cents = sum(round(line["cost_usd"] * 100) for line in option["lines"])
            assert cents == round(option["usd_per_month"] * 100)
            assert option["usd_per_mtok"] == pytest.approx(option["usd_per_month"] / option["tokens_per_month"] * 1e6)
            for line in option["lines"]:
                assert line["cost_usd"] == pytest.approx(line["quantity"] * line["unit_price_usd"], abs=0.0051)


def test_input_and_output_prices_mix_to_the_blend():
    """700 prompt and 300 output tokens: 0.7 · input + 0.3 · output is the blended price."""
    best = ask(prompt_tokens=700, output_tokens=300).best
    assert 0.7 * best["usd_per_mtok_input"] + 0.3 * best["usd_per_mtok_output"] == pytest.approx(best["usd_per_mtok"])


def test_ranges_contain_their_points():
    for option in ask(top=0).options:
        assert option["usd_per_mtok_low"] <= option["usd_per_mtok"] <= option["usd_per_mtok_high"]
        assert option["usd_per_month_low"] <= option["usd_per_month"] <= option["usd_per_month_high"]
        assert option["tpot_ms_low"] < option["tpot_ms"] < option["tpot_ms_high"]


def test_replicas_by_hand():
    """12 requests/s on replicas that take 5 each at 100 %: three; at 70 %, four (12 ÷ 3.5 = 3.43)."""
    for share, replicas in ((100, 3), (70, 4)):
        load = MonthlyLoad.of(request_of(CATALOG, model="8b", requests_per_s=12, utilisation=f"{share}%"))
        assert load.needed(np.array([5.0]), 1.0).tolist() == [replicas]


def test_redundancy_is_paid_and_serves_nothing():
    plain, safe = (ask(requests_per_s=5, redundancy=n, gpu="l40s").best for n in (0, 1))
    assert safe["usd_per_month"] > plain["usd_per_month"]
    assert safe["tokens_per_month"] == plain["tokens_per_month"]


def test_scaling_by_the_hour_never_costs_more_than_peak_capacity():
    fixed, scaled = (ask(requests_per_s=40, profile="consumer", autoscale=a, gpu="l40s").best for a in (False, True))
    assert scaled["usd_per_month"] < fixed["usd_per_month"]
    assert profile_of("consumer").mean() == pytest.approx(1.0)


def test_fixed_replicas_that_are_too_few_are_said_to_be():
    best = ask(requests_per_s=500, replicas=1, gpu="l4", top=1).best
    assert best["replicas"] == 1
    assert any("too few" in note for note in best["notes"])


prompts = st.integers(64, 20_000)


@settings(max_examples=25, deadline=None)
@given(prompts, st.integers(1, 20_000))
def test_longer_prompts_are_never_cheaper_per_request(prompt, more):
    short, long = (
        ask(prompt_tokens=p, output_tokens=200, gpu="h100-sxm", top=1).best
        for p in (prompt, min(prompt + more, 30_000))
    )
    assert long["usd_per_mtok"] * (min(prompt + more, 30_000) + 200) >= short["usd_per_mtok"] * (prompt + 200) * (
        1 - 1e-6
    )


@settings(max_examples=25, deadline=None)
@given(st.floats(10, 200), st.floats(1.0, 5.0))
def test_tighter_latency_is_never_cheaper(tpot, ratio):
    tight, loose = (
        ask("llama-3.1-70b", precision="fp8", tpot=t, gpu="h200", top=1).best for t in (tpot * 2, tpot * 2 * ratio)
    )
    assert tight["usd_per_mtok"] >= loose["usd_per_mtok"] * (1 - 1e-9)


def test_targets_are_met():
    for option in ask("llama-3.1-70b", precision="fp8", tpot="40ms", ttft="800ms", top=0).options:
        assert option["tpot_ms"] <= 40
        assert option["ttft_ms"] <= 800


def test_offers_that_bind_nobody_stand_before_terms_and_what_may_be_interrupted_and_each_kind_is_in_order():
    options = ask(top=4).options
    rules = [OPTIONS[option["option"]] for option in options]
    kinds = ["interruptible" if rule.interruptible else "bound" if rule.take_or_pay else "free" for rule in rules]
    assert kinds == ["free"] * 4 + ["bound"] * 4 + ["interruptible"] * 4
    for kind in dict.fromkeys(kinds):
        budgets = [
            round(option["budget_usd"] / option["usd_per_month"] * option["usd_per_mtok"], 9)
            for option, of_kind in zip(options, kinds, strict=True)
            if of_kind == kind
        ]
        assert budgets == sorted(budgets)


def test_the_answer_is_one_screen_with_its_purchase_options(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    shown = ask().to_text().splitlines()
    assert shown[0].startswith("Serve llama-3.1-8b, ")
    assert {"Price", "Month", "Model", "Range"} <= {line.split(" ")[0] for line in shown}
    assert len(shown) <= 24
    assert max(len(line) for line in shown) <= 80
    assert any("reserved" in line or "on demand" in line for line in shown)


def test_every_offer_is_an_option_or_excluded_with_a_reason():
    payload = ask("llama-3.1-405b", precision="bf16", top=0).payload
    unranked = [row for row in payload["offers"] if row["rank"] is None]
    assert unranked
    assert all(row["reason"] for row in unranked)


def test_doubling_a_price_doubles_the_cost():
    best = ask(gpu="l40s").best
    twice = run.recompute(best["factors"], usd_per_gpu_hour=2 * best["usd_per_gpu_hour"])
    assert twice["usd_per_month"] == pytest.approx(2 * best["usd_per_month"], abs=0.02)


def test_the_live_formulas_give_what_the_answer_says():
    result = ask(requests_per_s=3, redundancy=1)
    derived = {row["name"]: row["value"] for row in result.payload["model"]["derived"]}
    for name in ("usd_per_month", "usd_per_mtok", "usd_per_mtok_input", "usd_per_mtok_output", "energy_kwh", "kgco2e"):
        assert derived[name] == pytest.approx(result.best[name], rel=1e-9)


def test_units_by_hand():
    assert units_for(np.array([9.0]), np.array([2.0]), np.array([8.0]), np.array([1.0])).tolist() == [3.0]


def test_break_even_by_hand():
    """10 USD/h against 1 USD per million tokens: 10 million tokens an hour, 7.3 thousand million a month."""
    found = costing.break_even(10.0, 10_000.0, 0.0, 1.0)
    assert found["tokens_per_month"] == pytest.approx(7.3e9)
    assert costing.break_even(100.0, 1_000.0, 0.0, 1.0)["tokens_per_month"] is None


def test_the_first_screen_holds_the_cheapest_hosted_price_against_ones_own():
    found = ask("70b").payload
    cheapest = min(found["api"], key=lambda row: row["usd_per_mtok"])
    price, seller = f"{cheapest['usd_per_mtok']:.3g}", cheapest["provider"]
    hosted = [row for row in document(found).screen[0].rows if row["kind"] == "hosted"]
    assert [(row["seller"], row["quote"]) for row in hosted] == [(seller, f"${price}")]
    found = ask("70b", tokens_per_month="1m").payload
    assert f"USD a month at {seller} ({price} per million tokens)" in found["lead"]
    assert "e+0" not in found["lead"]  # 1,394 USD per million tokens where nearly none are served


def test_a_hosted_model_that_has_ended_is_not_offered():
    model = CATALOG.architecture("8b")
    kept = {"model_id": model.name, "suspect": False, "input_usd_per_mtok": 1.0, "output_usd_per_mtok": 1.0,
            "cached_input_usd_per_mtok": None, "source_id": "s"}  # fmt: skip

    def listed(listing, seen, until=None):
        return {**kept, "provider": "p", "listing": listing, "observed_on": seen, "valid_until": until}

    rows = [
        listed("current", date(2026, 10, 1)),
        listed("gone from the list", date(2025, 2, 1)),
        listed("ended", date(2025, 2, 1)),
        listed("ended", date(2026, 10, 1), date(2026, 10, 15)),
    ]
    request = request_of(CATALOG, model="8b")
    named = [row["listing"] for row in costing.hosted_prices(rows, model, {}, request, date(2026, 11, 1))]
    assert named == ["current"]
    earlier = costing.hosted_prices(rows, model, {}, request, date(2025, 3, 1))
    assert {row["listing"] for row in earlier} == {"gone from the list", "ended"}


def test_a_batch_costs_what_its_discount_leaves():
    """Groq halves a batch: a quarter of 0.60 and three of 0.15 make 0.2625, and 0.13125 in a batch."""
    model = CATALOG.architecture("gpt-oss-120b")
    request = request_of(CATALOG, model="gpt-oss-120b", prompt_tokens=3_000, output_tokens=1_000)
    prices = costing.hosted_prices(CATALOG.rows("hosted_tokens"), model, {}, request, date(2026, 11, 24))
    groq = next(row for row in prices if row["provider"] == "groq")
    assert groq["usd_per_mtok"] == pytest.approx(0.2625)
    assert groq["usd_per_mtok_batch"] == pytest.approx(0.13125)
    assert next(row for row in prices if row["provider"] == "deepinfra")["usd_per_mtok_batch"] is None


def test_hours_that_cost_more_raise_the_mean_of_the_week():
    """DeepSeek doubles 0.15 and 0.60 in 7 hours of 5 days: 35 of 168, so that the week costs 29/24 of the base."""
    model = CATALOG.architecture("deepseek-v4-flash")
    request = request_of(CATALOG, model="deepseek-v4-flash", prompt_tokens=3_000, output_tokens=1_000)
    tokens, peaks = CATALOG.rows("hosted_tokens"), CATALOG.rows("hosted_peaks")

    def price(day):
        found = costing.hosted_prices(tokens, model, {}, request, day, peaks)
        return next(row for row in found if row["provider"] == "deepseek")

    now = price(date(2026, 11, 24))
    assert now["usd_per_mtok_input"] == pytest.approx(0.15 * 29 / 24)
    assert now["usd_per_mtok_output"] == pytest.approx(0.60 * 29 / 24)
    assert price(date(2026, 8, 31))["usd_per_mtok_input"] == 0.14  # before, the same at every hour


def test_the_break_even_lies_where_both_curves_meet():
    payload = ask("qwen3-32b", precision="fp8", gpu="h100-sxm", usd_per_gpu_hour=0.5).payload
    point, line = payload["breakeven"]["tokens_per_month"], payload["breakeven_curve"]
    below = [row for row in line if row["tokens_per_month"] < point * 0.99]
    assert all(row["self_host_usd"] > row["api_usd"] for row in below)
    assert payload["api"][0]["source_id"] in payload["sources"]


def test_a_mig_instance_is_a_share_of_its_chip():
    """3g.40gb of an A100 80GB: half the memory and bandwidth, three sevenths of the arithmetic (MIG user guide)."""
    chip = CATALOG.accelerator("a100-sxm4-80gb")
    part = mig_key(chip, 3, 4).accelerator
    assert part.memory_gib == chip.memory_gib / 2
    assert part.hbm_gb_per_s == chip.hbm_gb_per_s / 2
    assert part.bf16_tflops == pytest.approx(312 * 3 / 7)


def test_selection_finds_the_small_cards_for_a_small_model():
    found = serving_fit_payload(CATALOG, request_of(CATALOG, model="llama-3.1-8b", tpot="60ms", precision="int4"))
    one = {row["gpu"] for row in found["options"] if row["gpus"] == 1}
    assert {"l4", "a10g", "l40s", "h100-sxm5-80gb"} <= one
    assert any("mig" in name for name in one)
    with pytest.raises(NothingFitsError):
        serving_fit_payload(CATALOG, request_of(CATALOG, model="llama-3.1-405b"), "t4")


# Anchors: what DeepSeek and LMSYS published ---------------------------------------------------------------------------


def pool(gpu, ranks, hit=0.0, cache="auto"):
    """A pool of `ranks` accelerators with the experts of DeepSeek-V3 spread over all of them."""
    a = CATALOG.accelerator(gpu)
    d = ServedReplica(
        CATALOG.architecture("deepseek-v3"), a, CATALOG.default_system(gpu), "wide", "fp8", cache, 1, ranks, 1, ranks
    )
    options = replace(plain_options(1), prefix_hit=np.array([hit]))
    return build([d], serving_calibration(CATALOG).values, options)[0]


def seconds_per_request(gpu, prompt, output, hit, prompt_ranks, decode_ranks, cache="auto"):
    """GPU-seconds of prompts and of output per request, pools always full."""
    p, o = np.array([float(prompt)]), np.array([float(output)])
    prompts = np.array([16_384.0 * prompt_ranks / prompt])
    reading = serving.prompt_s(pool(gpu, prompt_ranks, hit, cache), p, prompts)[0] * prompt_ranks / prompts[0]
    case = pool(gpu, decode_ranks, 0.0, cache)
    batch = np.minimum(serving.capacity_sequences(case, p, o), 256.0 * decode_ranks)
    speed = serving.steady(case, batch, p, o, mixed=False).output_tokens_per_s[0] * case.rates.saturation[0]
    return reading, output * decode_ranks / speed


def ratio():
    ranges = serving_calibration(CATALOG).ranges
    width = ranges["base"] * ranges["saturation"] * ranges["mixture_of_experts"] * ranges["unusual_engine"]
    return float(np.exp(width))


def test_deepseek_in_production_lies_in_the_range():
    """USD 0.112 per million tokens, in and out: 87,072 USD a day at 2 USD per GPU-hour ÷ 776 thousand million tokens.

    Stated: H800, prompts on 32 and decoding on 144 accelerators, 56.3 % of prompts cached, 608 to 168 in and out, 4,989
    cached tokens per output token on average (so 4,384 in, 1,211 out).
    """
    reading, writing = seconds_per_request("h800-sxm5-80gb", 4384, 1211, 0.563, 32, 144, "bf16")
    cost = (reading + writing) * 2.0 / 3600 / (4384 + 1211) * 1e6
    assert pytest.approx(0.112, abs=0.001) == 87_072 / 776_000
    assert cost / ratio() <= 0.112 <= cost * ratio()


def test_lmsys_large_scale_expert_parallelism_lies_in_the_range():
    """USD 0.20 per million output tokens: 22,300 tokens/s per node of 8 H100 at 2 USD per GPU-hour; 9 nodes decode."""
    _, writing = seconds_per_request("h100-sxm5-80gb", 2000, 100, 0.0, 32, 72)
    cost = writing / 100 * 2.0 / 3600 * 1e6
    assert pytest.approx(0.20, abs=0.005) == 16 / (22_300 * 3600) * 1e6
    assert cost / ratio() <= 0.20 <= cost * ratio()


# Refusals -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "said"),
    [
        ({"prompt_tokens": "0"}, "prompt_tokens="),
        ({"prompt_tokens": "12abc"}, "prompt_tokens="),
        ({"output_tokens": -3}, "output_tokens="),
        ({"tpot": "fast"}, "tpot="),
        ({"precision": "fp7"}, "precision="),
        ({"requests_per_s": 1, "tokens_per_month": 1e9}, "tokens_per_month="),
        ({"requests_per_s": "nan"}, "requests_per_s="),
        ({"utilisation": 0}, "utilisation="),
        ({"utilisation": "170%"}, "utilisation="),
        ({"replicas": 2, "autoscale": True, "requests_per_s": 1}, "autoscale="),
        ({"profile": "weekend", "requests_per_s": 1}, "profile="),
        ({"draft_tokens": 3}, "acceptance="),
        ({"lengths": "azure-chat"}, "azure-conversation"),
        ({"engine": "vlm"}, "vllm"),
        ({"as_of": "tomorrow"}, "as_of="),
        ({"gpu": "h1000"}, "h100"),
    ],
)
def test_bad_input_is_refused_in_one_sentence_that_names_it(wanted, said):
    with pytest.raises(GpuCostError) as caught:
        ask(**wanted)
    assert caught.value.exit_code in (2, 4)
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_what_cannot_be_served_says_why_and_what_would():
    with pytest.raises(NothingFitsError, match="no replica"):
        ask("llama-3.1-405b", gpu="t4")
    with pytest.raises(NothingFitsError, match=r"(--tpot|tpot=)"):
        ask("llama-3.1-405b", precision="fp8", tpot=1)
    with pytest.raises(OverBudgetError):
        ask(requests_per_s=1, budget=5)
    with pytest.raises(UsageError):
        ask("")


@pytest.mark.parametrize("goal", ["cost", "latency", "carbon"])
def test_a_budget_leaves_only_what_keeps_it_whatever_the_goal(goal):
    wanted = {"gpu": "h100-sxm", "requests_per_s": 5, "optimize": goal, "top": 0}
    free, kept = (ask(**wanted, **more).payload for more in ({}, {"budget": 9000}))
    assert max(row["usd_per_month"] for row in free["options"]) > 9000
    assert 0 < kept["offers_ranked"] == len(kept["options"]) < free["offers_ranked"]
    assert all(row["usd_per_month"] <= 9000 for row in kept["options"])
    assert any("9,000.00 USD" in row["reason"] for row in kept["offers"])


def test_hours_of_redundant_replicas_are_never_less_than_none():
    """At this load three replicas are busy to the last bit, and a rounding error beyond."""
    for load in ("138.5", "138.57815063059678", "138.6"):
        found = gpucost.inference("13b", gpu="h100-sxm", requests_per_s=load, replicas=3, as_of="2026-11-01")
        assert not re.search(r"^redundant.* -\d", found.explain(), re.MULTILINE)


def test_a_load_that_is_too_small_is_told_the_limit():
    with pytest.raises(UsageError, match="must exceed 1e-09"):
        ask(requests_per_s="1e-9")


def test_own_profile_and_own_lengths(tmp_path):
    hours = tmp_path / "day.csv"
    hours.write_text("\n".join(["1"] * 12 + ["3"] * 12))
    trace = tmp_path / "trace.csv"
    trace.write_text("prompt,output\n100,10\n300,30\n")
    payload = ask(lengths=str(trace), requests_per_s=20, profile=str(hours), gpu="l40s").payload
    assert (payload["request"]["prompt_tokens"], payload["request"]["output_tokens"]) == (200, 20)
    trace.write_text("prompt,output\n100,0\n300,2\n")  # some requests may answer nothing
    assert ask(lengths=str(trace), gpu="l40s").payload["request"]["output_tokens"] == 1
    for rows, said in (("0,10", "prompt: has 0 prompt tokens"), ("10,0\n10,1", "output: has 0.5 output tokens")):
        trace.write_text(f"prompt,output\n{rows}\n")
        with pytest.raises(DataError, match=said):
            ask(lengths=str(trace))
    hours.write_text("1,2,3")
    with pytest.raises(UsageError, match="24"):
        ask(requests_per_s=1, profile=str(hours))


def test_long_outputs_stay_longer_and_leave_fewer_places(tmp_path):
    """Prompts 10, outputs 100 and 300: a running request holds (1,000 + 3,000 + 5,000 + 45,000)/400 = 135, not 110."""
    trace = tmp_path / "trace.csv"
    trace.write_text("prompt,output\n10,100\n10,300\n")
    spread = ask(lengths=str(trace), gpu="l40s").payload
    alike = ask(prompt_tokens=10, output_tokens=200, gpu="l40s").payload
    assert spread["request"]["longer_tokens"] == pytest.approx(25)
    assert spread["options"][0]["usd_per_mtok"] > alike["options"][0]["usd_per_mtok"]


def test_the_command_writes_json_csv_and_a_table(tmp_path):
    runner, flags = (
        CliRunner(),
        ["--model", "llama-3.1-8b", "--prompt-tokens", "500", "--output-tokens", "100", "--gpu", "l40s"],
    )
    payload = json.loads(runner.invoke(command, [*flags, "--format", "json"]).stdout)
    assert {"options", "offers", "warnings", "sources", "as_of", "catalog_version"} <= set(payload)
    table = runner.invoke(command, flags).stdout
    assert "l40s" in table
    file = tmp_path / "answer.csv"
    assert runner.invoke(command, [*flags, "--format", "csv", "-o", str(file)]).exit_code == 0
    assert file.read_text().startswith("rank,")
    assert "usd_per_mtok" in runner.invoke(command, [*flags, "--explain"]).stdout


def test_an_offer_has_one_rank_in_the_answer_and_in_its_data_frame():
    """What binds for a term, or may be interrupted, comes after all that bind nobody, however few are shown."""
    result = gpucost.inference("8b", gpu="h100-sxm", requests_per_s=5, top=3, server="tuned", catalog=CATALOG)
    ranks = {row["offer_id"]: row["rank"] for row in result.options}
    whole = dict(zip(*(result.to_frame(all=True)[name] for name in ("offer_id", "rank")), strict=True))
    assert len(ranks) == 9 < max(ranks.values())  # of each kind three
    assert {name: whole[name] for name in ranks} == ranks
    last = max(ranks.values())
    assert gpucost.compare(result, result, rank=last).payload["difference"] == 0
    assert type(result.payload["breakeven"]["utilisation_fraction"]) in (float, type(None))  # of NumPy nothing
    with pytest.raises(UsageError, match="cannot be written as 'JSON'"):
        result.written("JSON")


def test_an_engine_that_nobody_measured_on_a_makers_chips_says_so_first_and_has_a_wider_range():
    """Early ports to MI300X reached 0.3 to 0.4 of what their physics says: the range must hold a third."""
    usual, unmeasured = (ask("llama-3.1-70b", gpu="mi300x", engine=engine) for engine in ("sglang", "trtllm"))
    said = [warning for warning in unmeasured.payload["warnings"] if "nobody measured trtllm on AMD" in warning]
    assert said
    assert "assumed" in said[0]
    assert not any("nobody measured" in warning for warning in usual.payload["warnings"])
    slower, usual_slower = (answer.best["tpot_ms_high"] / answer.best["tpot_ms"] for answer in (unmeasured, usual))
    assert 3.3 < slower <= 4.0001
    assert slower > usual_slower
    assert unmeasured.best["tpot_ms"] / unmeasured.best["tpot_ms_low"] <= 4.0001, "no range says less than that"


# --- Latency at a load.


def at_rate(rate, **stated):
    """Return the first option for Llama 3.1 70B in fp8 on one H200 at so many requests of 207 and 198 tokens."""
    service = {"gpu": "h200-sxm", "replica_gpus": 1, "precision": "fp8", "prompt_tokens": 207, "output_tokens": 198}
    return ask("llama-3.1-70b", **service, requests_per_s=rate, **stated).payload["options"][0]


def test_latency_is_that_of_the_load_and_near_what_was_measured():
    """Published at 0.5, 1 and 3 requests a second: 20.4, 20.4 and 21.5 ms a token, where the full batch takes 122."""
    served = [at_rate(rate) for rate in (0.5, 1.0, 3.0)]
    for option, measured_ms in zip(served, (20.4, 20.4, 21.5), strict=True):
        assert option["tpot_ms"] == pytest.approx(measured_ms, rel=0.4)
        assert option["tpot_ms_low"] < measured_ms < option["tpot_ms_high"]
    assert served[0]["tpot_ms"] < served[1]["tpot_ms"] < served[2]["tpot_ms"]
    assert served[0]["ttft_ms"] < served[1]["ttft_ms"] < served[2]["ttft_ms"]


@pytest.mark.parametrize("rate", [0.01, 0.5, 3.0, 12.0])
def test_requests_in_flight_follow_littles_law(rate):
    option = at_rate(rate)
    of_one_replica = rate / option["replicas"] * 198 * option["tpot_ms"] / 1000
    assert option["requests_in_flight"] == pytest.approx(of_one_replica, rel=0.01)
    assert sum(option["components"].values()) == pytest.approx(option["tpot_ms"] / 1000, rel=1e-9)


def test_replicas_share_a_rate():
    one, two = at_rate(3.0, replicas=1), at_rate(6.0, replicas=2)
    assert two["tpot_ms"] == one["tpot_ms"]
    assert two["ttft_ms"] == one["ttft_ms"]


def test_a_load_that_vanishes_leaves_an_idle_replica():
    option = at_rate(1e-6)
    assert option["ttft_ms"] == pytest.approx(option["ttft_unloaded_ms"], rel=1e-3)
    assert option["tpot_ms"] == pytest.approx(at_rate(0.01)["tpot_ms"], rel=1e-3)


def broken_at(option):
    return next(note for note in option["notes"] if note.startswith("too few replicas")).replace(",", "")


def test_a_load_beyond_the_replicas_has_no_time_to_the_first_token():
    option = at_rate(1000.0, replicas=1)
    assert option["ttft_ms"] is None
    assert option["requests_in_flight"] == option["batch"]
    bring, beyond, more = map(float, re.findall(r"\d+(?:\.\d+)?", broken_at(option)))
    assert bring == pytest.approx(1000, rel=0.01)
    assert beyond == more == pytest.approx(option["output_tokens_per_s"] / 198, rel=0.01)


def test_without_a_load_times_are_those_of_the_full_batch():
    option = at_rate(None)
    assert option["requests_in_flight"] == option["batch"]
    assert option["ttft_ms"] == option["ttft_unloaded_ms"]
    assert option["ttft_loaded_ms"] is None


def test_a_measured_speed_moves_the_whole_curve():
    """At its own concurrency a measured time per token is what is measured, at a lower load less."""
    own = {"own_tpot": "40ms", "own_concurrency": 64}
    full, light = at_rate(20.0, replicas=1, **own), at_rate(1.0, replicas=1, **own)
    assert full["tpot_ms"] == pytest.approx(40.0)
    assert light["tpot_ms"] < full["tpot_ms"]
