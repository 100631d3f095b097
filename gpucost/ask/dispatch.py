"""Asking a question: arguments under the names of today, and the catalog that they ask for."""

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

from gpucost.arguments import Needs, flag_of, renamed
from gpucost.arguments.kinds import TABLE
from gpucost.arguments.signature import Question, argument_of, described, question_of
from gpucost.arguments.vocabulary import AsOf, KnownAsOf
from gpucost.ask import QUESTIONS
from gpucost.errors import UsageError
from gpucost.gate import shown

if TYPE_CHECKING:
    from gpucost.answers.common import Frame
    from gpucost.catalog import Catalog

Asks = TypeVar("Asks", bound=Callable[..., Any])
DAYS = (argument_of("as_of", AsOf), argument_of("known_as_of", KnownAsOf))


def question(*, exclusive: Sequence[str] = (), needs: Sequence[Needs] = ()) -> Callable[[Asks], Asks]:
    """Make a function ask a question: old names of its arguments are read with a hint, unknown ones refused.

    Args:
        exclusive: Arguments that say the same thing, names with spaces between: at most one of each may be given.
        needs: What arguments need beside them.
    """

    def decorate(function: Asks) -> Asks:
        found = question_of(function, exclusive, needs)

        @wraps(function)
        def asked(*places: Any, **given: Any) -> Any:
            import warnings

            names = [argument.name for argument in found.arguments]
            if len(places) > found.places:
                raise TypeError(f"{found.name}() takes at most {found.places} arguments by place; name the others.")
            if twice := sorted(set(names[: len(places)]) & set(given)):
                raise TypeError(f"{found.name}() got {twice[0]} twice.")
            catalog = own_catalog(given.pop("catalog", None))
            said = _inputs_apart({**dict(zip(names, places, strict=False)), **given}, found)
            try:
                result, hints = answered(found, said, catalog)
            except RecursionError as error:
                raise UsageError(f"{found.name}: an argument holds itself, or is nested too deeply.") from error
            for hint in hints:
                warnings.warn(hint, DeprecationWarning, stacklevel=2)
            return result

        asked.__doc__ = described(found)
        vars(asked)["question"] = found
        return asked  # type: ignore[return-value]

    return decorate


def own_catalog(given: Any) -> "Catalog | None":
    """Return the catalog that was handed over, if one was; nothing else stands for one."""
    if given is None:
        return None
    from gpucost.catalog import Catalog

    if not isinstance(given, Catalog):
        raise UsageError(f"catalog: found {shown(given)}; gpucost.open_catalog() returns one.")
    return given


def _inputs_apart(given: dict[str, Any], found: Question) -> dict[str, Any]:
    """Gather inputs of a plan that were given by their own names, such as pue_ratio=1.2, under `set`."""
    known = {name for argument in found.arguments for name in (argument.name, *argument.old)}
    loose = {name: value for name, value in given.items() if name not in known and value is not None}
    if "set" not in known or not loose:
        return given
    kept = {name: value for name, value in given.items() if name not in loose}
    own = given.get("set")
    return {**kept, "set": {**loose, **({} if own is None else TABLE.read(own, "--set"))}}


def answered(
    asked: str | Question, given: Mapping[str, Any], catalog: "Catalog | None" = None
) -> tuple[Any, list[str]]:
    """Return the answer to a question and the hints about old names."""
    found = QUESTIONS[asked] if isinstance(asked, str) else asked
    said, hints = renamed(found, given)
    if catalog is not None:
        _of_its_days(catalog, said)
    missing = {one.name: None for one in found.arguments if one.required and one.name not in said}  # read says of what
    return found.ask(**said, **missing, catalog=catalog), hints


def answer(name: str, given: Mapping[str, Any], catalog: "Catalog | None" = None) -> Any:
    """Return the answer to a question that another one asks."""
    return answered(name, given, catalog)[0]


def _of_its_days(catalog: "Catalog", asked: Mapping[str, Any]) -> None:
    """Refuse a day beside a catalog that is seen from another one."""
    for argument in DAYS:
        if (said := asked.get(argument.name)) is None:
            continue
        day, own = argument.kind.read(said, flag_of(argument.name)), getattr(catalog, argument.name)
        if own is None or day != own.isoformat():
            seen = f"the catalog that was given has {own or 'none'}"
            raise UsageError(f"{argument.name}: {day}, but {seen}. Open it on that day, or leave one of them out.")


def opened(values: Mapping[str, Any], catalog: "Catalog | None") -> "Catalog":
    """Return the catalog that a question looks at: the one given, or that of the days asked for."""
    if catalog is None:
        from gpucost.catalog import open_catalog

        catalog = open_catalog(values["as_of"], values["known_as_of"])
    return catalog


def framed(catalog: "Catalog", request: Mapping[str, Any]) -> "Frame":
    """Return the keys that every answer starts with; of the arguments those that were said."""
    from gpucost.answers.common import frame

    said = {key: value for key, value in request.items() if value is not None}
    return frame(said, catalog.as_of, catalog.version)
