"""Every question answers on one screen of 24 × 80; --details shows more, --quiet one line, a warning stands once."""

import shlex

import pytest
from click.testing import CliRunner

import gpucost
from gpucost.cli import cli

ASKED = (
    "inference --model 8b",
    "inference --model 70b --gpu h100 --tokens-per-month 5b --tpot 50ms",
    "tco --gpu h100-sxm --gpus 64",
    "tco --gpu h100-sxm --gpus 64 --rent 2.35 --tax 25% --financing loan --draws 0",
    "mix --constant 64 --growth 20% --months 12 --gpu h100-sxm",
    "throughput --model 70b --gpu h100-sxm --gpus 64",
    "throughput --model 70b --gpu h100-sxm --gpus 8 --tensor 2",
    "roofline --gpu h100-sxm --model 8b --gpus 8",
    "fit --model 70b --gpu 4090 --gpus 2 --method qlora",
    "estimate --model 7b --tokens 2T --gpu h100 --gpus 64",
    "fit --model 70b --gpu h100-sxm",
    "fit --model 70b --serving --tpot 50ms",
    "choose --purpose training",
    "choose --workload chat='serving 8b 5b' --workload tune='fine-tuning 70b' --pool h100-sxm=8",
    "audit --model 8b --tokens 100b --gpu h100-sxm --gpus 8 --days 25 --cost 6000",
    "compare --model 8b,70b --gpu h100-sxm,h200 --tokens 10b",
    "compare --speed --gpu h100-sxm --gpu h100-pcie",
    "compare --speed --model 8b --gpu h100,a100",
    "sweep --model 1b --gpu h100,b200 --gpus 8,16 --tokens 10b",
    "tco --gpu h200 --gpus 8 --utilisation 40% --currency EUR",
)
UNFIT = (0, 6)  # what does not fit is an answer too


@pytest.fixture(scope="module")
def catalog():
    return gpucost.open_catalog()


def written(words, monkeypatch, catalog):
    """Return what a terminal of 80 columns shows; all ask the one open catalog."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("gpucost.catalog.open_catalog", lambda *days: catalog)
    found = CliRunner().invoke(cli, words)
    assert found.exit_code in UNFIT, found.output
    return found.stdout, found.stderr


@pytest.mark.parametrize("command", ASKED)
def test_the_answer_fits_one_screen_and_details_say_more(command, monkeypatch, catalog):
    out, err = written(shlex.split(command), monkeypatch, catalog)
    lines = out.splitlines()
    assert 4 < len(lines) < 24, out
    assert max(map(len, lines)) <= 80, out
    assert err == ""
    told = [line for line in lines if line.startswith("! ")]
    assert len(told) == len(set(told))
    details = written([*shlex.split(command), "--details"], monkeypatch, catalog)[0].splitlines()
    assert len(details) > len(lines)
    quiet = written([*shlex.split(command), "--quiet"], monkeypatch, catalog)[0]
    assert quiet.count("\n") == 1


def test_the_first_screen_names_the_widest_cause_and_the_details_all_with_what_narrows_each(monkeypatch, catalog):
    from gpucost.render.offers import OVERHEAD, training_causes

    found = gpucost.estimate("8b", "100b", catalog=catalog, top=40, with_facts=False).payload
    for option in found["options"]:
        parts = {row["share"]: row for row in training_causes(found, option)}
        assert {"speed", "interruptions", OVERHEAD} < set(parts)
        assert "spot price" in parts or "price age" in parts
        within = [row for name, row in parts.items() if name != OVERHEAD]
        cents = 0.01 * len(option["lines"])  # lines are rounded one by one
        assert min(row["low_usd"] for row in within) >= option["cost_low_usd"] - cents
        assert max(row["high_usd"] for row in within) <= option["cost_high_usd"] + cents
    found = gpucost.estimate("8b", "100b", option="spot", catalog=catalog, with_facts=False).payload
    asked = ["estimate", "--model", "8b", "--tokens", "100b", "--option", "spot"]
    widest = training_causes(found, found["options"][0])[0]
    screen = next(line for line in written(asked, monkeypatch, catalog)[0].splitlines() if line.startswith("Range "))
    assert f"{widest['share']} ({widest['flag']})" in screen
    out, _ = written([*asked, "--details"], monkeypatch, catalog)
    said = " ".join(out.split("\nRange: ")[1].split("\n\n")[0].split())
    for name, flag in (("speed", "--mfu"), ("interruptions", "--option"), ("not in the range: overhead", "--overhead")):
        assert name in said
        assert f"({flag})" in said
    for row in training_causes(found, found["options"][0]):
        assert f"{row['low_usd']:,.0f}–{row['high_usd']:,.0f}" in said


def test_the_range_of_serving_is_parted_by_cause_too(monkeypatch, catalog):
    from gpucost.render.offers import IDLE, LOST, serving_causes

    asked = {"precision": "fp8", "requests_per_s": 20, "top": 20}
    for option in gpucost.inference("70b", catalog=catalog, **asked).payload["options"]:
        parts = {row["share"]: row for row in serving_causes(option)}
        price = parts.get("spot price") or parts["price age"]
        month, idle = option["usd_per_month"], parts[IDLE]
        for end in ("low", "high"):  # speed and price multiply to the whole range
            both = parts["speed"][f"{end}_usd"] * price[f"{end}_usd"] / month
            assert both == pytest.approx(option[f"usd_per_month_{end}"], rel=1e-6)
        assert idle["low_usd"] == pytest.approx(month * option["utilisation_fraction"])
        spare = parts.get(LOST)
        if spare:
            assert spare["high_usd"] == pytest.approx(month * (1 + 1 / option["replicas"]))
    own = gpucost.inference(
        "70b", catalog=catalog, gpu="h100-sxm", own_tpot="40ms", own_concurrency=32, replica_gpus=2, **asked
    )
    told = {row["share"]: row for row in serving_causes(own.payload["options"][0])}["speed"]
    assert told["high_usd"] / told["low_usd"] < parts["speed"]["high_usd"] / parts["speed"]["low_usd"]
    out, _ = written(["inference", "--model", "70b", "--precision", "fp8"], monkeypatch, catalog)
    said = " ".join(out.split("\nRange ")[1].split("\n\n")[0].split())
    assert "speed" in said
    assert "(--own-tpot)" in said
    assert "monthly range" in own.explain()
