"""Sweeps of owning against renting: what is worked out together equals what is asked alone."""

import numpy as np
import pytest

from gpucost.catalog import open_catalog
from gpucost.sweeping.work import Owned
from tests.sweeping.owned_questions import coded, differences, questions, single


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_row_is_the_single_answer(seed):
    """Random mixes of many arguments and inputs of the plan, refusals and contradictions among them."""
    catalog, cases = open_catalog(), questions(100, seed, loads=0.1)
    columns = Owned("tco", catalog).rows(*coded(cases))
    found = [(case, differences(columns, row, single(case, catalog))) for row, case in enumerate(cases)]
    assert not [(case, unlike) for case, unlike in found if unlike]
    assert 30 < (columns["reason"][0] < 0).sum() < 80


def test_equal_questions_have_equal_answers_in_any_company():
    """A row does not hang on the rows beside it: shuffled, and in small chunks, it is the same."""
    catalog, cases = open_catalog(), questions(400, 11)
    values, codes = coded(cases)
    whole = Owned("tco", catalog).rows(values, codes)
    order, parts = np.random.default_rng(5).permutation(400), Owned("tco", catalog)
    for rows in np.split(order, 8):
        part = parts.rows(values, {name: column[rows] for name, column in codes.items()})
        for name, column in part.items():
            if isinstance(column, tuple):
                words = [column[1][code] if code >= 0 else None for code in column[0]]
                assert words == [whole[name][1][code] if code >= 0 else None for code in whole[name][0][rows]]
            else:
                np.testing.assert_allclose(column, whole[name][rows], rtol=1e-9, atol=1e-3)


def test_cases_that_differ_in_numbers_are_worked_out_together(monkeypatch):
    """No case is asked alone, and few are put together from their inputs."""
    monkeypatch.setattr(Owned, "_one", None)
    values = {"gpu": ["h100-sxm"], "gpus": [64], "utilisation": [0.1 + 0.01 * i for i in range(80)], "rent": [2.0, 3.0]}
    codes = {"gpu": np.zeros(160, int), "gpus": np.zeros(160, int), "utilisation": np.arange(160) % 80}
    columns = Owned("tco", open_catalog()).rows(values, {**codes, "rent": np.arange(160) // 80})
    dearer = columns["own_npv_usd"][:80] - columns["own_npv_usd"][80:]
    assert (columns["rent_npv_usd"][80:] > columns["rent_npv_usd"][:80]).all()
    assert np.abs(dearer).max() < 1e7
