"""Formulas in the dialect that Excel and LibreOffice share."""

import ast
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from gpucost.formula.language import WHOLE_LINES, Line, parse

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


# --- Formulas that a person can follow: a part of a long one becomes a line of its own.

LONGEST = 255  # characters of a formula
PART = "step"  # the unit of a part, which may be anything on the way to its line
_WHOLE = (*WHOLE_LINES, "total", "sum_product", "internal_rate", "rate_near")  # what reads months, not a month


def shortened(lines: Iterable[Line], resolve: Callable[[str], str], longest: int = LONGEST - 1) -> tuple[Line, ...]:
    """Return the lines with parts of those that are too long as lines before them; `resolve` writes no name too short.

    >>> def cell(name): return f"{name[0].upper()}$12"
    >>> (part, whole) = shortened([Line("x", "max(a, b) * (c + max(a, b))")], cell, 30)
    >>> part.text, whole.text
    ('max(a, b)', 'part_1_of_x * (c + part_1_of_x)')
    """
    rows: list[Line] = []
    for line in lines:
        tree, number = parse(line.text), 0
        if len(_write(tree, resolve)) > longest:
            # What lies between two cells of a table is written as both of them, each by its share of the way: parts of
            # that are short.
            for node in ast.walk(tree):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "interpolate":
                    table, at = map(ast.unparse, node.args)
                    share = f"({at} - floor({at}))"
                    both = f"lookup({table}, {at}) * (1 - {share}) + lookup({table}, {at} + 1) * {share}"
                    tree = _replaced(tree, frozenset({id(node)}), parse(both))
        # Greedy: each time the part that leaves the shortest formula, wherever it stands in it, becomes a line.
        while (length := len(_write(tree, resolve))) > longest:
            number += 1
            name = f"part_{number}_of_{line.name}"
            alike: dict[str, list[ast.expr]] = {}
            for part in _parts(tree):
                alike.setdefault(ast.dump(part), []).append(part)
            shorter: list[tuple[int, int, ast.expr, ast.expr]] = []  # the second figure decides between equal lengths
            for parts in alike.values():
                if len(_write(_alone(parts[0]), resolve)) > longest:
                    continue
                reading: ast.expr = ast.Name(name, ast.Load())
                if isinstance(parts[0], _CONDITIONS):
                    reading = ast.Compare(reading, [ast.Gt()], [ast.Constant(0)])
                whole = _replaced(tree, frozenset(map(id, parts)), reading)
                shorter.append((len(_write(whole, resolve)), len(shorter), whole, parts[0]))
            left, _, tree, part = min(shorter)
            assert left < length, f"{line.name} has no part that makes it shorter"
            description = f"part {number} of: {line.description or line.name}"
            rows.append(Line(name, ast.unparse(_alone(part)), description, "", line.group, PART))
        rows.append(line._replace(text=ast.unparse(tree)) if number else line)
    return tuple(rows)


_CONDITIONS = (ast.Compare, ast.BoolOp)


def _alone(part: ast.expr) -> ast.expr:
    """Return a part as a line has it: a condition is one or nothing."""
    if not isinstance(part, _CONDITIONS):
        return part
    return ast.Call(ast.Name("where", ast.Load()), [part, ast.Constant(1), ast.Constant(0)], [])


def _replaced(node: ast.expr, places: frozenset[int], name: ast.expr) -> ast.expr:
    """Return a formula with a part, wherever it stands, read from its own line; what does not hold it stays."""
    if id(node) in places:
        return name
    changes: dict[str, Any] = {}
    for field, value in ast.iter_fields(node):
        if isinstance(value, ast.expr):
            if (new := _replaced(value, places, name)) is not value:
                changes[field] = new
        elif isinstance(value, list) and value and isinstance(value[0], ast.expr):
            many = [_replaced(child, places, name) for child in value]
            if any(new is not child for new, child in zip(many, value, strict=True)):
                changes[field] = many
    return type(node)(**{**dict(ast.iter_fields(node)), **changes}) if changes else node


def _parts(node: ast.expr, guarded: bool = False) -> Iterator[ast.expr]:
    """Yield the parts of a formula; of what a choice guards only what can be worked out at any time."""
    called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
    if called in _WHOLE:
        return
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.expr):
            continue
        # a choice between words is no number, which a line must be
        of_words = isinstance(child, ast.Call) and any(
            isinstance(part, ast.Constant) and isinstance(part.value, str) for part in child.args
        )
        if not (isinstance(child, (ast.Name, ast.Constant)) or of_words or (guarded and _may_fail(child))):
            yield child
        yield from _parts(child, guarded or called == "where")


def _may_fail(node: ast.AST) -> bool:
    """Tell whether a part asks nothing itself before it divides, takes a logarithm or finds a rate."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        if node.func.id == "where":
            return _may_fail(node.args[0])
        if node.func.id in ("log", "none", "payment", "internal_rate", "rate_near"):
            return True
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Div, ast.Pow)):
        known = isinstance(node.right, ast.Constant) or getattr(node.right, "id", "") == "months_per_year"
        if not known:
            return True
    return any(_may_fail(child) for child in ast.iter_child_nodes(node))


# the rate that a guess leads to, or another one where that ends nowhere, or at a root below −100 %, which is no rate
_RATE_NEAR = (
    "IFERROR(EXP(LN(1+IRR({0},{1})))-1,"  # no logarithm: an error
    "IFERROR(IRR({0},0.01),IFERROR(IRR({0},-0.05),IRR({0},-0.1))))"
)
_TEMPLATES = {
    "where": "IF({0},{1},{2})",
    "floor": "INT({0})",
    "ceil": "ROUNDUP({0},0)",
    "log": "LN({0})",
    "exp": "EXP({0})",
    "expm1": "(2*EXP(({0})/2)*SINH(({0})/2))",  # no program has EXPM1; this, too, is exact near zero
    "round_cents": "ROUND({0},2)",
    "payment": "PMT({0},{1},-({2}),{3})",  # money received is positive there, and so is the payment here
    "total": "SUM({0})",
    "sum_product": "SUMPRODUCT({0},{1})",
    "internal_rate": "IRR({0},0.01)",
    "rate_near": _RATE_NEAR,
    "none": "NA()",
    "balance": "-FV({0},{1},-({3}),{2})",
}


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
    name = node.func.id
    if name in WHOLE_LINES:
        # What looks over the months of a line names its whole row, and by SUMIF the months of it that count.
        arguments = [ast.unparse(argument) for argument in node.args]
        line = resolve(arguments[0] + ALL_MONTHS)
        if name == "overall":
            return f"SUM({line})"
        month, months = resolve("m"), resolve("m" + ALL_MONTHS)
        if name == "within":
            return f"SUMIF({resolve(arguments[1] + ALL_MONTHS)},{resolve(arguments[1])},{line})"
        if name == "of_last":
            return (
                f'(SUMIF({months},"<="&{month},{line})-SUMIF({months},"<="&({month}-{resolve(arguments[1])}),{line}))'
            )
        if name == "highest_so_far":
            return f"SUMPRODUCT(MAX(({months}<={month})*{line}))"  # SUMPRODUCT: an array without its keys pressed
        return f"SUMIF({months},{month}-1,{line})" if name == "before" else f'SUMIF({months},"<="&{month},{line})'
    a = [_write(argument, resolve) for argument in node.args]
    if name in ("min", "max"):
        return f"{name.upper()}({','.join(a)})"
    if name == "lookup":  # held at the ends of the table; INDEX counts from 1
        return f"INDEX({a[0]},MIN(MAX(INT({a[1]}),0),ROWS({a[0]})-1)+1)"
    if name == "interpolate":
        low = f"MIN(MAX(INT({a[1]}),0),ROWS({a[0]})-2)"
        share = f"MIN(MAX({a[1]}-{low},0),1)"
        return f"(INDEX({a[0]},{low}+1)*(1-{share})+INDEX({a[0]},{low}+2)*{share})"
    return _TEMPLATES[name].format(*a)
