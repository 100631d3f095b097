"""Sweeps that leave the size of the cluster open."""

import numpy as np
import pytest

import gpucost
from gpucost.ask.estimate import request_of
from gpucost.catalog.calibrations import training_calibration
from gpucost.market.supply import Key
from gpucost.sweeping.work import asker_of
from gpucost.training import run, search
from gpucost.training.run import workload_of
from gpucost.workloads.speeds import speeds_of
from tests.sweeping.open_questions import AXES, differences, questions, single


def test_what_is_searched_at_once_stays_small(monkeypatch):
    """Each offer is tried in some ten sizes, at a kilobyte each: hundreds of requests at once would fill the memory."""
    tried = []

    def counted(problem, **how):
        found = search.search(problem, **how)
        tried.append(len(found[0]))
        return found

    monkeypatch.setattr(run, "search", counted)
    tokens = [1e10 * count for count in range(1, 31)]
    table = gpucost.sweep(model="8b", gpu="h100-sxm", tokens=tokens).to_frame()
    assert len(table) == len(tokens)
    assert len(tried) > 1
    assert max(tried) < 20_000
    alone = gpucost.estimate("8b", tokens[20], gpu="h100-sxm").best
    assert table["cost_usd"].iloc[20] == alone["cost_usd"]


@pytest.mark.slow
def test_a_row_of_an_open_size_is_the_single_answer():
    """Whatever the arguments: offers that a bound leaves out never win."""
    catalog = gpucost.open_catalog()
    cases = questions(60, seed=11)
    codes = {name: np.array([values.index(case[name]) for case in cases]) for name, values in AXES.items()}
    columns = asker_of("estimate", catalog).rows(AXES, codes)
    alone = [single(case, catalog) for case in cases]
    different = [(case, differences(columns, row, alone[row])) for row, case in enumerate(cases)]
    assert [pair for pair in different if pair[1]] == []
    assert sum(not isinstance(answer, Exception) for answer in alone) > 20


@pytest.mark.slow
def test_a_row_beside_its_budget_is_the_single_answer():
    """Budgets around what a run costs and deadlines around what it takes: the row, or what is nearest to it."""
    catalog = gpucost.open_catalog()
    wrong, refused = [], 0
    for case in questions(14, seed=23):
        case |= {"budget": None, "gpu": case["gpu"] or "h100,l40s,mi300x"}
        free = single(case, catalog)
        if isinstance(free, Exception):
            continue
        budgets = [round(free["cost_usd"] * ratio, 2) for ratio in (0.3, 0.8, 0.97, 0.9999, 1.0001)]
        cases = [case | {"budget": budget} for budget in budgets]
        cases += [case | {"deadline": f"{free['days'] * ratio:.3f}d"} for ratio in (0.02, 0.5)]
        values = {name: list(dict.fromkeys(row[name] for row in cases)) for name in AXES}
        codes = {name: np.array([listed.index(row[name]) for row in cases]) for name, listed in values.items()}
        columns = asker_of("estimate", catalog).rows(values, codes)
        alone = [single(row, catalog) for row in cases]
        wrong += [(cases[row], short) for row in range(len(cases)) if (short := differences(columns, row, alone[row]))]
        refused += sum(isinstance(answer, Exception) for answer in alone)
    assert wrong == []
    assert refused > 8


def test_offers_that_cannot_lead_are_left_out():
    """Of a run on every offer few are tried in every size, and the first option is the same."""
    catalog = gpucost.open_catalog()
    request = request_of({"model": "8b", "tokens": "2t", "deadline": "20d"}, catalog.as_of)
    market, mask = run.select(request, catalog)
    architecture = catalog.architecture("8b")
    problem = run.make_problem((request,), (architecture,), market, (mask,), training_calibration(catalog))
    (every, judged), (few, judged_few) = search.search(problem), search.search(problem, leading_only=True)
    assert len(few) < 0.3 * len(every)
    first, first_few = run.rank(problem, every, 0, judged)[0], run.rank(problem, few, 0, judged_few)[0]
    assert every.factors.row(first) == few.factors.row(first_few)
    assert every.costs.cost_usd[first] == few.costs.cost_usd[first_few]


def test_no_size_between_two_doublings_is_faster_than_the_bound_takes_it_to_be():
    """Speeds at every number of nodes, against those of the doublings around it."""
    catalog = gpucost.open_catalog()
    calibration = training_calibration(catalog)
    beyond, met = [], 0
    for model, batch in (("8b", None), ("70b", None), ("mixtral-8x7b", None), ("8b", 96), ("8b", 100), ("1b", 1000)):
        request = request_of({"model": model, "tokens": "100t", "global_batch": batch}, catalog.as_of)
        work = workload_of(request, catalog.architecture(model), catalog.as_of)
        for gpu in ("h100-sxm", "a100-80gb-sxm", "mi300x", "l40s"):
            key = Key(catalog.accelerator(gpu), catalog.default_system(catalog.accelerator(gpu).id))
            gpus = np.arange(8, 1025, 8)
            speed = speeds_of((work,), (key,), calibration, np.zeros(128, int), np.zeros(128, int), gpus)
            fast = dict(zip(gpus.tolist(), np.where(speed.fits, speed.tokens_per_s_per_gpu, 0.0), strict=True))
            for count in gpus.tolist():
                above = 8 << ((count + 7) // 8 - 1).bit_length()
                nearest = max(fast.get(above, 0.0), fast.get(above // 2, 0.0))
                met += bool(fast[count] and nearest)
                if fast[count] > nearest * search.most_faster(work) > 0:
                    beyond.append((model, gpu, count, fast[count] / nearest))
    assert met > 2000
    assert beyond == []
