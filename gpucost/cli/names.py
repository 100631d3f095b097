"""The names that complete an option's value, from the shipped facts and your own book."""

# table of offers and the like -> what its aliases are called
_ALIASED = {"accelerators": "accelerator", "llms": "model", "systems": "system"}
# kind of name -> the tables that hold it and the column
_COLUMNS = {
    "providers": (("offers",), "provider"),
    "regions": (("offers",), "region"),
    "vendors": (("accelerators",), "vendor"),
    "families": (("llms",), "family"),
    "currencies": (("exchange_rates",), "currency"),
    "sources": (("model_sources", "price_sources"), "source_id"),
    "length_distributions": (("length_distributions",), "name"),
}


def names_of(table: str) -> list[str]:
    """Return the names of a kind: of accelerators, models, providers, regions, purchase options and so on."""
    from gpucost.answers import KINDS
    from gpucost.catalog.loader import ready_questions
    from gpucost.options import OPTIONS
    from gpucost.schemas import TABLES

    closed = {"options": OPTIONS, "tables": TABLES, "schemas": [*KINDS, *TABLES]}
    if table in closed:
        return list(closed[table])
    if table == "questions":
        return ["list", *ready_questions()]
    from gpucost.catalog import open_catalog

    catalog = open_catalog()
    tables, column = _COLUMNS.get(table, ((table,), "id"))
    if table in ("electricity", "grid_carbon"):
        items = [str(row["item"]) for row in catalog.rows("energy")]
        names = [item.removeprefix(f"{table}.") for item in items if item.startswith(table)]
    elif table == "tax regimes":
        names = sorted({row["regime"] for row in catalog.rows("tax_regimes")})
    elif table == "sites":
        from gpucost.ownership.plan import sites

        names = sites(row["item"] for row in catalog.rows("ownership"))
    else:
        names = [row[column] for name in tables for row in catalog.rows(name)]
    if table == "regions":
        names += catalog.regions.names
    if table in _ALIASED:
        names += [row["alias"] for row in catalog.rows("aliases") if row["kind"] == _ALIASED[table]]
    return sorted({str(name) for name in names if name})
