"""A cell of a shipped table holds one value: no list, no pairs of keys and values, no span."""

import csv
import re
from pathlib import Path

from tests.rules import for_each

ROOT = Path(__file__).parents[2]
FILES = sorted(
    file
    for folder in ("gpucost", "models", "pricing")
    for file in (ROOT / folder).rglob("*.csv")
    if "/_data/" not in str(file)
)
LISTED = re.compile(r"[|;]|\.\.|^\w+=|^[{\[]")  # a|b, a;b, 2024..2026, key=value, JSON
# sentences, names as others write them, and what is itself a language: formulas and patterns
TEXTS = {
    *(
        "description",
        "help",
        "how",
        "meaning",
        "note",
        "notes",
        "reason",
        "remark",
        "reference",
        "reference_of_adapters",
        "why",
    ),
    *(
        "conditions",
        "decision",
        "doubtful",
        "listed_as",
        "locator",
        "proposed_action",
        "rule_text",
        "sanity_note",
        "title",
    ),
    *("fabric", "interconnect", "launch_source", "price_source", "street_source", "publisher", "shown", "heading"),
    *("formula", "quantity", "pattern"),
}
# CONTRIBUTING.md says why: a chip of which a source leaves two open (a|b), and a published configuration
KEPT = {"gpu": r"[a-z0-9.-]+(\|[a-z0-9.-]+)*", "config": r"\{.*\}"}


def lists_in(file: Path) -> set[tuple[str, str, str]]:
    """Return the columns whose cells hold more than one value, each with a cell."""
    with file.open(encoding="utf-8", newline="") as lines:
        return {
            (file.name, column, cell)
            for row in csv.DictReader(lines)
            for column, cell in row.items()
            if column not in TEXTS and LISTED.search(cell) and not re.fullmatch(KEPT.get(column, ""), cell)
        }


@for_each(
    "file",
    [file for file in FILES if file.parent.name not in ("history", "measurements")],
    lambda file: file.relative_to(ROOT).as_posix(),
)
def test_a_cell_holds_one_value(file):
    assert not lists_in(file)


def test_a_list_in_a_cell_is_seen(tmp_path):
    file = tmp_path / "made.csv"
    file.write_text("name,choices,when,seen,notes\na,x|y,basis=own,2024..2026,one; two\n")
    assert {column for _, column, _ in lists_in(file)} == {"choices", "when", "seen"}
