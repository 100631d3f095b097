"""A rule that holds for every row of a table is one test, which names each row that breaks it."""

import inspect
from collections.abc import Callable, Iterable
from typing import Any

import pytest


def for_each(
    names: str, rows: Iterable[Any] | Callable[[], Iterable[Any]], called: Callable[..., object] = str
) -> Callable[[Any], Any]:
    """Make one test of a rule: `names` are its arguments that a row gives, `called` names a row; the rest are fixtures.

    Rows that take time to gather are given as a function, which the test calls. A row about which the rule says nothing
    is skipped; a rule that says something of no row fails.
    """
    given = [name.strip() for name in names.split(",")]
    if not callable(rows):
        rows = list(rows)

    def made(rule: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(rule)
        fixtures = [parameter for name, parameter in signature.parameters.items() if name not in given]

        def test(**asked: Any) -> None:
            broken, held = [], 0
            for row in rows() if callable(rows) else rows:
                cells = dict(zip(given, row if len(given) > 1 else (row,), strict=True))
                try:
                    rule(**cells, **asked)
                    held += 1
                except pytest.skip.Exception:
                    continue
                except Exception as error:
                    broken.append(f"{called(*cells.values())}: {type(error).__name__}: {error}")
            if broken or not held:
                pytest.fail("\n".join(broken) or "the rule was asked of no row", pytrace=False)

        test.__name__, test.__doc__, test.__module__ = rule.__name__, rule.__doc__, rule.__module__
        test.__signature__ = signature.replace(parameters=fixtures)  # type: ignore[attr-defined]
        return test

    return made
