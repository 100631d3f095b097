"""What each term of the models earns on sources that took no part in proposing it: the table of `docs/terms.csv`.

`python -m docs.generate terms.csv` makes it again, in minutes; docs/accuracy.md shows it. A quicker look, by fewer
draws of halves: `python -m benchmarks.terms --kind serving --splits 1`.
"""

import argparse
import csv
import io
from pathlib import Path

from gpucost.catalog import open_catalog
from tools import calibrate, choice

TABLE = Path(__file__).parents[1] / "docs/terms.csv"
COLUMNS = ("kind", "name", "parameters", "gain", "kept", "fitted")
KINDS = ("training", "serving")


def table() -> str:
    """Ask every term of both models what it earns, and write the answers as CSV."""
    catalog, text = open_catalog(), io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, lineterminator="\n")
    writer.writeheader()
    for kind in KINDS:
        for term in calibrate.choose(catalog, kind):
            shown = {**term, "gain": f"{term['gain']:.4f}", "kept": int(term["kept"]), "fitted": int(term["fitted"])}
            writer.writerow({"kind": kind, **shown})
    return text.getvalue()


def page() -> list[str]:
    """Write the section of the page: parameters before and after, then what each term earns."""
    # a page can be made before the table is: it takes a quarter of an hour
    rows = list(csv.DictReader(TABLE.open(encoding="utf-8"))) if TABLE.is_file() else []
    kinds = [kind for kind in KINDS if any(row["kind"] == kind for row in rows)]
    lines = [
        "\n## What each term earns on sources outside its proposal\n",
        "A term is a parameter, or all parameters of a kind (one for each family, class or engine). It is left out of "
        "the whole model on halves of the sources; its gain is by how many per cent of a speed the other halves are "
        "then predicted worse ([method](method.md#validation)). What earns less than 0.03 for each parameter is held "
        "at what is believed of it; a held term that would pay now is a candidate for the next fit. "
        "`python -m tools.calibrate choose` asks again.\n",
        "|  | parameters that observations touch | fitted | of them pay now |",
        "|---|--:|--:|--:|",
    ]
    for kind in kinds:
        mine = [row for row in rows if row["kind"] == kind]
        # parameters, not terms: those of any term, of fitted ones, and of fitted ones that would stay
        touched, fitted, pay = (
            sum(int(row["parameters"]) for row in mine if all(row[name] == "1" for name in names))
            for names in ((), ("fitted",), ("fitted", "kept"))
        )
        lines.append(f"| {kind} | {touched} | {fitted} | {pay} |")
    lines.append("\n[terms.csv](terms.csv) has every term with its gain.")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kind", choices=KINDS, default="serving")
    parser.add_argument("--splits", type=int, default=choice.SPLITS)
    options = parser.parse_args()
    kind = calibrate.KINDS[options.kind]
    for term in choice.choose(kind.sources(kind.shipped(open_catalog())), splits=options.splits):
        print(f"{term.name:32} {term.parameters:3} {100 * term.gain:+.2f} % {'stays' if term.kept else 'goes'}")


if __name__ == "__main__":
    main()
