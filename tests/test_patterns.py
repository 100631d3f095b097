"""Every pattern of the package reads any text in time that grows with its length alone."""

import ast
import re
import time
from itertools import product
from pathlib import Path

import pytest

import gpucost

LONG, MOST_S = 8_000, 0.1  # one that reads a text once per sign takes 0.3 s and more
PUMPS = [*'x0 _-.,("é/[\t', "a1", "a ", "0 ", "a-", "1.", "1-", "A_", ": "]
FLAGS = ("IGNORECASE", "DOTALL", "MULTILINE", "ASCII", "VERBOSE")
READS = {"search", "match", "fullmatch", "sub", "findall", "finditer", "split"}


def patterns() -> dict[str, tuple[re.Pattern[str], set[str]]]:
    """Return every pattern that is written out in the sources, and the methods that it is asked by."""
    package, found = Path(gpucost.__file__).parent, {}
    for file in sorted(package.rglob("*.py")):
        nodes = list(ast.walk(ast.parse(file.read_text("utf-8"))))
        used = {(node.value.id, node.attr) for node in nodes
                if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)}  # fmt: skip
        named = {node.value: node.targets[0].id for node in nodes
                 if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)}  # fmt: skip
        for node in nodes:
            if isinstance(node, ast.Call) and (written := written_out(node)):
                pattern, method = written
                later = {attr for name, attr in used if name == named.get(node)} & READS
                methods = {method} & READS or later or {"search"}
                found[f"{file.relative_to(package)}:{node.lineno}"] = pattern, methods
    return found


def written_out(call: ast.Call) -> tuple[re.Pattern[str], str] | None:
    """Return the pattern of a call of re and the method called, unless it is put together from parts."""
    method = ast.unparse(call.func).removeprefix("re.")
    if method not in READS | {"compile"} or ast.unparse(call.func) == method or not call.args:
        return None
    text, words = call.args[0], ast.unparse(call)
    if not isinstance(text, ast.Constant) or not isinstance(text.value, str):
        return None
    return re.compile(text.value, sum(getattr(re, flag) for flag in FLAGS if f"re.{flag}" in words)), method


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
    pumps = [*PUMPS, *words, *(f"{word}:" for word in words)]
    for head, pump, method in product(["", "x", "1", "(", *words], pumps, methods):
        text = head + (pump * LONG)[:LONG] + "!"
        if asked(pattern, method, text) > MOST_S:  # a busy machine is asked again
            assert min(asked(pattern, method, text) for _ in range(3)) < MOST_S, (pattern.pattern, head, pump)
