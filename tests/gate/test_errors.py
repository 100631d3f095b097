"""Errors travel: from a worker to the process that asked, with all that they say."""

import copy
import pickle

import pytest

import gpucost
from gpucost import errors
from gpucost.answers import saved  # noqa: F401 - it has an error of its own

MADE = {
    errors.UnknownNameError: lambda kind: kind("gpu", "h10", lambda: ("h100",), "See the list."),
    errors.AmbiguousNameError: lambda kind: kind("gpu", "h100", ("h100-sxm", "h100-nvl")),
    errors.DataError: lambda kind: kind("is not a number", file="a.csv", row=2, column="b"),
}


def kinds(base):
    return [base, *(kind for below in base.__subclasses__() for kind in kinds(below))]


def test_no_error_steers_a_terminal():
    with pytest.raises(errors.PriceMissingError, match=r"no exchange rate for \\x1b\[31M\\x07: give"):
        gpucost.tco(gpu="h100-sxm", gpus=8, utilisation=0.7, currency="\x1b[31m\x07")
    assert str(errors.DataError("is\nno number", file="a\r\u202eb", row=2)) == r"a\r\u202eb:2: is" "\nno number"


@pytest.mark.parametrize("kind", kinds(errors.GpuCostError))
@pytest.mark.parametrize("moved", [lambda error: pickle.loads(pickle.dumps(error)), copy.deepcopy])
def test_every_error_is_the_same_in_another_process(kind, moved):
    error = MADE.get(kind, lambda kind: kind("what, where, why"))(kind)
    again = moved(error)
    assert (type(again), str(again), again.exit_code) == (kind, str(error), error.exit_code)
    error.args = (f"in part 'a': {error}",)
    assert str(moved(error)) == str(error)
