"""Sweeps of owning against renting: what is worked out together equals what is asked alone."""

import numpy as np
import pytest

import gpucost
from gpucost.catalog import open_catalog
from gpucost.errors import GpuCostError
from gpucost.market import forward
from gpucost.ownership import figures
from gpucost.sweeping.work import Owned
from tests.sweeping.owned_questions import coded, differences, questions, single


@pytest.mark.slow
def test_a_row_is_the_single_answer():
    """Random mixes of many arguments and inputs of the plan, refusals and contradictions among them."""
    catalog, cases = open_catalog(), questions(60, 1, loads=0.1)
    columns = Owned("tco", catalog).rows(*coded(cases))
    found = [(case, differences(columns, row, single(case, catalog))) for row, case in enumerate(cases)]
    assert not [(case, unlike) for case, unlike in found if unlike]
    assert 15 < (columns["reason"][0] < 0).sum() < 50


@pytest.mark.slow
def test_equal_questions_have_equal_answers_in_any_company():
    """A row does not hang on the rows beside it: shuffled, and in small chunks, it is the same."""
    catalog, cases = open_catalog(), questions(80, 11)
    values, codes = coded(cases)
    whole = Owned("tco", catalog).rows(values, codes)
    order, parts = np.random.default_rng(5).permutation(80), Owned("tco", catalog)
    for rows in np.split(order, 4):
        part = parts.rows(values, {name: column[rows] for name, column in codes.items()})
        for name, column in part.items():
            if isinstance(column, tuple):
                words = [column[1][code] if code >= 0 else None for code in column[0]]
                assert words == [whole[name][1][code] if code >= 0 else None for code in whole[name][0][rows]]
            else:
                np.testing.assert_allclose(column, whole[name][rows], rtol=1e-9, atol=1e-3)


@pytest.mark.slow
def test_cases_that_share_their_words_are_evaluated_together(monkeypatch):
    evaluated = []
    evaluate = figures.evaluate_months
    monkeypatch.setattr(figures, "evaluate_months", lambda *of: (evaluated.append(of), evaluate(*of))[1])
    values = {"gpu": ["h100-sxm"], "gpus": [64], "utilisation": [0.1 + 0.01 * i for i in range(80)], "rent": [2.0, 3.0]}
    codes = {"gpu": np.zeros(160, int), "gpus": np.zeros(160, int), "utilisation": np.arange(160) % 80}
    columns = Owned("tco", open_catalog()).rows(values, {**codes, "rent": np.arange(160) // 80})
    assert len(evaluated) == 1
    dearer = columns["own_npv_usd"][:80] - columns["own_npv_usd"][80:]
    assert (columns["rent_npv_usd"][80:] > columns["rent_npv_usd"][:80]).all()
    assert np.abs(dearer).max() < 1e7


def test_what_hangs_on_a_chip_alone_is_looked_up_once(monkeypatch):
    looked_up = []
    monkeypatch.setattr(forward, "_known", lambda catalog: (looked_up.append(catalog), ({}, {}))[1])
    values = {"gpu": ["h100-sxm", "b200"], "gpus": [8, 16, 64], "rent": [2.0, 3.0]}
    codes = np.unravel_index(np.arange(12), (2, 3, 2))
    Owned("tco", open_catalog()).rows(values, dict(zip(values, codes, strict=True)))
    assert len(looked_up) == 2  # once for each chip


@pytest.mark.slow
def test_inputs_of_a_plan_are_axes():
    catalog = open_catalog()
    asked = {"gpu": "h100-sxm", "gpus": 64, "rent": 4.0}
    frame = gpucost.sweep(
        "tco", **asked, set={"pue_ratio": "1.1,1.3", "server_usd": [250_000, "300k"], "financing": "cash,loan"}
    ).to_frame()
    assert len(frame) == 8
    for row in frame.to_dict("records"):
        inputs = {name: row[name] for name in ("pue_ratio", "server_usd", "financing")}
        alone = gpucost.tco(**asked, set=inputs, draws=0, catalog=catalog).payload
        assert row["own_npv_usd"] == pytest.approx(alone["npv_usd"]["own"], rel=1e-9)
        assert row["breakeven_months"] == alone["breakeven"]["months"]
    assert frame.groupby("pue_ratio")["own_npv_usd"].mean().is_monotonic_increasing
    assert frame.groupby("server_usd")["own_npv_usd"].mean().is_monotonic_increasing


def test_a_table_of_cases_may_hold_inputs_of_a_plan():
    pandas = pytest.importorskip("pandas")
    cases = pandas.DataFrame(
        {"gpus": [8, 8, 64], "pue_ratio": [1.1, 1.5, None], "staff_usd_per_fte_year": [2e5, 2e5, 1e5]}
    )
    frame = gpucost.sweep("tco", cases=cases, gpu="h100-sxm", rent=2.35).to_frame()
    assert frame["own_npv_usd"].notna().all()
    assert frame["own_npv_usd"][0] < frame["own_npv_usd"][1]


@pytest.mark.parametrize(
    ("stated", "said"),
    [
        ({"set": {"pue_rtio": 1.1}}, "pue_ratio"),
        ({"set": {"pue_ratio": "0.3,1.1"}}, "pue_ratio"),
        ({"set": {"gpus": "8,16"}, "gpus": 8}, "given twice"),
        ({"plan": "plan.toml"}, "name its inputs by --set"),
    ],
)
def test_inputs_that_no_plan_has_are_refused(stated, said):
    with pytest.raises(GpuCostError, match=said):
        gpucost.sweep("tco", gpu="h100-sxm", **stated)
