"""Discounts and credits of a price book: what each names is resolved as everywhere else, or refused by its name."""

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gpucost.catalog import names
from gpucost.catalog.book_files import Draft, Row, day
from gpucost.catalog.loader import Store
from gpucost.errors import UnknownNameError, UsageError
from gpucost.gate import shown

if TYPE_CHECKING:
    from gpucost.catalog.book_rows import Completion

NUMBERS = ("term_months", "floor_usd_per_gpu_hour")
_WHOM = ("provider", "gpu", "region", "option", "instance_type")
_DAYS = ("valid_from", "valid_until")
COLUMNS = (*_WHOM, *NUMBERS, *_DAYS, "fraction")
CREDIT = (*_WHOM, *_DAYS, "usd", "usd_per_month")
_TWINS = {"usd": "amount", "usd_per_month": "amount_per_month"}  # an amount in USD, and in the currency
_EQUAL = ("provider", "region", "instance_type", "term_months")  # what a price must be like, where it is named
_AMONG = ("gpu", "option")  # lists, of which a price must be


def discount(draft: Draft, completion: "Completion") -> Row:
    """Return a discount whose names are ids."""
    row = _covering(draft, completion, "discount", COLUMNS, "end")
    row["fraction"] = fraction = draft.number("fraction", "a discount needs fraction between 0 and 1")
    if not 0 < fraction < 1:
        value = shown(draft.values["fraction"])
        raise draft.error(f"a discount needs fraction between 0 and 1, found {value}", "fraction")
    return row | {column: _amount(draft, column) for column in NUMBERS if column in draft.values}


def credit(draft: Draft, completion: "Completion") -> Row:
    """Return a credit: an amount that pays charges of whom it names, up to a cap in a month, until it expires."""
    from gpucost.catalog.price_rows import apart, astray

    row = _covering(draft, completion, "credit", (*CREDIT, *_TWINS.values(), "currency"), "expire")
    currency = str(draft.values.get("currency") or "USD").upper()
    rate = 1.0 if currency == "USD" else completion.rates.get(currency)
    if rate is None:
        raise draft.error(f"no exchange rate of {currency} is known; give one under [exchange_rates]", "currency")
    # a currency beside amounts in USD alone: the user meant them in that currency, or did not
    if currency != "USD" and not any(twin in draft.values for twin in _TWINS.values()):
        raise draft.error(astray(currency, list(draft.values), _TWINS), "currency")
    for name, twin in _TWINS.items():
        if twin in draft.values:
            row[name] = _amount(draft, twin) * rate
            usd = _amount(draft, name) if name in draft.values else row[name]
            if contradiction := apart(name, usd, twin, row[name]):
                raise draft.error(contradiction, name)
        elif name in draft.values or name == "usd":
            row[name] = _amount(draft, name)
    return {name: row[name] for name in CREDIT}  # amounts in the currency have become USD


def _covering(draft: Draft, completion: "Completion", kind: str, columns: Sequence[str], ends: str) -> Row:
    """Return what a row covers, its GPUs and options as lists, for a name may mean several."""
    if unknown := sorted(set(draft.values) - {*columns, "notes"}):
        raise draft.error(f"a {kind} knows no {', '.join(unknown)}", unknown[0])
    # what it does not name it covers whatever it is
    row: Row = dict.fromkeys(columns)
    for column in (*_WHOM, *_DAYS):
        value = draft.values.get(column)
        if value is None:
            continue
        try:
            if column in _DAYS:
                row[column] = day(value)
            elif not isinstance(value, str) or not value.strip():
                raise UsageError(f"found {shown(value)}; a name is expected, such as aws")
            elif column == "gpu":
                row[column] = [id_ for name in names.listed(value) for id_ in completion.accelerators(name)]
            elif column == "option":
                row[column] = sorted(names.options(value) or ())
            else:  # a provider, region or product as prices spell it, whatever the case; one of no price is a slip
                name, recorded = completion.shipped.alias(column, value), completion.recorded(column)
                spellings = [item for item in recorded if item.lower() == name.lower()]
                if name not in recorded and len(spellings) != 1:
                    hint = "A discount on it would match no price."
                    raise UnknownNameError(column, name, names.near(name, recorded), hint)
                row[column] = name if name in recorded else spellings[0]
        except UsageError as error:
            raise draft.error(str(error), column) from None
    if row["valid_from"] and row["valid_until"] and row["valid_until"] < row["valid_from"]:
        raise draft.error(f"the {kind} would {ends} before it holds", "valid_until")
    return row


def covers(row: Mapping[str, Any], price: Mapping[str, Any]) -> bool:
    """Tell whether a discount or a credit is meant for a price, whatever the day."""
    return all(row.get(name) is None or row[name] == price[name] for name in _EQUAL) and all(
        row.get(name) is None or price[name] in row[name] for name in _AMONG
    )


def _amount(draft: Draft, column: str) -> float:
    number = draft.number(column, f"{column} must be a number")
    if not 0 <= number < float("inf"):
        raise draft.error(f"{column} must be 0 or more, found {shown(draft.values[column])}", column)
    return number


def make_table(store: Store, discounts: Sequence[Row]) -> None:
    """Make the table `book_discounts`."""
    kinds = {
        **dict.fromkeys(_AMONG, "VARCHAR[]"),
        **dict.fromkeys(_DAYS, "DATE"),
        **dict.fromkeys((*NUMBERS, "fraction"), "DOUBLE"),
    }
    columns = ", ".join(f"{name} {kinds.get(name, 'VARCHAR')}" for name in COLUMNS)
    store.execute(f"CREATE OR REPLACE TABLE book_discounts ({columns})")
    marks = ", ".join("?" * len(COLUMNS))
    for row in discounts:
        store.execute(f"INSERT INTO book_discounts VALUES ({marks})", [row.get(name) for name in COLUMNS])


def matching(prices: str, discounts: str) -> str:
    """Return the SQL that is true where a discount is meant for a price, whatever the day."""
    equal = {name: f"{discounts}.{name} = {prices}.{name}" for name in _EQUAL}
    among = {name: f"list_contains({discounts}.{name}, {prices}.{name})" for name in _AMONG}
    # what a discount does not name it covers whatever it is
    conditions = {**equal, **among}.items()
    return " AND ".join(f"coalesce({condition}, {discounts}.{name} IS NULL)" for name, condition in conditions)


def idle(store: Store, discounts: Sequence[Row]) -> Iterator[tuple[int, Row]]:
    """Yield the discounts that match no price of anybody, each with its place among them, counted from 1."""
    if not discounts:
        return
    make_table(store, discounts)
    query = f"""SELECT d.rowid AS place FROM book_discounts AS d
        WHERE NOT EXISTS (SELECT 1 FROM book_offers AS c WHERE c.book <> 'user' AND {matching("c", "d")})"""
    for row in store.fetch(query):
        yield row["place"] + 1, discounts[row["place"]]


def described(row: Mapping[str, Any]) -> str:
    """Say what a discount names.

    >>> described({"provider": "aws", "gpu": ["l4", "l40s"], "option": None, "fraction": 0.1})
    'provider aws, gpu l4 or l40s'
    """
    names_of_columns = {name: row.get(name) for name in COLUMNS[:6] if row.get(name)}
    return ", ".join(f"{name} {' or '.join(v) if isinstance(v, list) else v}" for name, v in names_of_columns.items())
