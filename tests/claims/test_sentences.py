"""Sentences that circulate: each figure is judged as datasheets, price records and arithmetic judge it, or is not.

`claims.csv` holds 122 claims of articles in words of ours, each with the verdict that a person reached from datasheets,
price lists and arithmetic: RIGHT, WRONG, SPARSE (a sparse figure as a dense one), STALE (once true) or AMBIG (open to
readings). `read` says whether `audit` understands the sentence; what it does not it must leave unjudged.
"""

import csv
from pathlib import Path

import pytest

import gpucost
from gpucost.catalog import open_catalog
from gpucost.claims.reading import figures_of, sentences_of
from gpucost.claims.sentences import NOT_READ, audit_text
from gpucost.errors import UsageError
from tests.commands import in_process

CLAIMS = list(csv.DictReader((Path(__file__).parent / "claims.csv").read_text("utf-8").splitlines()))
ALLOWED = {
    "RIGHT": ("possible",),
    "WRONG": ("implausible", "impossible"),
    "SPARSE": ("implausible", "impossible"),
    "STALE": ("possible", "implausible", "impossible"),
    "AMBIG": ("possible", "implausible", "impossible"),
}


@pytest.fixture(scope="module")
def catalog():
    return open_catalog("2026-11-20")


def verdict(catalog, sentence):
    checks = audit_text(sentence, catalog)["checks"]
    judged = [row for row in checks if row["verdict"] != "unknown"]
    return audit_text(sentence, catalog)["verdict"] if judged else "unread"


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim["number"])
def test_a_claim_is_judged_as_a_person_judged_it_or_not_at_all(catalog, claim):
    found = verdict(catalog, claim["sentence"])
    assert found in (ALLOWED[claim["verdict"]] if claim["read"] == "yes" else ("unread",))


def test_most_claims_with_a_figure_are_read():
    assert len(CLAIMS) == 122
    assert sum(claim["read"] == "yes" for claim in CLAIMS) >= 75


def test_a_sparse_peak_is_named_as_one(catalog):
    row = audit_text("A DGX H100 does 32 PFLOPS in FP8 as a node.", catalog)["checks"][0]
    assert "2:4 sparsity" in row["explanation"]
    assert row["typical"] == pytest.approx(8 * 1978.9)


def test_a_weight_in_another_precision_is_named(catalog):
    row = audit_text("The weights of Llama 3 70B take 282 GB in FP8.", catalog)["checks"][0]
    assert (row["verdict"], "fp32" in row["explanation"]) == ("impossible", True)


def test_a_price_that_was_true_says_until_when(catalog):
    row = audit_text("AWS asks 98.32 USD per hour for p5.48xlarge on demand.", catalog)["checks"][0]
    assert row["verdict"] == "implausible"
    assert "until 2025-" in row["explanation"]
    as_then = open_catalog("2025-03-01")
    assert audit_text("AWS asks 98.32 USD per hour for p5.48xlarge on demand.", as_then)["verdict"] == "possible"


def test_a_ring_moves_each_byte_almost_twice(catalog):
    """2 × 7/8 × 28 GB ÷ 31.5 GB/s = 1.56 s over PCIe 4; one copy is 0.89 s."""
    row = audit_text("An all-reduce of 28 GB over 8 A100 takes 889 ms over PCIe.", catalog)["checks"][-1]
    assert row["verdict"] == "impossible"
    assert row["low"] == pytest.approx(2 * 7 / 8 * 28 / 31.5, rel=1e-6)
    assert "one copy" in row["explanation"]


@pytest.mark.parametrize(
    ("sentence", "asked"),
    [
        ("It does 989 TFLOPS in FP16.", "of which accelerator?"),
        ("The H100 does 989 TFLOPS.", "at which precision?"),
        ("The weights of Llama 3 70B take 140 GB.", "in which precision?"),
        ("The H100 SXM is 3x the A100.", "of what?"),
        ("It decodes 100 tokens/s on an H100.", "of which model?"),
        ("A run on H100 emits 40 tonnes CO2e.", "from how many kWh?"),
    ],
)
def test_a_missing_fact_is_asked_back_not_guessed(catalog, sentence, asked):
    rows = audit_text(sentence, catalog)["checks"]
    assert rows[-1]["name"] == NOT_READ
    assert asked in rows[-1]["explanation"]


def test_a_sentence_speaks_of_what_the_one_before_named_and_says_so(catalog):
    found = audit_text("The L40S is cheap. It holds 24 GB of memory.", catalog)
    assert found["checks"][0]["verdict"] == "impossible"
    assert "taken from before" in found["notes"][0]


def test_a_sentence_about_a_processor_is_not_judged_by_the_accelerator_before_it(catalog):
    row = audit_text("An H100 SXM draws 700 W. The CPU beside it draws 300 W.", catalog)["checks"][-1]
    assert (row["name"], row["verdict"]) == (NOT_READ, "unknown")


def test_figures_are_marked_in_their_sentence():
    found = list(figures_of("8 H100 at US$2.50 per GPU hour for 1.5-2 days, about 3.35 TB/s"))
    told = [(one.text, one.quantity, one.low, one.high) for one in found if one.quantity]
    assert told == [
        ("US$2.50 per GPU hour", "usd", 2.5, 2.5),
        ("1.5-2 days", "hours", 36.0, 48.0),
        ("about 3.35 TB/s", "gb_per_s", 3350.0, 3350.0),
    ]
    assert sentences_of("- One: 3.5 GB.\n- Two!") == ["One: 3.5 GB.", "Two!"]


def test_the_command_reads_a_file_and_exits_5_where_a_figure_cannot_be(tmp_path):
    file = tmp_path / "article.txt"
    file.write_text("The H100 SXM holds 80 GB of memory. The A100 has 13,824 CUDA cores. It is a good card.", "utf-8")
    ran = in_process("audit", "--text", str(file), "--as-of", "2026-11-20")
    assert ran.returncode == 5
    assert "6,912 cores" in ran.stdout
    assert "2 figures: 1 impossible, 1 possible." in " ".join(ran.stdout.split())


ODD = """The H100 has 0 GB and 0 TB/s and costs $0 per hour. An A100 does 0 TFLOPS in FP16.
99999999999999999999999999999999999999999999 TB/s H100. A100 1,2,3 GB. 8 8 8 x H100 x 3 GB/s.
Training Llama 3 8B on 0 tokens with 0 H100 takes 0 days and costs $0.
Training Llama 3 8B on 100B tokens with 8 H100 takes 0 days.
All-reduce of 0 GB over 8 A100 takes 0 s. All-reduce of 5 GB over 1 H100 takes 3 ms over NVLink.
The weights of a 0B model take 3 GB in FP8. Weights of 70B take 0 GB in FP8.
A 7B model trains at 0 tokens/s on 0 H100. 3x H100 is 0x A100 in FP8. The CPU draws 300 W.
10-7 days. \u20ac5. \u00bd GB. 5\u20133 GB H100. NaN GB/s H100. 99999999999999999999 H100 draw 5 W.
"""


def test_odd_sentences_are_judged_or_left_and_nothing_breaks(catalog):
    rows = audit_text(ODD, catalog)["checks"]
    assert len(rows) > 10
    assert {row["verdict"] for row in rows} <= {"possible", "implausible", "impossible", "unknown"}


# One by one: --tflops and the like.


@pytest.mark.parametrize(
    ("stated", "found"),
    [
        ({"tflops": 1979, "precision": "fp8"}, "possible"),
        ({"tflops": 1979, "precision": "bf16"}, "impossible"),  # the fp8 peak, and the sparse one of bf16
        ({"tflops": 1979, "precision": "bf16", "sparse": True}, "possible"),
        ({"bandwidth": "3.35TB/s"}, "possible"),
        ({"bandwidth": 900}, "impossible"),
        ({"link": 900}, "possible"),
        ({"link": 900, "one_way": True}, "implausible"),
        ({"memory": 141}, "impossible"),
        ({"power": 700}, "possible"),
        ({"gpus": 8, "power": 10200}, "possible"),  # DGX H100's data sheet
        ({"gpus": 8, "power": 5600}, "implausible"),  # its eight boards alone
        ({"purchase": 30000}, "possible"),
        ({"rent": 0.02}, "impossible"),
        ({"all_reduce": 0.01, "payload": 28, "gpus": 8}, "impossible"),  # 2·7/8·28 ÷ 450 = 0.109 s
        ({"model": "8b", "gpus": 8, "train_tokens_per_s": 1e6}, "impossible"),
        ({"model": "8b", "gpus": 8, "train_tokens_per_s": 65000}, "possible"),
        ({"energy": 10000, "gpu_hours": 10000}, "possible"),  # 0.7 kW a board, about 1 with its server
        ({"energy": 100, "gpu_hours": 10000}, "impossible"),
    ],
)
def test_a_figure_stated_alone(catalog, stated, found):
    assert gpucost.audit(gpu="h100-sxm", **stated, catalog=catalog).verdict == found


@pytest.mark.parametrize(
    ("stated", "asked"),
    [
        ({"tflops": 989, "gpu": "h100"}, "at which precision"),
        ({"tflops": 989, "precision": "bf16"}, "of which accelerator"),
        ({"all_reduce": 1, "gpu": "h100"}, "how much over how many"),
        ({"energy": 1, "gpu": "h100"}, "over how long"),
        ({"carbon": 1}, "how many kWh"),
        ({"sparse": True, "gpu": "h100", "memory": 80}, "--sparse"),
    ],
)
def test_what_a_figure_needs_is_asked_back(catalog, stated, asked):
    with pytest.raises(UsageError, match=asked):
        gpucost.audit(**stated, catalog=catalog)


# Payback, servers, tokens and shares ----------------------------------------------------------------------------------


def one(catalog, sentence):
    from gpucost.ask.audit import _token_price

    rows = [row for row in audit_text(sentence, catalog, _token_price)["checks"] if row["name"] != NOT_READ]
    assert len(rows) == 1, rows
    return rows[0]


@pytest.mark.parametrize(
    ("sentence", "verdict", "months"),
    [  # 300,000 ÷ 25,000; 300,000 ÷ (8 × 2.50 × 730 = 14,600); 8 × 25,000 ÷ (20,000 − 5,000)
        ("A server of 8 H100 for 300,000 USD pays for itself in 12 months against 25,000 USD per month of rent.",
         "possible", 12.0),
        ("A server of 8 H100 for 300,000 USD pays back in 4 months against 2.50 USD per hour for each GPU.",
         "impossible", 20.55),
        ("8 H100 at 25,000 USD each break even after 13 months: rent is 20,000 USD per month, owning 5,000 USD per"
         " month.", "possible", 13.33),
    ],
)  # fmt: skip
def test_a_payback_is_its_division(catalog, sentence, verdict, months):
    row = one(catalog, sentence)
    assert (row["name"], row["verdict"]) == ("payback", verdict)
    assert row["typical"] == pytest.approx(months, abs=0.01)


@pytest.mark.parametrize(("usd", "verdict"), [(320_000, "possible"), (90_000, "implausible"), (40_000, "impossible")])
def test_a_server_costs_what_such_servers_have_cost(catalog, usd, verdict):
    row = one(catalog, f"A DGX H100 costs {usd} USD.")
    assert (row["name"], row["verdict"]) == ("server price", verdict)
    assert "dgx-h100 230,000 to 375,000" in row["explanation"]


def test_a_price_of_tokens_is_held_against_what_inference_finds(catalog):
    best = gpucost.inference("llama-3.1-8b", gpu="h100", catalog=catalog).best["usd_per_mtok"]
    row = one(catalog, f"Llama 3.1 8B costs {best:.3f} USD per million tokens on an H100.")
    assert (row["verdict"], row["typical"]) == ("possible", pytest.approx(best))
    cheap = one(catalog, f"Llama 3.1 8B costs {best / 1000:.6f} USD per million tokens on an H100.")
    assert cheap["verdict"] == "impossible"
    hosted = one(catalog, "The API of Llama 3.1 8B costs 0.05 USD per million tokens.")
    assert "prompt and output mixed" in hosted["explanation"]
    asked = audit_text("Llama 3.1 8B costs 0.05 USD per million tokens.", catalog)["checks"][0]
    assert asked["verdict"] == "unknown"


def test_a_share_of_the_peak_is_a_speed(catalog):
    usual = one(catalog, "Training Llama 3 70B on 512 H100 reaches 43% MFU.")
    beyond = one(catalog, "Training Llama 3 70B on 512 H100 reaches 93% MFU.")
    assert (usual["verdict"], beyond["verdict"]) == ("possible", "implausible")
    assert "43% of the dense bf16 peak" in usual["explanation"]


def test_a_saving_is_held_against_sellers_that_have_both(catalog):
    row = one(catalog, "Spot is 50% cheaper than on-demand for the H100.")
    assert row["verdict"] == "possible"
    gcp = [min(offer.usd_per_gpu_hour for offer in catalog.offers("h100", "gcp", option=option))
           for option in ("spot", "on_demand")]  # fmt: skip
    assert f"{1 - gcp[0] / gcp[1]:.0%} (gcp)" in row["explanation"]
    assert one(catalog, "Spot is 95% cheaper than on-demand for the H100.")["verdict"] == "implausible"


@pytest.mark.parametrize("sentence", ["Cooling adds 10-30%.", "Spot saves 60-90%.", "An H100 is used 70% of the time."])
def test_a_share_of_what_nobody_says_is_not_understood(catalog, sentence):
    rows = audit_text(sentence, catalog)["checks"]
    assert [row["name"] for row in rows if "%" in row["figure"]] == [NOT_READ]
