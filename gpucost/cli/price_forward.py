"""`gpucost prices forward`: what a GPU-hour may cost in years to come, and how such forecasts did in the past."""

from typing import TYPE_CHECKING, Annotated, Any

import click

from gpucost.arguments import vocabulary as v
from gpucost.arguments.kinds import FLAG
from gpucost.cli.options import Output, output_options, signature_options

if TYPE_CHECKING:
    from gpucost.catalog import Catalog


@click.command(name="forward")
@signature_options
@output_options
def forward(
    catalog: "Catalog",
    out: Output,
    backtest: Annotated[bool, FLAG, "Show how past forecasts did."] = False,
    resale: Annotated[bool, FLAG, "Show what cards sell for as they age."] = False,
    gpu: v.Gpu | None = None,
    option: v.Option | None = None,
) -> None:
    """What a GPU-hour may cost in 12, 24 and 36 months: P10 to P90, by kind of seller and option.

    From what the prices of other chips did at the age that this one has now, as far as it was known on the day of the
    question (--as-of). P50 is today's price: nothing came nearer in the backtest (--backtest). No plan leans on this
    unless you give it such a price.

    \b
    gpucost prices forward --gpu h100-sxm
    gpucost prices forward --gpu h100-sxm --option spot
    gpucost prices forward --gpu h100-sxm --resale
    gpucost prices forward --backtest
    """
    from gpucost.errors import PriceMissingError
    from gpucost.market import forward as model

    if backtest and resale:
        raise click.UsageError("--backtest and --resale are two answers: ask for one.")
    asked = catalog.offer_filter(gpu, None, None, option)
    gpus = asked["gpu"]
    if backtest:
        if gpus is not None or option is not None:
            raise click.UsageError("--backtest is over every chip and option: leave --gpu and --option out.")
        out.rows(model.backtest_rows(catalog), "prices forward backtest", catalog)
        return
    if resale:
        rows = model.resale_rows(catalog, gpus)
        count = len(model.cards_of(catalog.rows("accelerators")))
        said = [
            f"From {count} cards whose street price is dated, each seen once: no later listings hold these figures to"
            " account. Memory is short in 2026, and some cards sell above their launch price."
        ]
        if not rows:
            raise PriceMissingError(_NOTHING.format("dated street price and launch price"))
        out.rows(rows, "prices forward resale", catalog, said)
        return
    wanted = _months_of(asked["option"])
    rows = [row for row in model.forward_prices(catalog, gpus) if wanted is None or row["option"] in wanted]
    if not rows:
        raise PriceMissingError(_NOTHING.format(f"price of the last {model.STALE_DAYS} days"))
    out.rows(rows, "prices forward", catalog)


_NOTHING = "no chip that you named has a {}. Name another, or leave --gpu and --option out."


def _months_of(options: Any) -> set[str] | None:
    """Return what the monthly prices call options; commitments of every length where one is asked for."""
    from gpucost.catalog.price_months import COMMITTED, OF_OPTION
    from gpucost.options import OPTIONS

    if options is None:
        return None
    families = {OPTIONS[option].family for option in options}
    return {OF_OPTION[family] for family in families & set(OF_OPTION)} | (
        set(COMMITTED.values()) if "committed" in families else set()
    )


COMMANDS = (forward,)
