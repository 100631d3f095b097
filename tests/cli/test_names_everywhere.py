"""One resolver for every command: a name of a chip means the same wherever it is typed."""

import json

import pytest
from click.testing import CliRunner

from gpucost.cli import cli
from gpucost.errors import GpuCostError

LISTS = {
    "gpus": ("{}",), "systems": ("{}",), "prices": ("--gpu", "{}"),
    "estimate": ("--model", "8b", "--tokens", "10b", "--gpu", "{}"), "inference": ("--model", "8b", "--gpu", "{}"),
}  # fmt: skip
ONE_CHIP = {
    "fit": ("--model", "8b", "--gpu", "{}"), "throughput": ("--model", "1b", "--gpu", "{}"), "tco": ("--gpu", "{}"),
    "roofline": ("--model", "1b", "--gpu", "{}"),
}  # fmt: skip
CHIPS = ("NVIDIA H200 SXM 141GB", "b200 192gb")
FAMILIES = {"Hopper": "h200-sxm-141gb", "Ampere": "a100-sxm4-80gb"}
FLAGSHIPS = {"H100": "h100-sxm5-80gb", "a100": "a100-sxm4-80gb"}


def ask(command, arguments, name):
    """Return the exit code and the text of a command."""
    found = CliRunner().invoke(cli, [command, *(part.format(name) for part in arguments)])
    if isinstance(found.exception, GpuCostError):
        return found.exception.exit_code, str(found.exception)
    return found.exit_code, found.output


@pytest.mark.parametrize("name", CHIPS)
@pytest.mark.parametrize("command", [*LISTS, *ONE_CHIP])
def test_a_chip_resolves_in_every_command(command, name):
    code, said = ask(command, (LISTS | ONE_CHIP)[command], name)
    assert code == 0, said


@pytest.mark.parametrize("family", [*FAMILIES, *FLAGSHIPS])
@pytest.mark.parametrize("command", LISTS)
def test_a_family_filters_where_many_are_listed(command, family):
    code, said = ask(command, LISTS[command], family)
    assert code == 0, said


@pytest.mark.parametrize(("family", "member"), FAMILIES.items())
@pytest.mark.parametrize("command", ONE_CHIP)
def test_a_family_is_ambiguous_where_one_chip_is_asked_and_its_members_are_named(command, family, member):
    code, said = ask(command, ONE_CHIP[command], family)
    assert code == 2
    assert "ambiguous" in said
    assert member in said


@pytest.mark.parametrize(("name", "flagship"), FLAGSHIPS.items())
@pytest.mark.parametrize("command", ONE_CHIP)
def test_a_bare_name_means_its_flagship_where_one_chip_is_asked_and_the_answer_says_so(command, name, flagship):
    found, named = (
        json.loads(ask(command, (*ONE_CHIP[command], "--format", "json"), gpu)[1]) for gpu in (name, flagship)
    )
    assert found["warnings"][0].startswith(f"{name} is taken as {flagship}, not ")
    assert found["lead"] == named["lead"]


@pytest.mark.parametrize("command", ["gpus", "prices", "estimate", "fit", "throughput", "tco", "inference"])
def test_an_unlisted_chip_gets_its_sentence_everywhere(command):
    code, said = ask(command, (LISTS | ONE_CHIP)[command], "Cerebras CS-3")
    assert code == 2
    assert "bandwidth of HBM" in said


def test_the_nodes_of_a_family_are_those_that_hold_it():
    rows = json.loads(ask("systems", ("{}", "--format", "json"), "Hopper")[1])["rows"]
    assert {row["accelerator_id"] for row in rows} >= {"h100-sxm5-80gb", "h200-sxm-141gb"}
