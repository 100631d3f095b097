"""The names that complete an option's value, from the shipped facts and your own book."""

# table or column of offers -> what its aliases are called
_ALIASED = {"accelerators": "accelerator", "llms": "model", "systems": "system"}
_COLUMNS = {
    "providers": ("provider", "offers"),
    "regions": ("region", "offers"),
    "vendors": ("vendor", "accelerators"),
    "families": ("family", "llms"),
}


def names_of(table: str) -> list[str]:
    """Return the names of a kind: of accelerators, models, providers, regions, purchase options and so on."""
    if table == "options":
        from gpucost.options import OPTIONS

        return list(OPTIONS)
    if table == "tables":
        from gpucost.schemas import TABLES

        return list(TABLES)
    if table == "schemas":
        from gpucost.answers import KINDS
        from gpucost.schemas import TABLES

        return [*KINDS, *TABLES]
    if table == "questions":
        from gpucost.catalog.paths import ready_questions

        return ["list", *ready_questions()]
    from gpucost.catalog import open_catalog

    catalog = open_catalog()
    if column := _COLUMNS.get(table):
        found = [row[column[0]] for row in catalog.rows(column[1])]
        found += catalog.regions.names if table == "regions" else []
    elif table in ("electricity", "grid_carbon"):
        found = [
            row["item"].removeprefix(f"{table}.") for row in catalog.rows("energy") if row["item"].startswith(table)
        ]
    elif table == "sites":
        from gpucost.ownership.regimes import sites

        found = sites(row["item"] for row in catalog.rows("ownership"))
    elif table == "currencies":
        found = [row["currency"] for row in catalog.rows("exchange_rates")]
    elif table == "sources":
        found = [row["source_id"] for name in ("model_sources", "price_sources") for row in catalog.rows(name)]
    elif table == "length_distributions":
        found = [row["name"] for row in catalog.rows(table)]
    else:
        found = [row["id"] for row in catalog.rows(table)]
        found += [row["alias"] for row in catalog.rows("aliases") if row["kind"] == _ALIASED[table]]
    return sorted({str(name) for name in found if name})
