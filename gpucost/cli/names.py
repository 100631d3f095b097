"""The names that complete an option's value, from the shipped facts and your own book."""

# table or column of offers -> what its aliases are called
_ALIASED = {"accelerators": "accelerator", "llms": "model", "systems": "system"}
_COLUMNS = {"providers": "provider", "regions": "region"}


def names_of(table: str) -> list[str]:
    """Return the names of a kind: of accelerators, models, providers, regions, purchase options and so on."""
    if table == "options":
        from gpucost.options import OPTIONS

        return list(OPTIONS)
    from gpucost.catalog import open_catalog

    catalog = open_catalog()
    if column := _COLUMNS.get(table):
        found = [row[column] for row in catalog.query(f"SELECT DISTINCT {column} FROM offers", "offers")]
        found += catalog.regions.names if table == "regions" else []
    elif table in ("electricity", "grid_carbon"):
        found = [
            row["item"].removeprefix(f"{table}.") for row in catalog.rows("energy") if row["item"].startswith(table)
        ]
    elif table == "currencies":
        found = [row["currency"] for row in catalog.rows("exchange_rates")]
    elif table == "length_distributions":
        found = [row["name"] for row in catalog.rows(table)]
    else:
        found = [row["id"] for row in catalog.rows(table)]
        found += [row["alias"] for row in catalog.rows("aliases") if row["kind"] == _ALIASED[table]]
    return sorted({str(name) for name in found if name})
