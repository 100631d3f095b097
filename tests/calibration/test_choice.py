"""Choosing terms without looking: what does not help sources outside its proposal goes."""

import numpy as np
import pytest

from gpucost.physics.calibration import FitProblem, Parameter, ResidualPart, fit
from tools import choice

PARAMETERS = (
    Parameter("level", 1.0, 0.5, "ratio", "of all rows"),
    Parameter("kind.a", 1.0, 0.5, "ratio", "of rows of a kind"),
    Parameter("kind.b", 1.0, 0.5, "ratio", "of rows of another"),
    Parameter("noise.a", 1.0, 0.5, "ratio", "of rows drawn by lot"),
    Parameter("noise.b", 1.0, 0.5, "ratio", "of the others"),
)


def made(seed=3, sources=24, rows=12):
    """Rows of many sources: level and kind are real, the lot is not."""
    dice = np.random.default_rng(seed)
    source = np.repeat([f"source {number:02d}" for number in range(sources)], rows)
    kind = dice.integers(0, 2, len(source))
    lot = np.repeat(dice.integers(0, 2, sources), rows)  # all rows of a source have one lot
    truth = np.log(1.5) + np.where(kind == 0, 0.3, -0.3)
    seen = truth + np.repeat(dice.normal(0, 0.12, sources), rows) + dice.normal(0, 0.05, len(source))

    def predicted(values, at):
        by_kind = np.where(kind[at] == 0, np.log(values["kind.a"]), np.log(values["kind.b"]))
        by_lot = np.where(lot[at] == 0, np.log(values["noise.a"]), np.log(values["noise.b"]))
        return np.log(values["level"]) + by_kind + by_lot

    def problem(at, parameters):
        def part_of(some):
            return ResidualPart(some, lambda values: (predicted(values, at[some]) - seen[at[some]]) / 0.1)

        touched = [np.ones(len(at), dtype=bool)] * len(parameters)
        return FitProblem(parameters, touched, part_of, {one.name: one.prior for one in parameters}, 1.0)

    every = np.ones(len(source), dtype=bool)
    return choice.Sources(
        PARAMETERS,
        source,
        every,
        every,
        problem,
        fit,
        lambda at, values: predicted(values, at) - seen[at],
        np.full(len(source), "one use"),
    )


def test_a_term_that_is_real_stays_and_one_drawn_by_lot_goes():
    terms = {term.name: term for term in choice.choose(made(), splits=4)}
    assert terms["kind"].kept
    assert not terms["level"].kept  # the kinds say what it says: of terms that share their work one stays
    assert terms["kind"].gain > 0.1
    assert not terms["noise"].kept
    assert terms["noise"].parameters == 2


def test_the_same_seed_chooses_the_same_and_the_halves_are_of_whole_sources():
    of = made()
    assert choice.choose(of, splits=2) == choice.choose(of, splits=2)
    for proposing, judging in choice.halves(of.source.tolist(), seed=1):
        assert not proposing & judging
        assert proposing | judging == set(of.source.tolist())


def test_a_penalty_no_term_can_pay_leaves_none():
    assert not any(term.kept for term in choice.choose(made(), splits=2, penalty=10.0))


def test_what_a_choice_says_of_sources_it_never_saw_is_what_they_show():
    """A third of the sources takes no part in choosing or fitting: their error is that of sources not seen."""
    of = made()
    apart = choice.folds(of.source.tolist(), 3)[0]
    rows, residual = choice.unseen(of, apart, splits=2)
    assert set(of.source[rows]) == apart
    assert choice.error(residual, of.source[rows]) == pytest.approx(0.12 * np.sqrt(2 / np.pi), abs=0.05)


def test_held_parameters_stay_at_what_is_believed():
    of = made()
    held = choice.pinned(of.parameters, ["kind.a", "kind.b", "noise.a", "noise.b"])
    values = of.solve(of.problem(np.arange(len(of.source)), held))
    assert values["kind.a"] == values["noise.b"] == pytest.approx(1.0)
    assert values["level"] != pytest.approx(1.0, rel=0.05)


def test_a_large_class_of_use_does_not_outvote_a_small_one():
    source = np.repeat([f"server {number}" for number in range(50)] + ["bare engine"], 20)
    use = np.where(source == "bare engine", "bare", "served")
    worse_for_bare = np.where(use == "bare", 0.4, 0.10)
    better_for_bare = np.where(use == "bare", 0.1, 0.11)
    assert choice.error(worse_for_bare, source) < choice.error(better_for_bare, source)
    assert choice.error_by_use(worse_for_bare, source, use) > choice.error_by_use(better_for_bare, source, use)
