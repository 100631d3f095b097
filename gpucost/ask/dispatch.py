"""Asking a question: its arguments, and the catalog that they ask for."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, wraps
from typing import TYPE_CHECKING, Any, TypeVar

from gpucost.arguments import Needs, flag_of, known
from gpucost.arguments.files import kinds_of
from gpucost.arguments.kinds import FILE, RENTS, TABLE, Kind
from gpucost.arguments.signature import Question, argument_of, described, plain_signature, python_names, question_of
from gpucost.arguments.vocabulary import AsOf, KnownAsOf
from gpucost.ask import QUESTIONS
from gpucost.errors import GpuCostError, UsageError
from gpucost.gate import shown

if TYPE_CHECKING:
    from gpucost.answers.common import Frame
    from gpucost.catalog import Catalog

Asks = TypeVar("Asks", bound=Callable[..., Any])  # keeps the signature of a question for whom checks types
# what every question takes to choose its catalog
DAYS = (argument_of("as_of", AsOf), argument_of("known_as_of", KnownAsOf))


def question(*, exclusive: Sequence[str] = (), needs: Sequence[Needs] = ()) -> Callable[[Asks], Asks]:
    """Make a function ask a question: arguments that it does not take are refused.

    Args:
        exclusive: Arguments that say the same thing, names with spaces between: at most one of each may be given.
        needs: What arguments need beside them.
    """

    def decorate(function: Asks) -> Asks:
        asks = question_of(function, exclusive, needs)

        @wraps(function)
        def ask(*by_place: Any, **by_name: Any) -> Any:
            names = [argument.name for argument in asks.arguments]
            if len(by_place) > asks.places:
                raise TypeError(
                    f"{asks.name}() takes at most {asks.places} positional arguments; pass the others by name."
                )
            if twice := sorted(set(names[: len(by_place)]) & set(by_name)):
                raise TypeError(f"{asks.name}() got {twice[0]} twice.")
            catalog = own_catalog(by_name.pop("catalog", None))
            arguments = {**dict(zip(names, by_place, strict=False)), **by_name}
            # inputs of a plan may be given by their own names, such as pue_ratio=1.2: they join those under `set`
            loose = {name: value for name, value in arguments.items() if name not in names and value is not None}
            if "set" in names and loose:
                arguments = {name: value for name, value in arguments.items() if name not in loose}
                inputs = arguments.get("set")
                arguments["set"] = {**loose, **({} if inputs is None else TABLE.read(inputs, "--set"))}
            try:
                return answered(asks, arguments, catalog)
            except GpuCostError as error:  # its sentence names options, as the command line does
                if error.args and isinstance(error.args[0], str):
                    error.args = (python_names(error.args[0], names), *error.args[1:])
                raise
            except RecursionError as error:  # a list that holds itself is read until the stack ends
                raise UsageError(f"{asks.name}: an argument contains itself or is nested too deeply.") from error

        ask.__doc__ = described(asks)
        vars(ask).update(question=asks, __signature__=plain_signature(function))
        return ask  # type: ignore[return-value]

    return decorate


def own_catalog(catalog: Any) -> "Catalog | None":
    """Return the catalog that was handed over, if one was; nothing else stands for one."""
    if catalog is None:
        return None
    from gpucost.catalog import Catalog

    if not isinstance(catalog, Catalog):
        raise UsageError(f"catalog: found {shown(catalog)}; gpucost.open_catalog() returns one.")
    return catalog


def answered(name_or_question: str | Question, stated: Mapping[str, Any], catalog: "Catalog | None" = None) -> Any:
    """Return the answer to a question, asked by what was said."""
    asks = QUESTIONS[name_or_question] if isinstance(name_or_question, str) else name_or_question
    arguments = known(asks, stated)
    # a day beside a catalog that is seen from another one would be ignored
    if catalog is not None:
        for argument in DAYS:
            if argument.name not in arguments:
                continue
            day = argument.kind.read(arguments[argument.name], flag_of(argument.name))
            catalog_day = getattr(catalog, argument.name)
            if catalog_day is None or day != catalog_day.isoformat():
                seen = f"the catalog that was given has {catalog_day or 'none'}"
                raise UsageError(f"{argument.name}: {day}, but {seen}. Open it on that day, or leave one of them out.")
    # an argument that must be given and was not: reading says so
    missing = {item.name: None for item in asks.arguments if item.required and item.name not in arguments}
    return asks.ask(**arguments, **missing, catalog=catalog)


@cache
def kinds_of_every_question() -> dict[str, Kind]:
    """Return the kinds of what any question takes, by name, and of what may name a file in a plan alone."""
    arguments = [argument for asks in QUESTIONS.values() for argument in asks.arguments]
    # a plan's curve of exchange rates and its quotes are no arguments of any question
    return {"currency_curve": FILE, "quote": RENTS, **kinds_of(arguments)}


def opened(values: Mapping[str, Any], catalog: "Catalog | None") -> "Catalog":
    """Return the catalog that a question looks at: the one given, or that of the days asked for."""
    if catalog is None:
        from gpucost.catalog.shared import shared_catalog

        # shared by the questions of one process: reading the facts takes longer than most answers
        catalog = shared_catalog(values["as_of"], values["known_as_of"])
    return catalog


def framed(catalog: "Catalog", request: Mapping[str, Any]) -> "Frame":
    """Return the keys that every answer starts with; of the arguments those that were said."""
    from gpucost.answers.common import frame

    stated = {key: value for key, value in request.items() if value is not None}
    return frame(stated, catalog.as_of, catalog.version)
