"""The facts as data frames: prices, accelerators, models, sources, the index of standard jobs, and any query."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas

    from gpucost.catalog import Catalog

# Only what each function needs is imported in it: `import gpucost` must not wait for pandas and the engines.
Day = str | None
Names = str | Sequence[str] | None


def prices(
    gpu: Names = None,
    *,
    provider: Names = None,
    region: Names = None,
    option: Names = None,
    by: str | None = None,
    as_of: Day = None,
    catalog: "Catalog | None" = None,
) -> "pandas.DataFrame":
    """Return the prices of a day, cheapest GPU-hour first, a row for each offer.

    Parameters
    ----------
    gpu, provider, region, option
        Only these: a name, names with commas, or a list. Default: all.
    by : {"provider", "gpu", "region", "option"}, optional
        A row for each of them instead, with its cheapest USD per GPU-hour by purchase option.
    as_of
        Day whose prices count, such as "2026-03-01". Default: today.
    catalog
        A catalog that is already open.
    """
    from gpucost.arguments.kinds import one_of
    from gpucost.catalog.prices import by_column, current

    facts = _facts(catalog, as_of)
    rows, _ = current(facts, facts.offer_filter(gpu, provider, region, option), None)
    if by is not None:
        return _frame(by_column(rows, one_of("provider", "gpu", "region", "option").read(by, "by=")))
    return _frame(rows)


def gpus(name: Names = None, *, catalog: "Catalog | None" = None) -> "pandas.DataFrame":
    """Return accelerators with dense peaks (TFLOP/s), memory (GiB), links (GB/s, one direction) and power (W).

    Parameters
    ----------
    name
        GPUs or families, such as "h100" or ["h100-sxm", "b200"]. Default: all.
    catalog
        A catalog that is already open.
    """
    facts = _facts(catalog)
    ids = facts.offer_filter(name, None, None, None)["gpu"]
    return _frame([row for row in facts.rows("accelerators") if ids is None or row["id"] in ids])


def models(name: str | None = None, *, catalog: "Catalog | None" = None) -> "pandas.DataFrame":
    """Return model architectures with their parameters, counted and published, cache and weights in bytes.

    Parameters
    ----------
    name
        A preset, a family, a size such as "11b", or the path of a config.json. Default: all presets.
    catalog
        A catalog that is already open.
    """
    from gpucost.catalog.models import model_rows

    facts = _facts(catalog)
    return _frame(model_rows(facts, facts.architectures(name)))


def sources(table: str | None = None, *, catalog: "Catalog | None" = None) -> "pandas.DataFrame":
    """Return who published what, where and when, and how many rows lean on it.

    Parameters
    ----------
    table
        Only the sources of one table, such as "offers". Default: all.
    catalog
        A catalog that is already open.
    """
    from gpucost.catalog.shipped import source_rows

    # of the facts as they are laid down, with the rows that lean on each source
    return _frame(source_rows(_facts(catalog).laid, table))


def price_index(*, catalog: "Catalog | None" = None) -> "pandas.DataFrame":
    """Return what three standard jobs cost in USD in each month since 2022, by kind of seller and option.

    Parameters
    ----------
    catalog
        A catalog that is already open.
    """
    from gpucost.library.price_index import index_rows

    return _frame(index_rows(_facts(catalog)))


def sql(query: str, *, as_of: Day = None, catalog: "Catalog | None" = None) -> "pandas.DataFrame":
    """Return the rows of one read-only SELECT over the facts.

    Parameters
    ----------
    query
        A SELECT in DuckDB's SQL; "show tables" lists what there is.
    as_of
        Day from which the facts are seen. Default: today.
    catalog
        A catalog that is already open.
    """
    return _frame(_facts(catalog, as_of).ask(query).rows)


def _facts(catalog: "Catalog | None", as_of: Day = None) -> "Catalog":
    from gpucost.arguments import read_list
    from gpucost.ask.dispatch import DAYS, own_catalog
    from gpucost.catalog.shared import shared_catalog

    # a day is read as a question reads it; dates before the first price are refused there
    return own_catalog(catalog) or shared_catalog(*read_list(DAYS, {} if as_of is None else {"as_of": as_of}).values())


def _frame(rows: Sequence[Mapping[str, Any]]) -> "pandas.DataFrame":
    import pandas

    return pandas.DataFrame(list(rows))
