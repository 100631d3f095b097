"""Every pattern of the package reads any text in time that grows with its length alone."""

import ast
import re
import time
from collections import defaultdict
from itertools import product
from pathlib import Path

import pytest

import gpucost

LONG, MOST_S = 8_000, 0.1  # one that reads a text once per sign takes 0.3 s and more
PUMPS = (
    "x",
    "0",
    " ",
    "_",
    "-",
    ".",
    ",",
    "a1",
    "a ",
    "0 ",
    "a-",
    "1.",
    "1-",
    "A_",
    "(",
    '"',
    "\t",
    "é",
    "/",
    "[",
    ": ",
)
FLAGS = ("IGNORECASE", "DOTALL", "MULTILINE", "ASCII", "VERBOSE")


def patterns() -> dict[str, tuple[re.Pattern[str], set[str]]]:
    """Return every pattern that is written out in the sources, and the methods that it is asked by."""
    found: dict[str, tuple[re.Pattern[str], set[str]]] = {}
    for file in sorted(Path(gpucost.__file__).parent.rglob("*.py")):
        tree = ast.parse(file.read_text("utf-8"))
        asked = defaultdict(set)
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                asked[node.value.id].add(node.attr)
        named = {
            node.value: target.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for node in ast.walk(tree):
            called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func
            if (
                not called
                or not isinstance(called.value, ast.Name)
                or called.value.id != "re"
                or called.attr == "escape"
            ):
                continue
            if not node.args or not isinstance(node.args[0], ast.Constant) or not isinstance(node.args[0].value, str):
                continue  # put together from parts
            words = ast.unparse(node)
            flags = sum(getattr(re, flag) for flag in FLAGS if f"re.{flag}" in words)
            methods = {called.attr} if called.attr != "compile" else asked[named.get(node, "")] or {"search"}
            where = f"{file.stem}:{node.lineno}"
            found[where] = re.compile(node.args[0].value, flags), methods & {"search", "match", "fullmatch", "sub",
                                                                            "findall", "finditer", "split"}  # fmt: skip
    return found


def asked(pattern: re.Pattern[str], method: str, text: str) -> float:
    """Return the seconds that a pattern takes to read a text."""
    start = time.perf_counter()
    if method == "sub":
        pattern.sub("", text)
    elif method == "finditer":
        list(pattern.finditer(text))
    else:
        getattr(pattern, method)(text)
    return time.perf_counter() - start


FOUND = patterns()


def test_the_patterns_of_the_package_are_found():
    assert len(FOUND) > 80
    assert {"search", "sub", "fullmatch"} <= set().union(*(methods for _, methods in FOUND.values()))


@pytest.mark.parametrize("where", FOUND)
def test_a_pattern_reads_a_long_text_once(where):
    pattern, methods = FOUND[where]
    words = set(re.findall(r"[A-Za-z]{3,}", re.sub(r"\\.", " ", pattern.pattern)))
    for head, pump, method in product(
        ["", "x", "1", "(", *words], [*PUMPS, *words, *(f"{word}:" for word in words)], methods
    ):
        text = head + (pump * LONG)[:LONG] + "!"
        if asked(pattern, method, text) > MOST_S:  # a busy machine is asked again
            assert min(asked(pattern, method, text) for _ in range(3)) < MOST_S, (pattern.pattern, head, pump)
