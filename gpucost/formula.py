"""A formula is one line of text that Python, a spreadsheet, the documentation and `--explain` all read.

The language: numbers, names, quoted choices, + - * / **, comparisons, `and`, `or`, and the functions below.
Money writes its cash-flow lines in it and evaluates them with NumPy; the workbook writes the same lines as live
formulas. This module knows the grammar and the spreadsheet's dialect; it computes nothing.
"""

import ast
from collections.abc import Callable
from functools import cache

# function -> number of arguments; `None` is two or more
FUNCTIONS: dict[str, int | None] = {
    "where": 3,  # where(condition, then, otherwise)
    "min": None,
    "max": None,
    "floor": 1,
    "ceil": 1,
    "log": 1,
    "exp": 1,
    "expm1": 1,  # exp(x) - 1, exact near zero
    "round_cents": 1,  # to cents, halves away from zero
    "lookup": 2,  # lookup(table, index from 0), held at the table's ends
    "interpolate": 2,  # interpolate(table, position from 0), linear, held at the table's ends
    "payment": 4,  # payment(rate, periods, present, future): level payment in arrears that turns present into future
    "total": 1,  # total(line): sum of a monthly line
    "sum_product": 2,  # sum_product(line, other): sum over the months of the product of two monthly lines
    "internal_rate": 1,  # internal_rate(line): monthly rate at which a monthly line is worth nothing
    "balance": 4,  # balance(rate, periods, present, payment): what is still owed after so many payments
}

_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.Pow: "^",
    ast.Eq: "=", ast.NotEq: "<>", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=",
}  # fmt: skip
_ALLOWED = (
    ast.Expression, ast.Name, ast.Load, ast.Constant, ast.Call, ast.BinOp, ast.UnaryOp, ast.USub, ast.Compare,
    ast.BoolOp, ast.And, ast.Or, *_OPERATORS,
)  # fmt: skip


@cache
def parse(text: str) -> ast.expr:
    """Return the syntax tree of a formula; anything outside the language raises ValueError.

    >>> parse("gpus * 730").__class__.__name__
    'BinOp'
    """
    tree = ast.parse(text.strip().replace("\n", " "), mode="eval")
    for node in ast.walk(tree):
        if not isinstance(node, _ALLOWED) or (isinstance(node, ast.Compare) and len(node.ops) != 1):
            raise ValueError(f"formula {text!r}: {type(node).__name__} is not part of the language")
        if isinstance(node, ast.Call):
            _check_call(node, text)
    return tree.body


def _check_call(node: ast.Call, text: str) -> None:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name not in FUNCTIONS or node.keywords:
        raise ValueError(f"formula {text!r}: unknown function {name!r}")
    wanted = FUNCTIONS[name]
    if len(node.args) != wanted if wanted is not None else len(node.args) < 2:
        raise ValueError(f"formula {text!r}: {name} takes {wanted or 'two or more'} arguments")


@cache
def names(text: str) -> tuple[str, ...]:
    """Return the names that a formula reads, in order of first use, functions left out.

    >>> names("where(basis == 'own', gpus * price_usd, 0)")
    ('basis', 'gpus', 'price_usd')
    """
    tree = parse(text)
    functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in functions]
    found.sort(key=lambda node: (node.lineno, node.col_offset))
    return tuple(dict.fromkeys(node.id for node in found))


def to_excel(text: str, resolve: Callable[[str], str]) -> str:
    """Write a formula in the spreadsheet's dialect, without the leading "="; `resolve` turns a name into a reference.

    Only functions that Excel and LibreOffice share are used: IF AND OR MIN MAX INT ROUND ROUNDUP LN EXP
    SINH INDEX ROWS SUM SUMPRODUCT PMT FV IRR.

    >>> to_excel("where(basis == 'own', gpus * max(price_usd, 0), 0)", str.upper)
    'IF((BASIS="own"),(GPUS*MAX(PRICE_USD,0)),0)'
    """
    return _write(parse(text), resolve)


def _write(node: ast.expr, resolve: Callable[[str], str]) -> str:
    if isinstance(node, ast.Name):
        return resolve(node.id)
    if isinstance(node, ast.Constant):
        return f'"{node.value}"' if isinstance(node.value, str) else repr(node.value)
    if isinstance(node, ast.UnaryOp):
        return f"(-{_write(node.operand, resolve)})"
    if isinstance(node, ast.BinOp):
        return f"({_write(node.left, resolve)}{_OPERATORS[type(node.op)]}{_write(node.right, resolve)})"
    if isinstance(node, ast.Compare):
        return f"({_write(node.left, resolve)}{_OPERATORS[type(node.ops[0])]}{_write(node.comparators[0], resolve)})"
    if isinstance(node, ast.BoolOp):
        word = "AND" if isinstance(node.op, ast.And) else "OR"
        return f"{word}({','.join(_write(value, resolve) for value in node.values)})"
    assert isinstance(node, ast.Call)
    assert isinstance(node.func, ast.Name)
    return _write_call(node.func.id, [_write(argument, resolve) for argument in node.args])


def _write_call(name: str, a: list[str]) -> str:
    if name in ("min", "max"):
        return f"{name.upper()}({','.join(a)})"
    if name == "lookup":
        return f"INDEX({a[0]},MIN(MAX(INT({a[1]}),0),ROWS({a[0]})-1)+1)"
    if name == "interpolate":
        low = f"MIN(MAX(INT({a[1]}),0),ROWS({a[0]})-2)"
        share = f"MIN(MAX({a[1]}-{low},0),1)"
        return f"(INDEX({a[0]},{low}+1)*(1-{share})+INDEX({a[0]},{low}+2)*{share})"
    templates = {
        "where": "IF({0},{1},{2})",
        "floor": "INT({0})",
        "ceil": "ROUNDUP({0},0)",
        "log": "LN({0})",
        "exp": "EXP({0})",
        "expm1": "(2*EXP(({0})/2)*SINH(({0})/2))",
        "round_cents": "ROUND({0},2)",
        "payment": "PMT({0},{1},-({2}),{3})",
        "total": "SUM({0})",
        "sum_product": "SUMPRODUCT({0},{1})",
        "internal_rate": "IRR({0},0.01)",
        "balance": "-FV({0},{1},-({3}),{2})",
    }
    return templates[name].format(*a)
