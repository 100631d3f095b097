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

# How an answer is written -> what that means, and the questions whose answers can; none: all
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
_IMPOSSIBLE = 5  # the exit code of an audit


def command_of(name: str) -> click.Command:
    """Return the command that asks a question."""
    question, ways = QUESTIONS[name], ways_of_writing(name)
    parameters = [parameter_of(argument) for argument in question.arguments if not argument.library_only]
    names = {parameter.name for parameter in parameters}
    parameters += [*ways, *([version_option()] if "as_of" in names else [])]
    parameters += output_parameters(taken=names)
    examples = "\n".join(_broken(f"gpucost {line}") for line in question.examples)

    def ask(format_: str | None, fields: str | None, output_file: str | None, **stated: Any) -> None:
        from gpucost.ask.dispatch import answered

        keep_memory()
        switches = {str(way.name): stated.pop(str(way.name)) for way in ways}
        endings = (".toml",) if switches.get("print_plan") else ()
        out = Output(format_, fields, output_file, endings)
        stated = {key: value for key, value in stated.items() if value is not None and value != ()}
        if name == "estimate":
            stated["with_facts"] = out.format == "json"  # only a saved answer can be asked again
        with working("thinking"):
            # a setting was not said with this question in mind: it gives way where it contradicts what was typed
            result = giving_way(partial(answered, name), stated, is_setting)
        check = switches.pop("check", False)
        out.result(result, **switches)
        if check:
            # over the network, so only once the answer stands there
            from gpucost.catalog.shared import shared_catalog
            from gpucost.refresh.check import FIRST_OFFERS, checked

            with working("asking sellers"):
                offers = result.payload["options"][:FIRST_OFFERS]
                prices = checked(shared_catalog(result.payload["as_of"]), offers)
            for price in prices:
                say(price.sentence)
        if result.exit_code == _IMPOSSIBLE:
            from gpucost.errors import CheckFailedError

            raise CheckFailedError("the claim is impossible.")
        click.get_current_context().exit(result.exit_code)

    return GroupedCommand(name, params=parameters, callback=ask, help=f"{question.help}\n\n\b\n{examples}")


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
