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

Asks = TypeVar("Asks", bound=Callable[..., Any])
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
        def asked(*places: Any, **named: Any) -> Any:
            names = [argument.name for argument in asks.arguments]
            if len(places) > asks.places:
                raise TypeError(
                    f"{asks.name}() takes at most {asks.places} positional arguments; pass the others by name."
                )
            if twice := sorted(set(names[: len(places)]) & set(named)):
                raise TypeError(f"{asks.name}() got {twice[0]} twice.")
            catalog = own_catalog(named.pop("catalog", None))
            arguments = _inputs_apart({**dict(zip(names, places, strict=False)), **named}, asks)
            try:
                return answered(asks, arguments, catalog)
            except GpuCostError as error:  # its sentence names options, as the command line does
                if error.args and isinstance(error.args[0], str):
                    error.args = (python_names(error.args[0], names), *error.args[1:])
                raise
            except RecursionError as error:
                raise UsageError(f"{asks.name}: an argument contains itself or is nested too deeply.") from error

        asked.__doc__ = described(asks)
        vars(asked).update(question=asks, __signature__=plain_signature(function))
        return asked  # type: ignore[return-value]

    return decorate


def own_catalog(catalog: Any) -> "Catalog | None":
    """Return the catalog that was handed over, if one was; nothing else stands for one."""
    if catalog is None:
        return None
    from gpucost.catalog import Catalog

    if not isinstance(catalog, Catalog):
        raise UsageError(f"catalog: found {shown(catalog)}; gpucost.open_catalog() returns one.")
    return catalog


def _inputs_apart(stated: dict[str, Any], asks: Question) -> dict[str, Any]:
    """Gather inputs of a plan that were given by their own names, such as pue_ratio=1.2, under `set`."""
    names = {argument.name for argument in asks.arguments}
    loose = {name: value for name, value in stated.items() if name not in names and value is not None}
    if "set" not in names or not loose:
        return stated
    arguments = {name: value for name, value in stated.items() if name not in loose}
    inputs = stated.get("set")
    return {**arguments, "set": {**loose, **({} if inputs is None else TABLE.read(inputs, "--set"))}}


def answered(name_or_question: str | Question, stated: Mapping[str, Any], catalog: "Catalog | None" = None) -> Any:
    """Return the answer to a question, asked by what was said."""
    asks = QUESTIONS[name_or_question] if isinstance(name_or_question, str) else name_or_question
    arguments = known(asks, stated)
    if catalog is not None:
        _of_its_days(catalog, arguments)
    # an argument that must be given and was not: reading says so
    missing = {item.name: None for item in asks.arguments if item.required and item.name not in arguments}
    return asks.ask(**arguments, **missing, catalog=catalog)


@cache
def kinds_of_every_question() -> dict[str, Kind]:
    """Return the kinds of what any question takes, by name, and of what may name a file in a plan alone."""
    arguments = [argument for question_asked in QUESTIONS.values() for argument in question_asked.arguments]
    return {"currency_curve": FILE, "quote": RENTS, **kinds_of(arguments)}


def _of_its_days(catalog: "Catalog", arguments: Mapping[str, Any]) -> None:
    """Refuse a day beside a catalog that is seen from another one."""
    for argument in DAYS:
        if (day_stated := arguments.get(argument.name)) is None:
            continue
        day, own_day = argument.kind.read(day_stated, flag_of(argument.name)), getattr(catalog, argument.name)
        if own_day is None or day != own_day.isoformat():
            seen = f"the catalog that was given has {own_day or 'none'}"
            raise UsageError(f"{argument.name}: {day}, but {seen}. Open it on that day, or leave one of them out.")


def opened(values: Mapping[str, Any], catalog: "Catalog | None") -> "Catalog":
    """Return the catalog that a question looks at: the one given, or that of the days asked for."""
    if catalog is None:
        from gpucost.catalog.shared import shared_catalog

        catalog = shared_catalog(values["as_of"], values["known_as_of"])
    return catalog


def framed(catalog: "Catalog", request: Mapping[str, Any]) -> "Frame":
    """Return the keys that every answer starts with; of the arguments those that were said."""
    from gpucost.answers.common import frame

    stated = {key: value for key, value in request.items() if value is not None}
    return frame(stated, catalog.as_of, catalog.version)
