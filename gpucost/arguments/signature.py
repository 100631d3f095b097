"""Signatures: what a function takes, said once in its annotations, is what commands, files, schemas and agents offer.

An annotation says how an argument is typed for a caller in Python, and beside it how its values are read and in which
unit (a `Kind`), what it is for (a sentence), and what else there is to say (`detail`):

    deadline: Annotated[str | float | None, DEADLINE, "Longest run.", detail(usual="30d", example="30d")] = None

Of two annotations laid over each other, such as `Annotated[Gpus | None, "Number of GPUs."]`, the outer one speaks last.

What several functions take alike is a `TypedDict`, which stands behind the other arguments as `**name:
Unpack[Filters]`: each of its keys is an argument that is given by its name, and need not be.
"""

import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from inspect import CO_VARARGS, CO_VARKEYWORDS, Parameter, Signature, signature
from typing import Any, NamedTuple, Union

from gpucost.arguments.kinds import CLOSED_WORDS, Kind

COLUMNS = "@columns"  # among what an argument needs: that any is a column of values


class Detail(NamedTuple):
    """What is to be said of an argument beside its kind and its sentence; None says nothing."""

    usual: str | None = None
    example: Any = None
    field: str | None = None
    column: bool | None = None
    place: bool | None = None
    library_only: bool | None = None

    def __hash__(self) -> int:  # the example may be a dictionary
        return hash((self.usual, self.field))

    def __repr__(self) -> str:
        """Return what is said, as it was written."""
        stated = (f"{name}={value!r}" for name, value in self._asdict().items() if value is not None)
        return f"detail({', '.join(stated)})"


detail = Detail
COLUMN, PLACE, LIBRARY_ONLY = Detail(column=True), Detail(place=True), Detail(library_only=True)


class Group(dict[str, Any]):
    """Arguments that several functions take together, by name: such a parameter gets them as a dictionary."""

    __hash__ = object.__hash__  # type: ignore[assignment] # typing keeps annotations in a cache by their hash


def shared(function: Callable[..., Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the name of the parameter that takes shared arguments, and how each is declared; none where there is none.

    >>> from typing import Annotated, TypedDict, Unpack
    >>> from gpucost.arguments.kinds import USD
    >>> class Filters(TypedDict, total=False):
    ...     budget: Annotated[float, USD, "Most to spend."]
    >>> def ask(top: int = 3, **filters: Unpack[Filters]) -> None: ...
    >>> shared(ask)[0], list(shared(ask)[1])
    ('filters', ['budget'])
    """
    # read from the code object, here and below: inspect.signature is slow, and every start declares all questions
    code = function.__code__
    if not code.co_flags & CO_VARKEYWORDS:
        return "", {}
    # parameters by place and by name come first among the variables, then *args, then **kwargs
    name = code.co_varnames[code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & CO_VARARGS)]
    declared = next(iter(getattr(function.__annotations__.get(name), "__args__", ())), None)
    return name, getattr(declared, "__annotations__", {})


class Argument(NamedTuple):
    """One argument of a question or a command."""

    name: str  # in the library and in scenario files; the command writes it --with-hyphens
    kind: Kind
    help: str = ""
    default: Any = None
    usual: str = ""  # what holds where nothing is said and the default depends on the rest
    field: str = ""  # its name with its unit, as requests and saved answers have it, where that differs
    required: bool = False
    column: bool = False  # may be a list or an array instead: a case each
    example: Any = None
    library_only: bool = False
    place: bool = False  # the command takes it without an option's name


class Condition(NamedTuple):
    """That another argument is given, or is one of some words; or, where it `holds` not, that it is neither."""

    name: str
    holds: bool = True
    words: tuple[str, ...] = ()


class Needs(NamedTuple):
    """Arguments that mean something only where one of some conditions holds: elsewhere they would be ignored."""

    names: tuple[str, ...]
    one_of: tuple[Condition, ...]
    words: str  # the condition as a person says it; none: as the conditions say it


def given(name: str, *choices: str) -> Condition:
    """Another argument is given; with words, it is one of them."""
    return Condition(name, True, choices)


def absent(name: str, *choices: str) -> Condition:
    """Another argument is not given; with words, it is none of them."""
    return Condition(name, False, choices)


def needs(names: str, *one_of: Condition, words: str = "") -> Needs:
    """Say what arguments need beside them, so that none is ignored without a word."""
    return Needs(tuple(names.split()), one_of, words)


class Question(NamedTuple):
    """A question that the library, a command and, for some, a part of a scenario ask."""

    name: str
    arguments: tuple[Argument, ...]
    help: str
    examples: tuple[str, ...]
    places: int  # how many arguments may be given by place in the library
    exclusive: tuple[tuple[str, ...], ...]  # say the same thing: at most one of each
    needs: tuple[Needs, ...]
    ask: Callable[..., Any]  # the function as it was written

    @property
    def fields(self) -> dict[str, Argument]:
        """The arguments by their names with units."""
        return {argument.field or argument.name: argument for argument in self.arguments}


def question_of(function: Callable[..., Any], exclusive: Sequence[str], rules: Sequence[Needs]) -> Question:
    """Return what a function asks: its arguments from its signature, its help and examples from its docstring."""
    # the first paragraph says what the function returns; a command's help says what it is for
    _, *paragraphs = (" ".join(part.split()) for part in (function.__doc__ or "").split("\n\n"))
    # one paragraph may hold several examples, each after its own "$ gpucost "
    examples = [line.strip() for part in paragraphs if part.startswith("$ ") for line in part.split("$ gpucost ")]
    help_text = "\n\n".join(part for part in paragraphs if part and not part.startswith("$ "))
    places = function.__code__.co_argcount
    same = tuple(tuple(names.split()) for names in exclusive)
    return Question(
        function.__name__,
        arguments_of(function),
        help_text,
        tuple(filter(None, examples)),
        places,
        same,
        tuple(rules),
        function,
    )


def arguments_of(function: Callable[..., Any]) -> tuple[Argument, ...]:
    """Return the arguments that the signature of a function declares, in its order.

    >>> from typing import Annotated
    >>> from gpucost.arguments.kinds import USD
    >>> def ask(budget: Annotated[float, USD, "Most to spend."], *, top: int = 3) -> None: ...
    >>> arguments_of(ask)[0][:3]
    ('budget', USD, 'Most to spend.')
    """
    # the arguments are those of the function as it was written, not of a wrapper
    while hasattr(function, "__wrapped__"):
        function = function.__wrapped__
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    # the defaults belong to the last of the parameters by place
    first_with_default = code.co_argcount - len(function.__defaults__ or ())
    defaults = dict(zip(names[first_with_default:], function.__defaults__ or (), strict=False))
    defaults |= function.__kwdefaults__ or {}
    arguments = [
        argument
        for name in names
        for argument in _declared(name, function.__annotations__.get(name), defaults.get(name), name not in defaults)
    ]
    for name, declared in shared(function)[1].items():
        arguments += _declared(name, declared, _no_default(declared), False)
    return tuple(arguments)


def _no_default(declared: Any) -> bool | None:
    """Return what holds of a shared argument that is not given: a flag is not set, anything else is not said."""
    return False if getattr(declared, "__origin__", None) is bool else None


def argument_of(name: str, annotation: Any, default: Any = None, required: bool = False) -> Argument:
    """Return the argument that an annotation declares."""
    return next(_declared(name, annotation, default, required))


def _declared(name: str, annotation: Any, default: Any, required: bool) -> Iterator[Argument]:
    """Yield the argument of a parameter, those of a group, or none where the annotation declares nothing."""
    kind, help_, details = None, "", {}
    for entry in _metadata(annotation):
        if isinstance(entry, Group):
            for inner, declared in entry.items():
                yield from _declared(inner, declared, None, False)
        elif isinstance(entry, Kind):
            kind = entry
        elif isinstance(entry, str):
            help_ = entry
        elif isinstance(entry, Detail):
            details.update({key: value for key, value in entry._asdict().items() if value is not None})
    if kind is not None:
        yield Argument(name, kind, help_, default, required=required, **details)


def _metadata(annotation: Any) -> Iterator[Any]:
    """Yield what annotations hold beside the type, the inner ones first."""
    metadata = getattr(annotation, "__metadata__", None)
    # of annotations laid over each other the outer speaks last, so the inner is read first
    if metadata is not None:
        yield from _metadata(annotation.__origin__)
        yield from metadata
        return
    # X | None: what is declared stands inside the union
    for inner in getattr(annotation, "__args__", ()):
        if hasattr(inner, "__metadata__"):
            yield from _metadata(inner)


def described(question: Question) -> str:
    """Return the docstring of a question's function in NumPy's form: of each argument meaning, default and unit."""
    first, *paragraphs = (question.ask.__doc__ or "").rstrip().split("\n\n")
    names = {argument.name for argument in question.arguments}
    lines = ["    Parameters", "    ----------"]
    for argument in question.arguments:
        choices = argument.kind.choices
        values = f"{{{', '.join(choices)}}}" if choices else argument.kind.metavar
        default = argument.usual or ("" if argument.default is None else f"{argument.default}")
        usual = f", default {default}" if default else ", optional"
        lines += [
            f"    {argument.name} : {values}{'' if argument.required else usual}",
            f"        {python_names(argument.help, names)}",
        ]
    lines += [
        "    catalog : Catalog, optional",
        "        One that is already open; else one is opened for the days asked for.",
    ]
    return "\n\n".join([first, *paragraphs, "\n".join(lines) + "\n    "])


# An option, and after "=" or a space its value: a text in quotation marks, or what goes on until the sentence does.
_NAMED = re.compile(r"--([a-z][a-z0-9-]*[a-z0-9])(?:([= ])('[^']*'|[^\s;:()]*[^\s,;:().!?]))?")
_NUMBER = re.compile(r"-?\d+(,\d{3})*(\.\d+)?")


def python_names(sentence: str, names: Collection[str]) -> str:
    """Return a sentence in which arguments are called, and their values written, as Python does it.

    >>> python_names("Give --max-age, not --quiet.", {"max_age"})
    'Give max_age=, not --quiet.'
    >>> python_names("None with --gpu=h100-sxm. Try --gpus 1,024, --gpu h100 or --gpu NAME.", {"gpu", "gpus"})
    'None with gpu="h100-sxm". Try gpus=1024, gpu="h100" or gpu=NAME.'
    >>> python_names("--gpus needs --gpu, --pool h100-sxm=8.", {"gpu", "gpus", "pool"})
    'gpus= needs gpu=, pool={"h100-sxm": 8}.'
    """

    def renamed(option: re.Match[str]) -> str:
        name, between, value = option[1].replace("-", "_"), option[2] or "", option[3] or ""
        if name not in names:
            # a name that Python does not take, such as --quiet, stays as the command has it
            return option[0]
        key, entry, inner = value.partition("=")
        # a value, not the next word of the sentence: --gpu=h100, --pool h100=8, 'a text', NAME, a word of a closed list
        stated = between == "=" or entry or value[:1] == "'" or value[:1].isupper() or value in CLOSED_WORDS
        if not (stated or any(map(str.isdigit, value))):
            return f"{name}={between}{value}"  # the sentence goes on
        return f'{name}={{"{key}": {_written(inner)}}}' if entry else f"{name}={_written(value)}"

    return _NAMED.sub(renamed, sentence) if "--" in sentence else sentence


def _written(value: str) -> str:
    """Write a value as Python does; what only stands for one, such as NAME, as it is."""
    if value.isupper() or _NUMBER.fullmatch(value):
        return value.replace(",", "")
    quoted = value.strip("'")
    return f'"{quoted}"'


def plain_signature(function: Callable[..., Any]) -> Signature:
    """Return a signature with the types alone, as `help` shows it; the docstring has what is declared beside them.

    >>> from typing import Annotated
    >>> from gpucost.arguments.kinds import USD
    >>> def ask(budget: Annotated[float, USD, "Most to spend."] | None = None) -> None: ...
    >>> print(plain_signature(ask))
    (budget: Optional[float] = None) -> None
    """
    declared = signature(function)
    plain = [
        item.replace(annotation=_plain(item.annotation))
        for item in declared.parameters.values()
        if item.kind is not Parameter.VAR_KEYWORD
    ]
    at = len(plain) - ("catalog" in declared.parameters)  # a catalog stands last
    plain[at:at] = [
        Parameter(name, Parameter.KEYWORD_ONLY, default=_no_default(annotation), annotation=_plain(annotation))
        for name, annotation in shared(function)[1].items()
    ]
    return declared.replace(parameters=plain)


def _plain(annotation: Any) -> Any:
    """Return an annotation without its metadata."""
    if hasattr(annotation, "__metadata__"):
        return _plain(annotation.__origin__)
    inner = getattr(annotation, "__args__", ())
    if not any(hasattr(part, "__metadata__") for part in inner):
        return annotation
    return Union[tuple(map(_plain, inner))]  # noqa: UP007 # of as many types as there are: `|` joins two


def by_field(question: Question, values: Mapping[str, Any]) -> dict[str, Any]:
    """Return values under their names with units, as the request behind a question uses them."""
    return {
        argument.field or argument.name: values[argument.name]
        for argument in question.arguments
        if argument.name in values
    }
