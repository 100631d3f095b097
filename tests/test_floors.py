"""Who may import whom: floors, rooms, and no circles.

Every import counts, wherever in a module it stands: those inside functions and those under `if TYPE_CHECKING:` too.
"""

import ast
from functools import cache
from pathlib import Path

from tests.rules import for_each

PACKAGE = Path(__file__).resolve().parent.parent / "gpucost"

# room -> floor; a module directly under gpucost/ is a room of its own
FLOORS = (
    ("units", "errors", "clock", "limits", "gate", "heap"),
    ("types", "words", "answers", "formula", "options", "schemas", "arguments"),
    ("architectures", "physics", "money", "store"),
    ("catalog",),
    ("market", "refresh"),
    ("workloads", "bridges"),
    ("training", "serving", "ownership", "fitting", "claims", "speed", "calibration", "bench", "invoices"),
    ("render",),
    ("ask", "library", "cli", "sweeping", "agents", "page", "__main__"),
)
FLOOR = {room: floor for floor, rooms in enumerate(FLOORS) for room in rooms}
GROUND, RECORDS, QUESTIONS, RENDER, FACES = 0, 1, 6, 7, 8
# Rooms that know their neighbours on the same floor; between all others there is a wall.
OPEN_FLOORS = (GROUND, RECORDS, FACES)

MODULES = sorted(PACKAGE.rglob("*.py"))


def name_of(path: Path) -> str:
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


PACKAGE_CONSTANTS = ("gpucost.__version__", "gpucost.QUESTION_MODULES")  # plain values of the package's own module
PATHS = {name_of(path): path for path in MODULES}


def room_of(module: str) -> str:
    """Return the room of a module: the folder under gpucost/, or the module itself; the package is its own face."""
    parts = module.split(".")
    return parts[1] if len(parts) > 1 else "__main__"


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text("utf-8"))


@cache
def imports_of(path: Path) -> frozenset[str]:
    """Return the modules of gpucost that a module imports, wherever in it the import stands."""
    tree, found = tree_of(path), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                if inner not in PACKAGE_CONSTANTS:
                    found.add(inner if inner in PATHS else node.module)
    return frozenset(name for name in found if name.split(".")[0] == "gpucost") - {name_of(path)}


def crosses(module: str, other: str) -> bool:
    """Tell whether an import goes up, or through the wall to a neighbour; rendering never asks a question."""
    here, there = room_of(module), room_of(other)
    if here == there:
        return False
    if FLOOR[here] == RENDER and FLOOR[there] == QUESTIONS:
        return True
    level = FLOOR[here] == FLOOR[there] and FLOOR[here] not in OPEN_FLOORS
    return FLOOR[there] > FLOOR[here] or level


def test_every_room_stands_on_a_floor():
    rooms = {room_of(name) for name in PATHS}
    assert rooms <= set(FLOOR), f"rooms without a floor: {rooms - set(FLOOR)}"


@for_each("module", sorted(PATHS))
def test_a_module_imports_only_from_its_room_and_from_below(module):
    wrong = {other for other in imports_of(PATHS[module]) if crosses(module, other)}
    assert not wrong, f"{module} imports {', '.join(sorted(wrong))}"


def test_no_module_reaches_itself_through_its_imports():
    arrows = {name: imports_of(path) & set(PATHS) for name, path in PATHS.items()}
    circles = []
    for start in arrows:
        seen, open_ = set(), list(arrows[start])
        while open_:
            if (name := open_.pop()) not in seen:
                seen.add(name)
                open_ += arrows[name]
        if start in seen:
            circles.append(start)
    assert not circles, f"in circles: {', '.join(circles)}"


def test_a_class_name_has_one_meaning():
    places: dict[str, list[str]] = {}
    for path in MODULES:
        for node in tree_of(path).body:
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(name_of(path))
    assert not {name: modules for name, modules in places.items() if len(modules) > 1}
