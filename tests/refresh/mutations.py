"""Answers of sources as they might be tomorrow, most of them wrong: for holding importers against.

Each mutation changes one answer of a sample in one way: an amount, its unit or currency, a word, the order or the names
of columns, a row twice or not at all. `replay(count, seed)` yields them; `python -m tests.refresh.mutations 1000`
runs so many and prints what was published without a question though it is not what the source meant.
"""

import csv
import io
import json
import random
import re
import sys
from collections import Counter

FACTORS = (0, -1, 1e-6, 1 / 730, 1 / 100, 1 / 8, 0.5, 2, 8, 100, 730, 8760)


def mutated(text, rng):
    """Return a changed answer and what was done to it."""
    ways = [_amount, _amount, _words, _drop, _double, _cut]
    if text.lstrip().startswith(("{", "[")):
        ways += [_json_type, _json_rename, _json_swap]
    elif "," in text.splitlines()[0] and "map[" not in text:
        ways += [_csv_shuffle, _csv_rename, _csv_swap]
    way = rng.choice(ways)
    return way(text, rng), way.__name__.strip("_")


_NUMBER = re.compile(r"(?<![\w.:-])\d+\.\d+(?![\w.-])|(?<=: )\d{3,}(?=[,\n])")


def _amount(text, rng):
    found = list(_NUMBER.finditer(text))
    if not found:
        return text
    one, factor = rng.choice(found), rng.choice(FACTORS)
    return f"{text[: one.start()]}{float(one[0]) * factor:.10g}{text[one.end() :]}"


_SWAPS = (
    ("OnDemand", "Preemptible"),
    ("Spot Preemptible ", ""),
    (" attached to Spot Preemptible VMs", ""),
    ("USD", "EUR"),
    ("1 Hour", "1 Month"),
    ("Hrs", "Quantity"),
    ("Low Priority", ""),
    (" Spot", ""),
    ("Windows", "Linux"),
    ("Consumption", "Reservation"),
    ("1 Year", "3 Years"),
    ("Reservation", "Consumption"),
    ("false", "true"),
    ("Commitment v1: ", ""),
    ("attached to DWS Defined Duration VMs ", ""),
    ("Shared", "Dedicated"),
    ("80GB", "40GB"),
    ("GPU Per Hour", "GPU Per Month"),
    ("H100", "H200"),
    ("A100", "A10"),
    ("us-", "eu-"),
    ("8", "1"),
    ("48xlarge", "4xlarge"),
    ("on_demand", "spot"),
    ('"h"', '"mo"'),
    ("usageUnit", "unit"),
    ("USD", "IDR"),
    ("securePrice", "communityPrice"),
    ("SpotPrice", "Price"),
    ("retailPrice", "price"),
    ("PAY_AS_YOU_GO", "MONTHLY_COMMIT"),
)


def _words(text, rng):
    known = [pair for pair in _SWAPS if pair[0] in text]
    if not known:
        return text
    old, new = rng.choice(known)
    if rng.random() < 0.3:
        return text.replace(old, new)
    starts = [one.start() for one in re.finditer(re.escape(old), text)]
    start = rng.choice(starts)
    return text[:start] + new + text[start + len(old) :]


def _lines(text, rng, change):
    lines = text.splitlines(keepends=True)
    change(lines, rng.randrange(len(lines)))
    return "".join(lines)


def _drop(text, rng):
    return _lines(text, rng, lambda lines, at: lines.pop(at))


def _double(text, rng):
    return _lines(text, rng, lambda lines, at: lines.insert(at, lines[at]))


def _cut(text, rng):
    return text[: rng.randrange(len(text))]


def _leaves(value, found):
    for key, item in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        found.append((value, key))
        _leaves(item, found)
    return found


def _json(change):
    def way(text, rng):
        value = json.loads(text)
        found = _leaves(value, [])
        if found:
            change(found, rng)
        return json.dumps(value)

    way.__name__ = change.__name__
    return way


@_json
def _json_type(found, rng):
    holder, key = rng.choice(found)
    holder[key] = rng.choice((None, "x", [], {}, True, -1, 1e308, "12,5", "1e9999", "\u0000"))


@_json
def _json_rename(found, rng):
    holder, key = rng.choice([pair for pair in found if isinstance(pair[0], dict)] or found)
    if isinstance(holder, dict):
        holder[f"{key}_v2"] = holder.pop(key)


@_json
def _json_swap(found, rng):
    plain = [(holder, key) for holder, key in found if isinstance(holder[key], int | float | str)]
    if not plain:
        return
    (one, a), (two, b) = rng.choice(plain), rng.choice(plain)
    one[a], two[b] = two[b], one[a]


def _table(change):
    def way(text, rng):
        above = re.match(r'(?:"?(?:FormatVersion|Disclaimer|Publication Date|Version|OfferCode)"?,[^\n]*\n)*', text)[0]
        rows = list(csv.reader(io.StringIO(text[len(above) :])))
        change(rows, rng)
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows(rows)
        return above + out.getvalue()

    way.__name__ = change.__name__
    return way


@_table
def _csv_shuffle(rows, rng):
    order = list(range(len(rows[0])))
    rng.shuffle(order)
    rows[:] = [[row[at] for at in order if at < len(row)] if len(row) == len(order) else row for row in rows]


@_table
def _csv_rename(rows, rng):
    at = rng.randrange(len(rows[0]))
    rows[0][at] = rng.choice((rows[0][at] + "2", rng.choice(rows[0]), "Price"))


@_table
def _csv_swap(rows, rng):
    """Exchange two cells of a row, or of a column."""
    one, two = rng.randrange(1, len(rows)), rng.randrange(1, len(rows))
    width = min(len(rows[one]), len(rows[two]))
    a = rng.randrange(width)
    b = rng.randrange(width) if one == two else a
    rows[one][a], rows[two][b] = rows[two][b], rows[one][a]


def main(count, seed=0):
    import tempfile
    from pathlib import Path

    from tests.refresh.test_mutations import Bench

    with tempfile.TemporaryDirectory() as folder:
        bench, wrong, ways = Bench(Path(folder)), [], Counter()
        for number in range(count):
            rng = random.Random(seed * 1_000_003 + number)
            what, found = bench.tried(rng)
            ways[what] += 1
            wrong += [(number, what, *row) for row in found]
    print(f"{count} mutated answers; {len(wrong)} prices published without a question that are wrong")
    for row in wrong[:60]:
        print(*row)
    print(dict(ways))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0)
