"""Asking a question: arguments under the names of today, the catalog they ask for, the module that answers."""

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from gpucost.arguments.kinds import TABLE
from gpucost.errors import UsageError
from gpucost.gate import shown

if TYPE_CHECKING:
    from inspect import Signature

    from gpucost.answers.common import Frame
    from gpucost.arguments import Question
    from gpucost.catalog import Catalog


def question(name: str, signature: "Signature", meaning: str) -> Callable[..., Any]:
    """Return the function that asks a question; old names of arguments are read with a hint, unknown ones refused."""

    def asked(*places: Any, **given: Any) -> Any:
        import warnings

        from gpucost.arguments import QUESTIONS

        found = QUESTIONS[name]
        names = [argument.name for argument in found.arguments]
        if len(places) > found.places:
            raise TypeError(f"{name}() takes at most {found.places} arguments by place; name the others.")
        if twice := sorted(set(names[: len(places)]) & set(given)):
            raise TypeError(f"{name}() got {twice[0]} twice.")
        catalog = own_catalog(given.pop("catalog", None))
        said = _inputs_apart({**dict(zip(names, places, strict=False)), **given}, found)
        try:
            result, hints = answered(name, said, catalog)
        except RecursionError as error:
            raise UsageError(f"{name}: an argument holds itself, or is nested too deeply.") from error
        for hint in hints:
            warnings.warn(hint, DeprecationWarning, stacklevel=2)
        return result

    asked.__name__ = asked.__qualname__ = name
    asked.__module__, asked.__doc__ = "gpucost.api.questions", meaning
    vars(asked)["__signature__"] = signature
    return asked


def own_catalog(given: Any) -> "Catalog | None":
    """Return the catalog that was handed over, if one was; nothing else stands for one."""
    if given is None:
        return None
    from gpucost.catalog import Catalog

    if not isinstance(given, Catalog):
        raise UsageError(f"catalog: found {shown(given)}; gpucost.open_catalog() returns one.")
    return given


def _inputs_apart(given: dict[str, Any], found: "Question") -> dict[str, Any]:
    """Gather inputs of a plan that were given by their own names, such as pue_ratio=1.2, under `set`."""
    known = {name for argument in found.arguments for name in (argument.name, *argument.old)}
    loose = {name: value for name, value in given.items() if name not in known and value is not None}
    if "set" not in known or not loose:
        return given
    kept = {name: value for name, value in given.items() if name not in loose}
    own = given.get("set")
    return {**kept, "set": {**loose, **({} if own is None else TABLE.read(own, "--set"))}}


def answered(name: str, given: Mapping[str, Any], catalog: "Catalog | None" = None) -> tuple[Any, list[str]]:
    """Return the answer to a question and the hints about old names."""
    from gpucost.arguments import renamed

    asked, hints = renamed(name, given)
    if catalog is not None:
        _of_its_days(catalog, asked)
    return import_module(f"gpucost.api.{name}").answer(asked, catalog), hints


def _of_its_days(catalog: "Catalog", asked: Mapping[str, Any]) -> None:
    """Refuse a day beside a catalog that is seen from another one."""
    from gpucost.arguments import flag_of
    from gpucost.arguments.table import DATES

    for argument in DATES:
        if (said := asked.get(argument.name)) is None:
            continue
        day, own = argument.kind.read(said, flag_of(argument.name)), getattr(catalog, argument.name)
        if own is None or day != own.isoformat():
            seen = f"the catalog that was given has {own or 'none'}"
            raise UsageError(f"{argument.name}: {day}, but {seen}. Open it on that day, or leave one of them out.")


def opened(name: str, given: Mapping[str, Any], catalog: "Catalog | None") -> "tuple[dict[str, Any], Catalog]":
    """Return the arguments of a question as they are meant, and the catalog: the one given, or that of the days."""
    from gpucost.arguments import read

    values = read(name, given)
    if catalog is None:
        from gpucost.catalog import open_catalog

        catalog = open_catalog(values["as_of"], values["known_as_of"])
    return values, catalog


def framed(catalog: "Catalog", request: Mapping[str, Any]) -> "Frame":
    """Return the keys that every answer starts with; of the arguments those that were said."""
    from gpucost.answers.common import frame

    said = {key: value for key, value in request.items() if value is not None}
    return frame(said, catalog.as_of, catalog.version)
