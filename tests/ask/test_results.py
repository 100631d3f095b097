"""What every answer has, whatever was asked: a headline, options side by side, and the one that it advises."""

import pytest

import gpucost

ONE_H100 = {"model": "8b", "gpu": "h100-sxm", "gpus": 8}
USAGE = [8.0, 16.0, 12.0, 9.0] * 90
SCENARIO = {"name": "Plan", "training": [{"name": "Run", "tokens": "1b", "top": 2, **ONE_H100}]}


def reconciled(tmp_path):
    saved = gpucost.estimate(**ONE_H100, tokens="1b", top=1).to_dict()
    gpucost.export(saved, str(tmp_path / "plan.csv"))
    return gpucost.reconcile(str(tmp_path / "plan.csv"), saved)


# how an answer is asked for, and what its best option is known by; None: it advises none
ANSWERS = {
    "estimate": (lambda _: gpucost.estimate(**ONE_H100, tokens="1b", top=3), {"rank": 1}),
    "inference": (lambda _: gpucost.inference("8b", gpu=["h100-sxm", "l40s"], top=3), {"rank": 1}),
    "owning": (lambda _: gpucost.tco("h100-sxm", 8, rent=20, draws=0), {"name": "own"}),
    "renting": (lambda _: gpucost.tco("h100-sxm", 8, rent=0.5, draws=0), {"name": "rent"}),
    "mix": (lambda _: gpucost.mix(constant=8, months=6, gpu="h100-sxm"), {"option": "mix"}),
    "fit": (lambda _: gpucost.fit("8b", "h100-sxm", 8), {"gpu": "h100-sxm5-80gb", "gpus": 8, "fits": True}),
    "serving fit": (lambda _: gpucost.fit("8b", "h100-sxm", serving=True), {"gpu": "h100-sxm5-80gb"}),
    "layout": (lambda _: gpucost.throughput("8b", "h100-sxm", 8, tensor=2), {"tensor": 2, "data": 4}),
    "layouts": (lambda _: gpucost.throughput("8b", "h100-sxm", 8), {"gpus": 8}),
    "roofline": (lambda _: gpucost.roofline("h100-sxm"), None),
    "choice": (lambda _: gpucost.choose("8b", gpu="h100-sxm"), {"gpu": "h100-sxm5-80gb"}),
    "audit": (lambda _: gpucost.audit(**ONE_H100, fits="training"), {"verdict": "possible"}),
    "commitment": (lambda _: gpucost.commit(USAGE, on_demand=4, committed=2), {"gpus": 9.0}),
    "side by side": (lambda _: gpucost.compare(model="8b", gpu="h100-sxm"), {"model": "8b"}),
    "two speeds": (lambda _: gpucost.compare(model="8b", gpu="h100-sxm,h200", speed=True), None),
    "reconciliation": (reconciled, None),
    "sweep": (
        lambda _: gpucost.sweep(model="8b", tokens="1b", gpu="h100-sxm", gpus=[8, 16]),
        {"gpu": "h100-sxm5-80gb"},
    ),
    "report": (lambda _: gpucost.report(SCENARIO), None),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_every_answer_has_a_headline_options_and_a_best_one(name, tmp_path):
    ask, known_by = ANSWERS[name]
    answer = ask(tmp_path)
    assert isinstance(answer.headline, str)
    assert answer.headline
    assert answer.options
    assert all(isinstance(option, dict) for option in answer.options)
    answer.options[0].clear()
    assert answer.options[0], "a copy"
    if known_by is None:
        assert answer.best is None
        return
    assert known_by.items() <= answer.best.items()
    if name not in ("sweep",):  # whose rows hold what was asked, too
        assert answer.best in answer.options


def test_the_best_way_to_have_a_cluster_costs_least_in_present_value():
    answer = gpucost.tco("h100-sxm", 8, rent=2.35, draws=0)
    assert answer.best["npv_usd"] == min(way["npv_usd"] for way in answer.options)


def test_the_best_layout_of_a_search_is_its_fastest():
    answer = gpucost.throughput("8b", "h100-sxm", 8)
    speeds = [layout["tokens_per_s_per_gpu"] for layout in answer.options]
    assert answer.best["tokens_per_s_per_gpu"] == max(speeds) == answer.tokens_per_s_per_gpu
    assert len(speeds) > 1
