"""Every pattern of the package reads any text in steps that grow with its length alone.

Steps are counted, not timed: a small backtracking matcher walks the parsed pattern as Python's own engine does and
counts each comparison, so that a busy machine changes nothing.
"""

import ast
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from itertools import product
from math import inf
from pathlib import Path
from re import _compiler as compiler  # type: ignore[attr-defined]
from re import _constants as ops  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

import gpucost
from tests.rules import for_each

SHORT, LONG = 40, 160  # signs of a text; what reads it once per sign grows sixteenfold between them
MOST_GROWTH = 6.0
MOST_STEPS = 100_000  # nobody waits for an exponential pattern to end
PUMPS = [*'x0 _-.,("é/[\t', "a1", "a ", "0 ", "a-", "1.", "1-", "A_", ": "]
FLAGS = ("IGNORECASE", "DOTALL", "MULTILINE", "ASCII", "VERBOSE")
READS = {"search", "match", "fullmatch", "sub", "findall", "finditer", "split"}
SINGLE = (ops.LITERAL, ops.NOT_LITERAL, ops.ANY, ops.IN)


@cache
def patterns() -> dict[str, tuple[re.Pattern[str], set[str]]]:
    """Return every pattern that is written out in the sources, and the methods that it is asked by."""
    package, found = Path(gpucost.__file__).parent, {}
    for file in sorted(package.rglob("*.py")):
        source = file.read_text("utf-8")
        if not re.search(r"\bre\.[a-z]+\(", source):
            continue  # to parse every module takes longer than to collect all tests
        nodes = list(ast.walk(ast.parse(source)))
        used = {
            (node.value.id, node.attr)
            for node in nodes
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name)
        }
        named = {
            node.value: node.targets[0].id
            for node in nodes
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        }
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


class TooManyStepsError(Exception):
    """A pattern that compares more often than any that reads its text once."""


class Matcher:
    """Matches a parsed pattern by backtracking and counts the comparisons."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self.flags = pattern.flags
        self.tree = list(parser.parse(pattern.pattern, pattern.flags))
        self.singles: dict[int, re.Pattern[str]] = {}
        self.signs: dict[tuple[int, str], bool] = {}
        self.text, self.steps = "", 0

    def steps_of(self, text: str, method: str) -> int:
        """Return the comparisons that a method takes over a text; a search begins again at every sign."""
        self.text, self.steps, at = text, 0, 0
        ends = (lambda end: end == len(text)) if method == "fullmatch" else (lambda end: True)
        try:
            while at <= len(text):
                stop = self.match_at(at, ends)
                if method in ("match", "fullmatch") or (stop is not None and method == "search"):
                    break
                at = at + 1 if stop is None else max(stop, at + 1)
        except TooManyStepsError:
            pass
        return self.steps

    def match_at(self, at: int, ends: Callable[[int], bool]) -> int | None:
        """Return where a match from a place ends, None where there is none."""
        stop: list[int] = []
        return stop[0] if self.sequence(self.tree, 0, at, lambda end: ends(end) and not stop.append(end)) else None

    def count(self) -> None:
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise TooManyStepsError

    def sequence(self, nodes: list[Any], index: int, at: int, then: Callable[[int], bool]) -> bool:
        """Match the nodes from an index on, then what follows."""
        while index < len(nodes) and nodes[index][0] in SINGLE:
            self.count()
            if not self.is_sign(nodes[index], at):
                return False
            index, at = index + 1, at + 1
        if index == len(nodes):
            return then(at)
        return self.node(nodes[index], at, lambda end: self.sequence(nodes, index + 1, end, then))

    def is_sign(self, node: Any, at: int) -> bool:
        """Tell whether one sign matches a node of one sign."""
        if at >= len(self.text):
            return False
        sign = self.text[at]
        if (id(node), sign) not in self.signs:
            if id(node) not in self.singles:
                tree = parser.SubPattern(parser.State(), [node])
                tree.state.flags = self.flags
                self.singles[id(node)] = compiler.compile(tree, self.flags)
            self.signs[id(node), sign] = self.singles[id(node)].match(sign) is not None
        return self.signs[id(node), sign]

    def node(self, node: Any, at: int, then: Callable[[int], bool]) -> bool:
        """Match one node that is more than a sign."""
        self.count()
        op, value = node
        if op is ops.BRANCH:
            return any(self.sequence(list(branch), 0, at, then) for branch in value[1])
        if op is ops.SUBPATTERN:
            return self.sequence(list(value[3]), 0, at, then)
        if op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
            return self.repeat(op, value, at, then)
        if op is ops.ATOMIC_GROUP:
            ends: list[int] = []
            return self.sequence(list(value), 0, at, lambda end: not ends.append(end)) and then(ends[0])
        if op in (ops.ASSERT, ops.ASSERT_NOT):
            return self.looks_around(op, value, at) and then(at)
        if op is ops.AT:
            return self.is_place(value, at) and then(at)
        raise AssertionError(f"the matcher does not know {op}")

    def looks_around(self, op: Any, value: Any, at: int) -> bool:
        """Match what is looked for ahead of or behind a place; behind it, each start is tried."""
        direction, tree = value
        starts = [at] if direction > 0 else range(at, -1, -1)
        hit = any(
            self.sequence(list(tree), 0, start, lambda end: direction > 0 or end == at)
            for start in (starts if direction > 0 else list(starts)[: tree.getwidth()[1] + 1])
        )
        return hit == (op is ops.ASSERT)

    def is_place(self, place: Any, at: int) -> bool:
        """Tell whether a place is the begin, the end or the edge of a word."""
        text, lines = self.text, bool(self.flags & re.MULTILINE)
        if place in (ops.AT_BEGINNING, ops.AT_BEGINNING_STRING):
            return at == 0 or (lines and place is ops.AT_BEGINNING and text[at - 1] == "\n")
        if place in (ops.AT_END, ops.AT_END_STRING):
            last = at == len(text) or (place is ops.AT_END and text[at:] == "\n")
            return last or (lines and place is ops.AT_END and text[at : at + 1] == "\n")
        before, after = (bool(re.match(r"\w", sign)) for sign in (text[at - 1 : at] if at else "", text[at : at + 1]))
        return (before != after) == (place is ops.AT_BOUNDARY)

    def repeat(self, op: Any, value: Any, at: int, then: Callable[[int], bool]) -> bool:
        """Match a repetition: greedy, lazy or possessive."""
        least, most, tree = value
        nodes = list(tree)
        if op is ops.POSSESSIVE_REPEAT:
            done, ends = 0, [at]
            while done < most and self.sequence(
                nodes, 0, ends[-1], lambda end: end > ends[-1] and not ends.append(end)
            ):
                done += 1
            return done >= least and then(ends[-1])
        if len(nodes) == 1 and nodes[0][0] in SINGLE:
            return self.repeat_sign(op, nodes[0], least, most, at, then)

        def again(done: int, here: int) -> bool:
            def more() -> bool:
                return done < most and self.sequence(
                    nodes, 0, here, lambda end: (end > here or done < least) and again(done + 1, end)
                )

            if done < least:
                return more()
            return (then(here) or more()) if op is ops.MIN_REPEAT else (more() or then(here))

        return again(0, at)

    def repeat_sign(self, op: Any, node: Any, least: int, most: Any, at: int, then: Callable[[int], bool]) -> bool:
        """Match a repetition of one sign, as the engine does in a loop."""
        end, limit = at, min(len(self.text), at + int(most)) if most is not ops.MAXREPEAT else len(self.text)
        if op is ops.MIN_REPEAT:
            while True:
                if end - at >= least and then(end):
                    return True
                self.count()
                if end >= limit or not self.is_sign(node, end):
                    return False
                end += 1
        while end < limit and self.is_sign(node, end):
            self.count()
            end += 1
        while end - at >= least:
            if then(end):
                return True
            end -= 1
        return False


@pytest.fixture(autouse=True)
def deep_recursion():
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    yield
    sys.setrecursionlimit(limit)


def growth(pattern: re.Pattern[str], method: str, head: str, pump: str) -> float:
    """Return how many times more steps a text takes that is four times as long."""
    matcher = Matcher(pattern)
    short, long = (matcher.steps_of(head + (pump * size)[:size] + "!", method) for size in (SHORT, LONG))
    return inf if long > MOST_STEPS else long / max(short, SHORT)


def test_the_patterns_of_the_package_are_found():
    assert len(patterns()) > 80
    assert {"search", "sub", "fullmatch"} <= set().union(*(methods for _, methods in patterns().values()))


@pytest.mark.parametrize(
    ("text", "method", "grows"),
    [(r"(a+)+b", "search", True), (r"\s+$", "search", True), (r"a*a*b", "match", True), (r"[a ]+b", "match", False)],
)
def test_the_matcher_tells_a_pattern_that_reads_a_text_again_from_one_that_does_not(text, method, grows):
    pattern, matcher = re.compile(text), Matcher(re.compile(text))
    pumps = [pump for pump in PUMPS if feeds(matcher, list(repeated_signs(matcher.tree)), pump)] + ["a"]
    assert (max(growth(pattern, method, "", pump) for pump in pumps) > MOST_GROWTH) == grows


@pytest.mark.parametrize("text", [r"\d+(?:\.\d*)?%?", r"(?<!\w)x|y{2,3}?", r"\b(\w+)-(?=\d)", r"^[^,]*,(?!\s)"])
def test_the_matcher_finds_what_the_engine_finds(text):
    pattern = re.compile(text)
    for sample in ("12.5% of", "x yy", "a-1 b-c", "one,two", "one, two", "", "3"):
        matcher = Matcher(pattern)
        matcher.text = sample
        real = pattern.match(sample)
        assert matcher.match_at(0, lambda _: True) == (real.end() if real else None)


def repeated_signs(nodes: list[Any], repeated: bool = False) -> Iterator[Any]:
    """Yield the nodes of one sign that stand in a repetition."""
    for node in nodes:
        op, value = node
        if op in SINGLE and repeated:
            yield node
        elif op is ops.BRANCH:
            for branch in value[1]:
                yield from repeated_signs(list(branch), repeated)
        elif op is ops.SUBPATTERN:
            yield from repeated_signs(list(value[3]), repeated)
        elif op is ops.ATOMIC_GROUP:
            yield from repeated_signs(list(value), repeated)
        elif op in (ops.ASSERT, ops.ASSERT_NOT):
            yield from repeated_signs(list(value[1]), repeated)
        elif op in (ops.MAX_REPEAT, ops.MIN_REPEAT, ops.POSSESSIVE_REPEAT):
            yield from repeated_signs(list(value[2]), repeated or value[1] > 1)


def feeds(matcher: Matcher, signs: list[Any], pump: str) -> bool:
    """Tell whether repetitions take every sign of a pump: no other text makes a pattern read more than once."""
    matcher.text = pump
    return all(any(matcher.is_sign(node, at) for node in signs) for at in range(len(pump)))


@for_each("where", patterns)
def test_a_pattern_reads_a_long_text_once(where):
    pattern, methods = patterns()[where]
    matcher = Matcher(pattern)
    signs = list(repeated_signs(matcher.tree))
    words = set(re.findall(r"[A-Za-z]{3,}", re.sub(r"\\.", " ", pattern.pattern)))
    pumps = [pump for pump in (*PUMPS, *words, *(f"{word}:" for word in words)) if feeds(matcher, signs, pump)]
    for head, pump, method in product(["", *words], pumps, methods):
        assert growth(pattern, method, head, pump) <= MOST_GROWTH, (pattern.pattern, method, head, pump)
