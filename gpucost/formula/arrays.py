"""Evaluate formulas over columns of cases: one row per case (a draw, a scenario, a grid point), one column per month.

Inputs that vary over the cases have the shape (cases, 1), the month index (1, months + 1); NumPy's broadcasting does
the rest, so that one comparison and ten thousand draws run through the same lines.
"""

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache, reduce
from types import CodeType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gpucost.formula.language import KERNELS, Line, parse

_NOISE = 1e-12  # a flow below this share of the largest is the rounding of nothing
_GUARD = 1e-9  # binary noise below this share of a hundredth must not turn half a hundredth into nothing

Array = NDArray[np.float64]
Choices = tuple[tuple[str, str], ...]  # inputs that are words, with their values
CodeLine = tuple[str, CodeType]


def round_cents(amount: Array) -> Array:
    """Round to hundredths, halves away from zero as an invoice does.

    >>> round_cents(np.array([0.125, 2.675, -0.005])).tolist()
    [0.13, 2.68, -0.01]
    """
    hundredths = np.floor(np.abs(amount) * 100.0 + (0.5 + _GUARD))
    return np.copysign(hundredths / 100.0, amount)


def _cells(table: Array, index: NDArray[np.intp]) -> Array:
    """Return cells of a table, one for all cases or with a row for each."""
    if table.ndim == 1:
        return table[index]
    index = np.broadcast_to(index, (table.shape[0], index.shape[-1]))
    return np.take_along_axis(table, index, axis=1)


def _interpolate(table: Array, position: Array) -> Array:
    # the last pair of cells serves every position beyond it: its share is held at 1
    low = np.clip(np.floor(position), 0, table.shape[-1] - 2).astype(np.intp)
    share = np.clip(position - low, 0.0, 1.0)
    return _cells(table, low) * (1 - share) + _cells(table, low + 1) * share


def payment(rate: Array, periods: Array, present: Array, future: Array) -> Array:
    """Return the level payment in arrears that turns a debt `present` into `future` after `periods` payments.

    P = (PV − FV·(1+i)^−n) · i / (1 − (1+i)^−n); (PV − FV)/n at rate zero. Spreadsheets call it PMT.

    >>> round(float(payment(np.array(0.01), np.array(12.0), np.array(1000.0), np.array(0.0))), 6)
    88.848789
    """
    rate = np.asarray(rate, dtype=np.float64)
    safe = np.where(rate == 0, 1.0, rate)  # both branches of `where` are computed: none may divide by zero
    discount = (1 + safe) ** -np.asarray(periods, dtype=np.float64)
    return np.where(rate == 0, (present - future) / periods, (present - future * discount) * safe / (1 - discount))


def _balance(rate: Array, periods: Array, present: Array, paid: Array) -> Array:
    # what `payment` leaves: PV·(1+i)^n − P·((1+i)^n − 1)/i, a spreadsheet's FV
    rate = np.asarray(rate, dtype=np.float64)
    safe = np.where(rate == 0, 1.0, rate)
    growth = (1 + safe) ** periods
    return np.where(rate == 0, present - paid * periods, present * growth - paid * (growth - 1) / safe)


def _power(base: Any, exponent: Any) -> Any:
    """Raise a column over the cases to a row over the months, once for every distinct exponent."""
    # growth by the year has as many exponents as there are years, a twelfth of the months
    if np.ndim(exponent) != 2 or np.ndim(base) != 2 or exponent.shape[0] != 1 or base.shape[1] != 1 or base.min() <= 0:
        return base**exponent
    distinct, index = np.unique(exponent[0], return_inverse=True)
    raised = np.exp(np.log(base) * distinct)
    return raised if np.array_equal(distinct, exponent[0]) else raised[:, index]


def _total(line: Array) -> Array:
    return np.asarray(np.sum(line, axis=-1, keepdims=np.ndim(line) == 2))


def _before(line: Array) -> Array:
    shifted = np.roll(line, 1, axis=-1)
    shifted[..., 0] = 0.0
    return shifted


def _of_last(line: Array, months: Array) -> Array:
    """Sum over so many months up to each, as a covenant on the last twelve looks back."""
    # the number of months is one for all cases; a running sum less the one of so many months before
    count = int(np.ravel(months)[0])
    sums = np.cumsum(line, axis=-1)
    earlier = np.zeros_like(sums)
    earlier[..., count:] = sums[..., :-count]
    return sums - earlier


def _within(line: Array, period: Array) -> Array:
    """Sum over the months of each period; periods never return."""
    periods = np.ravel(period)[-line.shape[-1] :]  # a line may begin later than they do
    starts = np.flatnonzero(np.diff(periods, prepend=periods[0] - 1))
    sums = np.add.reduceat(line, starts, axis=-1)
    return np.repeat(sums, np.diff(starts, append=periods.size), axis=-1)


_SAME_RATE = 1e-15  # a step of the logarithm of 1 + rate beyond which a float holds no nearer root
_FEW = 16  # rows of a product: of more, the library of linear algebra starts threads, which cost more than they save
_RATES = np.linspace(np.log(0.85), np.log(21), 600)  # logarithms of 1 + rate between which signs are looked at


@cache
def _worths(periods: int) -> Array:
    """Return what a dollar is worth in each period at each rate that is looked at."""
    return np.exp(-np.multiply.outer(np.arange(periods), _RATES))


def internal_rate(flows: Array) -> float:
    """Return the rate per period at which flows are worth nothing; NaN where there is none, or more than one.

    >>> round(internal_rate(np.array([-100.0, 110.0])), 9), internal_rate(np.array([-100.0, 230.0, -132.0]))
    (0.1, nan)
    """
    return float(internal_rates(flows[None, :])[0])


def internal_rates(lines: Array) -> Array:
    """Return the rate per period of each row of flows.

    Solves Σ flow_m · (1+r)^−m = 0 for −15 % < r < 2000 % within the one interval in which the sign changes, by the
    regula falsi with the Illinois weight (Dowell & Jarratt 1971).
    """
    size = np.abs(lines)  # (cases, periods)
    flows = np.where(size > _NOISE * size.max(axis=1, keepdims=True), lines, 0.0)
    # what the flows of each case are worth at each rate: (cases, rates)
    ratios, worths = _worths(flows.shape[1]), np.empty((len(flows), _RATES.size))
    for start in range(0, len(flows), _FEW):
        np.matmul(flows[start : start + _FEW], ratios, out=worths[start : start + _FEW])
    signs = np.sign(worths)
    changes = signs[:, 1:] * signs[:, :-1] <= 0
    rates = np.full(len(flows), np.nan)
    # Flows whose sign changes more than once may have several rates, of which none is the return (Descartes' rule).
    single = np.flatnonzero(flows.any(axis=1) & (np.count_nonzero(changes, axis=1) == 1))
    if not single.size:
        return rates
    place, periods = np.argmax(changes[single], axis=1), np.arange(flows.shape[1])
    flows, low, high = flows[single], _RATES[place], _RATES[place + 1]
    at_low, at_high = worths[single, place], worths[single, place + 1]
    for _ in range(60):
        with np.errstate(divide="ignore", invalid="ignore"):
            between = high - at_high * (high - low) / (at_high - at_low)
        between = np.where(np.isfinite(between), between, (low + high) / 2)  # both ends worth the same: halve
        worth = np.sum(flows * np.exp(-between[:, None] * periods), axis=1)
        crossed = worth * at_high <= 0
        # an end that stays has its worth halved, so that the other end, too, comes nearer (Illinois)
        low, at_low = np.where(crossed, high, low), np.where(crossed, at_high, at_low * 0.5)
        moved = np.abs(between - high)
        high, at_high = between, worth
        if ((moved < _SAME_RATE) | (worth == 0)).all():
            break
    rates[single] = np.expm1(high)
    return rates


def _internal_rate(line: Array) -> Array:
    rates = internal_rates(np.atleast_2d(line))
    return rates.reshape(-1, 1) if np.ndim(line) == 2 else rates[0]


def _fold(function: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    return lambda *values: reduce(function, values)


def _where(condition: Any, then: Any, otherwise: Any) -> Any:
    if isinstance(condition, (bool, np.bool_)):  # a choice, the same for every case
        return then if condition else otherwise
    return np.where(condition, then, otherwise)


# The whole world of a formula: without builtins its code can call nothing else. The texts come from this package's
# tables, and `parse` lets in nothing but arithmetic and calls of these.
_FUNCTIONS: dict[str, Any] = {
    "__builtins__": {},
    "where": _where,
    "min": _fold(np.minimum),
    "max": _fold(np.maximum),
    "floor": np.floor,
    "ceil": np.ceil,
    "log": np.log,
    "exp": np.exp,
    "expm1": np.expm1,
    "round_cents": round_cents,
    "lookup": lambda table, index: _cells(table, np.clip(np.floor(index).astype(np.intp), 0, table.shape[-1] - 1)),
    "interpolate": _interpolate,
    "payment": payment,
    "balance": _balance,
    "power": _power,
    "total": _total,
    "overall": _total,
    "sum_product": lambda line, other: _total(line * other),
    "so_far": lambda line: np.cumsum(line, axis=-1),
    "highest_so_far": lambda line: np.maximum(np.maximum.accumulate(line, axis=-1), 0.0),
    "before": _before,
    "of_last": _of_last,
    "within": _within,
    "none": lambda: np.nan,
    "internal_rate": _internal_rate,
    "rate_near": lambda line, guess: _internal_rate(line),  # a guess is what spreadsheets need
    "all_of": _fold(np.logical_and),
    "any_of": _fold(np.logical_or),
}


class _Prepare(ast.NodeTransformer):
    """Decide what hangs on words alone, and turn `and` and `or` into calls that work on arrays."""

    def __init__(self, choices: Choices) -> None:
        self.words = dict(choices)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Keep one branch of where(word == 'choice', …): the other one is never computed."""
        condition = node.args[0] if node.args else None
        if isinstance(condition, ast.Compare) and isinstance(condition.left, ast.Name):
            word, choice = self.words.get(condition.left.id), condition.comparators[0]
            if word is not None and isinstance(choice, ast.Constant) and isinstance(condition.ops[0], ast.Eq):
                branch: ast.AST = self.visit(node.args[1 if word == choice.value else 2])
                return branch
        return self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, ast.Pow) and not isinstance(node.right, ast.Constant):
            return _call("power", [node.left, node.right], node)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.Call:
        self.generic_visit(node)
        return _call("all_of" if isinstance(node.op, ast.And) else "any_of", node.values, node)


def _call(name: str, values: list[ast.expr], origin: ast.AST) -> ast.Call:
    function = ast.copy_location(ast.Name(name, ast.Load()), origin)
    return ast.copy_location(ast.Call(function, values, []), origin)


_ASKS_MORE = re.compile(r"\*\*|\b(and|or)\b|==")  # what the transformer looks at


@cache
def _prepared(text: str, choices: Choices = ()) -> tuple[CodeType, frozenset[str]]:
    """Return a formula's code and the names that it reads, its words decided; the text is one of this package's own."""
    _FUNCTIONS.update({name: kernel.compute for name, kernel in KERNELS.items()})  # fields may have added some since
    tree: Any = text.strip()
    if _ASKS_MORE.search(text):
        tree = _Prepare(choices).visit(ast.parse(tree, mode="eval"))  # any other text compiles as it stands
    code = compile(tree, f"<{text}>", "eval")
    return code, frozenset(code.co_names)


def evaluate(text: str, values: Mapping[str, Any]) -> Any:
    """Evaluate one formula over named values.

    >>> float(evaluate("gpus * max(price_usd, 0)", {"gpus": 8.0, "price_usd": np.array(2.5)}))
    20.0
    """
    parse(text)  # refuses what is outside the language
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return eval(_prepared(text)[0], _FUNCTIONS, values)


@cache
def needed(lines: tuple[Line, ...], targets: tuple[str, ...], choices: Choices) -> tuple[CodeLine, ...]:
    """Return, in order, the code of the lines that the targets hang on once the words are decided."""
    needed_names, code_lines = set(targets), []  # from the last line to the first: a line stands after what it reads
    for line in reversed(lines):
        if line.name in needed_names:
            code, read = _prepared(line.text, choices)
            needed_names |= read
            code_lines.append((line.name, code))
    return tuple(reversed(code_lines))


def _misplaced(name: str, text: str, error: NameError) -> NameError:
    """Say which formula reads a name that nothing before it gives."""
    return NameError(f"formula {name}, {text}: {error.name} is no input, constant or line before it")


def evaluate_all(lines: tuple[Line, ...], values: dict[str, Any], targets: tuple[str, ...] | None = None) -> None:
    """Evaluate lines in order, each seeing those before it; the results join `values`."""
    choices = tuple((name, value) for name, value in values.items() if isinstance(value, str))
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for name, code in needed(lines, targets or tuple(line.name for line in lines), choices):
            try:
                values[name] = eval(code, _FUNCTIONS, values)
            except NameError as error:
                raise _misplaced(name, code.co_filename, error) from None


@cache
def _hanging(
    lines: tuple[Line, ...], targets: tuple[str, ...], choices: Choices, changing: tuple[str, ...]
) -> tuple[CodeLine, ...]:
    """Return, in order, the code of the lines that lie between changing inputs and the targets."""
    moved, code_lines = set(changing), []
    for name, code in needed(lines, targets, choices):
        if moved.intersection(code.co_names):
            moved.add(name)
            code_lines.append((name, code))
    return tuple(code_lines)


def evaluate_again(
    lines: tuple[Line, ...], values: Mapping[str, Any], changes: Mapping[str, Any], targets: tuple[str, ...]
) -> dict[str, Any]:
    """Return the values with some inputs changed: of lines that were evaluated, those that hang on them come anew."""
    choices = tuple((name, value) for name, value in values.items() if isinstance(value, str))
    again = {**values, **changes}
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for name, code in _hanging(lines, targets, choices, tuple(changes)):
            again[name] = eval(code, _FUNCTIONS, again)
    return again


class Columns(dict[str, Array]):
    """Named arrays with one element per case; a column reads as an attribute.

    >>> Columns(cost_usd=np.array([2.0, 3.0])).cost_usd.tolist()
    [2.0, 3.0]
    """

    def __getattr__(self, name: str) -> Array:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"there is no column {name}") from None

    def row(self, index: int) -> dict[str, float]:
        """Return one case as plain numbers."""
        return {name: float(column[index]) for name, column in self.items()}

    def take(self, rows: NDArray[np.int64]) -> "Columns":
        """Return the cases that `rows` names."""
        return Columns({name: column[rows] for name, column in self.items()})

    @classmethod
    def concatenate(cls, parts: Sequence["Columns"]) -> "Columns":
        """Join the cases of several sets of the same columns."""
        return cls({name: np.concatenate([part[name] for part in parts]) for name in parts[0]})


@cache
def _dropped(lines: tuple[Line, ...], targets: tuple[str, ...]) -> tuple[tuple[str, CodeType, tuple[str, ...]], ...]:
    """Return the needed lines, each with the earlier ones that nothing reads after it."""
    drops, seen = [], set(targets)
    texts = {line.name: line.text for line in lines}
    for name, code in reversed(needed(lines, targets, ())):
        last = tuple(read for read in _prepared(texts[name])[1] if read in texts and read not in seen)
        seen.update(last)
        drops.append((name, code, last))
    return tuple(reversed(drops))


def evaluate_columns(
    lines: tuple[Line, ...], inputs: Columns, constants: Mapping[str, float], targets: tuple[str, ...]
) -> Columns:
    """Return the target columns of every case; what no target needs is not computed, what none needs later not kept."""
    values: dict[str, Any] = {**constants, **inputs}
    # cases without a layout have NaN, and a division by their zeros is no news
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        for name, code, last in _dropped(lines, targets):
            try:
                values[name] = eval(code, _FUNCTIONS, values)
            except NameError as error:
                raise _misplaced(name, code.co_filename, error) from None
            for done in last:
                del values[done]
    return Columns({name: values[name] for name in targets})
