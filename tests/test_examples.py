"""Every example in a docstring gives what stands below it."""

import doctest
import importlib
from pathlib import Path

from tests.rules import for_each

ROOT = Path(__file__).parents[1]


def modules():
    """Return the modules that hold an example, but those that run on a GPU machine alone, with PyTorch."""
    files = [file for room in ("gpucost", "tools", "benchmarks") for file in sorted((ROOT / room).rglob("*.py"))]
    names = [
        ".".join(file.relative_to(ROOT).with_suffix("").parts) for file in files if ">>> " in file.read_text("utf-8")
    ]
    return [name for name in names if not name.startswith("gpucost.bench.gpu.")]


@for_each("name", modules)
def test_examples_of_docstrings_hold(name):
    failed, _ = doctest.testmod(importlib.import_module(name))  # prints what it expected and what it got
    assert not failed
