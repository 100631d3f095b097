"""The catalog and the schemas have no circles: what imports whom, wherever in a module the import stands."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[2] / "gpucost"


def imports(room: str) -> dict[str, set[str]]:
    """Return the modules of a room that each of its modules imports; the room itself stands for its __init__."""
    modules = {f"gpucost.{room}.{path.stem}".removesuffix(".__init__"): path for path in (PACKAGE / room).glob("*.py")}
    found: dict[str, set[str]] = {}
    for name, path in modules.items():
        named: set[str] = set()
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                named |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                below = {f"{node.module}.{alias.name}" for alias in node.names} & set(modules)
                named |= below or {node.module}
        found[name] = named & set(modules) - {name}
    return found


def circle(graph: dict[str, set[str]]) -> list[str]:
    """Return the modules that remain when those that import nothing of the rest are taken away, again and again."""
    left = {name: set(used) for name, used in graph.items()}
    while free := [name for name, used in left.items() if not used & set(left)]:
        for name in free:
            del left[name]
    return sorted(left)


@pytest.mark.parametrize("room", ["catalog", "schemas"])
def test_a_room_has_no_circles(room):
    assert circle(imports(room)) == []


def test_a_circle_is_found():
    assert circle({"a": {"b"}, "b": {"a"}, "c": {"a"}, "d": set()}) == ["a", "b", "c"]
