"""The commands that ask a question: built from its signature, answered by the library, written by one rule."""

from functools import partial
from typing import Any

import click

from gpucost.arguments import giving_way
from gpucost.ask import QUESTIONS
from gpucost.cli.help import GroupedCommand
from gpucost.cli.messages import say, working
from gpucost.cli.options import Output, is_setting, output_parameters, parameter_of, version_option
from gpucost.heap import keep_memory

# how an answer is written -> what that means, and the questions whose answers can; none: all
_WAYS: dict[str, tuple[str, tuple[str, ...]]] = {
    "--explain": (
        "Explain the figures: formulas, numbers, sources.",
        ("estimate", "inference", "tco", "fit"),
    ),
    "--lines": ("CSV: one row per line of each bill.", ("estimate", "inference")),
    "--launch": (
        "Print the command that starts the first offer: torchrun or vllm serve.",
        ("estimate", "inference"),
    ),
    "--print-plan": ("Print the effective inputs as a plan file.", ("tco",)),
    "--check": (
        "Then read the prices of the first offers again from their sellers, over the network.",
        ("estimate", "inference"),
    ),
    "--details": ("Show the full answer, not just one screen.", ()),
    "--quiet": ("Print the answer in one line.", ()),
}
_EXAMPLE_COLUMNS = 78  # help stands two columns in


def command_of(name: str) -> click.Command:
    """Return the command that asks a question."""
    question, more = QUESTIONS[name], ways_of_writing(name)
    parameters = [parameter_of(argument) for argument in question.arguments if not argument.library_only]
    names = {parameter.name for parameter in parameters}
    parameters += [*more, *([version_option()] if "as_of" in names else [])]
    parameters += output_parameters(taken=names)
    examples = "\n".join(_broken(f"gpucost {line}") for line in question.examples)
    return GroupedCommand(
        name,
        params=parameters,
        callback=_callback(name, [str(one.name) for one in more]),
        help=f"{question.help}\n\n\b\n{examples}",
    )


def ways_of_writing(name: str) -> list[click.Option]:
    """Return the options that say how the answer to a question is written."""
    ways = [(flag, text) for flag, (text, questions) in _WAYS.items() if not questions or name in questions]
    return [click.Option([flag], is_flag=True, help=text) for flag, text in ways]


def _broken(line: str) -> str:
    """Break a command before an option, so that its lines fit a help of 80 columns."""
    if len(line) <= _EXAMPLE_COLUMNS:
        return line
    break_at = line.rindex(" --", 0, _EXAMPLE_COLUMNS - 1)
    return f"{line[:break_at]} \\\n{_broken(f'  {line[break_at + 1 :]}')}"


def say_checked(payload: Any) -> None:
    """Say what the sellers of an answer's first offers ask today."""
    from gpucost.catalog.shared import shared_catalog
    from gpucost.refresh.check import FIRST_OFFERS, checked

    with working("asking sellers"):
        results = checked(shared_catalog(payload["as_of"]), payload["options"][:FIRST_OFFERS])
    for result in results:
        say(result.sentence)


def _callback(name: str, more: list[str]) -> Any:
    def ask(format_: str | None, fields: str | None, output_file: str | None, **stated: Any) -> None:
        from gpucost.ask.dispatch import answered

        keep_memory()
        ways = {one: stated.pop(one) for one in more}
        endings = (".toml",) if ways.get("print_plan") else ()
        out = Output(format_, fields, output_file, endings)
        stated = {key: value for key, value in stated.items() if value is not None and value != ()}
        if name == "estimate":
            stated["with_facts"] = out.format == "json"
        with working("thinking"):
            result = giving_way(partial(answered, name), stated, is_setting)
        check = ways.pop("check", False)
        out.result(result, **ways)
        if check:
            say_checked(result.payload)
        if result.exit_code == 5:
            from gpucost.errors import CheckFailedError

            raise CheckFailedError("the claim is impossible.")
        click.get_current_context().exit(result.exit_code)

    return ask
