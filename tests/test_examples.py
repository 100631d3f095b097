"""Every example in a docstring of the rooms at the bottom of the house gives what stands below it."""

import doctest
import importlib
import pkgutil

import gpucost
from tests.rules import for_each

ROOMS = ("architectures", "formula", "physics", "workloads")
SINGLE = ("clock", "errors", "gate", "heap", "limits", "options", "units")


def modules():
    packages = [importlib.import_module(f"gpucost.{name}") for name in ROOMS]
    inside = [info.name for room in packages for info in pkgutil.walk_packages(room.__path__, f"{room.__name__}.")]
    return sorted([*inside, *(f"{gpucost.__name__}.{name}" for name in SINGLE)])


@for_each("name", modules)
def test_examples_of_docstrings_hold(name):
    failed, _ = doctest.testmod(importlib.import_module(name))  # prints what it expected and what it got
    assert not failed
