"""Formulas in the dialect that Excel and LibreOffice share."""

import ast
from collections.abc import Callable

from gpucost.formula.language import WHOLE_LINES, parse

ALL_MONTHS = ":"  # after a name: the whole row of a monthly line
_OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.Pow: "^",
    ast.Eq: "=",
    ast.NotEq: "<>",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}


def to_excel(text: str, resolve: Callable[[str], str]) -> str:
    """Write a formula in the spreadsheet's dialect, without the leading "="; `resolve` turns a name into a reference.

    Only functions that Excel and LibreOffice share are used: IF AND OR MIN MAX INT ROUND ROUNDUP LN EXP
    SINH INDEX ROWS SUM SUMIF SUMPRODUCT PMT FV IRR NA. A name with `:` is the whole row of a monthly line.

    >>> to_excel("where(basis == 'own', gpus * max(price_usd, 0), 0)", str.upper)
    'IF((BASIS="own"),(GPUS*MAX(PRICE_USD,0)),0)'
    """
    return _write(parse(text), resolve)


def _write(node: ast.expr, resolve: Callable[[str], str]) -> str:
    if isinstance(node, ast.Name):
        return resolve(node.id)
    if isinstance(node, ast.Constant):
        return '"' + node.value.replace('"', '""') + '"' if isinstance(node.value, str) else repr(node.value)
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
    if node.func.id in WHOLE_LINES:
        return _write_months(node.func.id, [ast.unparse(argument) for argument in node.args], resolve)
    return _write_call(node.func.id, [_write(argument, resolve) for argument in node.args])


def _write_months(name: str, lines: list[str], resolve: Callable[[str], str]) -> str:
    line = resolve(lines[0] + ALL_MONTHS)
    if name == "overall":
        return f"SUM({line})"
    month, months = resolve("m"), resolve("m" + ALL_MONTHS)
    if name == "within":
        return f"SUMIF({resolve(lines[1] + ALL_MONTHS)},{resolve(lines[1])},{line})"
    if name == "of_last":
        return f'(SUMIF({months},"<="&{month},{line})-SUMIF({months},"<="&({month}-{resolve(lines[1])}),{line}))'
    if name == "highest_so_far":
        return f"SUMPRODUCT(MAX(({months}<={month})*{line}))"
    return f"SUMIF({months},{month}-1,{line})" if name == "before" else f'SUMIF({months},"<="&{month},{line})'


# the rate that a guess leads to, or another one where that ends nowhere, or at a root below −100 %, which is no rate
_RATE_NEAR = (
    "IFERROR(EXP(LN(1+IRR({0},{1})))-1,"  # no logarithm: an error
    "IFERROR(IRR({0},0.01),IFERROR(IRR({0},-0.05),IRR({0},-0.1))))"
)


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
        "rate_near": _RATE_NEAR,
        "none": "NA()",
        "balance": "-FV({0},{1},-({3}),{2})",
    }
    return templates[name].format(*a)
