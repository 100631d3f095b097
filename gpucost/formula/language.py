"""The grammar of a formula, the named lines and inputs that tables of formulas are made of, and their expansion.

The language: numbers, names, quoted choices, + - * / **, comparisons, `and`, `or`, and the functions below. A field
may add functions of its own: a kernel that arrays run, and the rows that a spreadsheet writes in its place.
"""

import ast
import re
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from gpucost.gate import beside
from gpucost.units import unit_of

# function -> number of arguments; `None` is two or more. Those of months take names of monthly lines.
WHOLE_LINES = ("so_far", "highest_so_far", "before", "within", "of_last", "overall")
_FUNCTIONS = {name: int(count) if count else None for name, count, _ in beside(__file__, "functions")[1:]}

_ALLOWED = (
    *(ast.Expression, ast.Name, ast.Load, ast.Constant, ast.Call),
    *(ast.BinOp, ast.UnaryOp, ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.USub),
    *(ast.Compare, ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.BoolOp, ast.And, ast.Or),
)


class Line(NamedTuple):
    """One named formula: its text and what it means; the unit follows from the name unless it is given."""

    name: str
    text: str
    description: str = ""
    side: str = ""  # own | rent; empty for what is on no side of a comparison
    group: str = ""
    unit: str = ""

    @property
    def measure(self) -> str:
        """The unit, given or stated by the name's suffix."""
        return self.unit or unit_of(self.name)


class Input(NamedTuple):
    """One named quantity that formulas start from."""

    name: str
    group: str
    description: str = ""


class Kernel(NamedTuple):
    """A function that a field adds: what arrays run, and the rows that a spreadsheet writes, the result last."""

    parameters: tuple[str, ...]
    compute: Callable[..., Any]
    rows: tuple[Line, ...]


KERNELS: dict[str, Kernel] = {}


def add_kernel(name: str, compute: Callable[..., Any], parameters: str, rows: Iterable[Line]) -> None:
    """Add a function to the language; its rows may read the parameters, each other and named constants."""
    KERNELS[name] = Kernel(tuple(parameters.split()), compute, tuple(rows))


@cache
def parse(text: str) -> ast.expr:
    """Return the syntax tree of a formula; anything outside the language raises ValueError.

    >>> parse("gpus * 730").__class__.__name__
    'BinOp'
    """
    tree = ast.parse(text.strip().replace("\n", " "), mode="eval")
    for node in ast.walk(tree):
        # a < b < c means something else in a spreadsheet
        if not isinstance(node, _ALLOWED) or (isinstance(node, ast.Compare) and len(node.ops) != 1):
            raise ValueError(f"formula {text!r}: {type(node).__name__} is not part of the language")
        if isinstance(node, ast.Constant) and type(node.value) not in (int, float, str):  # True is an int by isinstance
            raise ValueError(f"formula {text!r}: {node.value!r} is neither a number nor a text")
        if isinstance(node, ast.Call):
            name = node.func.id if isinstance(node.func, ast.Name) else ""
            if not (name in _FUNCTIONS or name in KERNELS) or node.keywords:
                raise ValueError(f"formula {text!r}: unknown function {name!r}")
            arity = len(KERNELS[name].parameters) if name in KERNELS else _FUNCTIONS[name]
            if len(node.args) != arity if arity is not None else len(node.args) < 2:
                raise ValueError(f"formula {text!r}: {name} takes {arity or 'two or more'} arguments")
    return tree.body


@cache
def names(text: str) -> tuple[str, ...]:
    """Return the names that a formula reads, in order of first use, functions left out.

    >>> names("where(basis == 'own', gpus * price_usd, 0)")
    ('basis', 'gpus', 'price_usd')
    """
    tree = parse(text)
    functions = {id(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    name_nodes = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and id(node) not in functions]
    # the tree is walked level by level, the text from left to right
    name_nodes.sort(key=lambda node: (node.lineno, node.col_offset))
    return tuple(dict.fromkeys(node.id for node in name_nodes))


def read_tables(module: str, *names: str) -> list[tuple[Line, ...]]:
    """Return tables of formulas by their names, out of the CSV that lies beside a module under its own name."""
    tables: dict[str, list[Line]] = {name: [] for name in names}
    for table, group, name, description, text, unit in beside(module, Path(module).stem)[1:]:
        # a CSV may hold tables that were not asked for
        tables.get(table, []).append(Line(name, text, description, "", group, unit))
    return [tuple(lines) for lines in tables.values()]


def read_inputs(module: str, *names: str) -> list[tuple[Input, ...]]:
    """Return tables of inputs, rows without a formula, likewise."""
    return [tuple(Input(row.name, row.group, row.description) for row in rows) for rows in read_tables(module, *names)]


def expand(lines: Iterable[Line]) -> tuple[Line, ...]:
    """Replace each line that is one call of a kernel by the kernel's rows, named after the line."""
    return tuple(row for line in lines for row in _expanded(line))


def _expanded(line: Line) -> list[Line]:
    tree = parse(line.text)
    name = tree.func.id if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name) else ""
    if name not in KERNELS:
        return [line]
    assert isinstance(tree, ast.Call)
    kernel = KERNELS[name]
    *helpers, result = kernel.rows
    # Helper rows bear the name of the line before their own, without its unit: theirs is another one.
    stem = line.name.removesuffix("_hours").removesuffix("_ratio")
    new = {parameter: ast.unparse(argument) for parameter, argument in zip(kernel.parameters, tree.args, strict=True)}
    new |= {row.name: f"{stem}_{row.name}" for row in helpers}
    identifiers = re.compile(r"\b[A-Za-z_][A-Za-z_0-9]*\b")

    def written(
        text: str,
    ) -> str:  # all names at once, so that an argument called like a parameter is not replaced again
        return identifiers.sub(lambda match: new.get(match[0], match[0]), text)

    rows = [row._replace(name=new[row.name], text=written(row.text), group=line.group) for row in helpers]
    return [*rows, line._replace(text=written(result.text))]


def version(lines: Iterable[Line]) -> str:
    """Return a short name of a set of formulas; it changes with any of them.

    >>> version([Line("a", "b + 1")]) == version([Line("a", "b + 2")])
    False
    """
    from hashlib import sha256

    return sha256("\n".join(f"{line.name} = {line.text}" for line in lines).encode()).hexdigest()[:12]
