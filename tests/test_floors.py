"""Who may import whom: physics never sees a price, money never sees a FLOP, rendering needs no engine."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parent.parent / "gpucost"
GROUND = {"units", "errors", "formula", "options", "__init__"}
RECORDS = {"types", "schemas", "answers"}
SHARED = GROUND | RECORDS
JOINTS = {path.stem for path in PACKAGE.glob("*.py")} | {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
EVALUATOR = "gpucost.money.evaluate"  # the evaluator of the formula language knows no money
FACES = {"api", "cli", "__main__"}
MAY_IMPORT = {
    "units": GROUND,
    "errors": GROUND,
    "formula": GROUND,
    "options": set(),
    "types": SHARED,
    "answers": GROUND | {"answers"},
    "schemas": SHARED,
    "architectures": SHARED | {"architectures"},
    "physics": SHARED | {"physics"},
    "money": SHARED | {"money"},
    "catalog": SHARED | {"catalog", "physics", "architectures"},
    "render": SHARED | {"render"},
}
EVERYWHERE_BELOW_THE_FACES = JOINTS - FACES


def floor_of(path: Path) -> str:
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """Return the parts of gpucost that a module imports, wherever in it the import stands."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        names = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = (
                [f"{node.module}.{alias.name}" for alias in node.names] if node.module == "gpucost" else [node.module]
            )
        names = ["gpucost.formula" if name.startswith(EVALUATOR) else name for name in names]
        found |= {name.split(".")[1] for name in names if name.startswith("gpucost.")}
    return {name for name in found if name in JOINTS | FACES}


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: path.relative_to(PACKAGE).as_posix())
def test_a_module_imports_only_from_its_floor_and_below(path):
    floor = floor_of(path)
    if floor in FACES or floor == "__init__":
        return
    allowed = MAY_IMPORT.get(floor, EVERYWHERE_BELOW_THE_FACES - {"render"})
    assert imported(path) <= allowed, f"{path.name} on the floor of {floor} imports {imported(path) - allowed}"
