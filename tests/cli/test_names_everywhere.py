"""One resolver for every command: a name of a chip means the same wherever it is typed."""

import json

import pytest
from click.testing import CliRunner

import gpucost
from gpucost.cli import cli
from gpucost.errors import AmbiguousNameError, GpuCostError, UnknownNameError

LISTS = {
    "gpus": ("{}",), "data systems": ("{}",), "prices": ("--gpu", "{}"),
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
    found = CliRunner().invoke(cli, [*command.split(), *(part.format(name) for part in arguments)])
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
    assert "of HBM" in said


def test_the_nodes_of_a_family_are_those_that_hold_it():
    rows = json.loads(ask("data systems", ("{}", "--format", "json"), "Hopper")[1])["rows"]
    assert {row["accelerator_id"] for row in rows} >= {"h100-sxm5-80gb", "h200-sxm-141gb"}


MACHINES = {
    "p5.48xlarge": ("h100-sxm5-80gb", 8), "P5EN.48XL": ("h200-sxm-141gb", 8), "p5en": ("h200-sxm-141gb", 8),
    "a3-highgpu-8g": ("h100-sxm5-80gb", 8), "a3-mega": ("h100-sxm5-80gb", 8), "nd-h100-v5": ("h100-sxm5-80gb", 8),
    "Standard_ND96isr_H100_v5": ("h100-sxm5-80gb", 8), "nd96isr h100 v5": ("h100-sxm5-80gb", 8),
    "BM.GPU.H100.8": ("h100-sxm5-80gb", 8), "NV36ads_A10_v5": ("a10", 1), "p5": ("h100-sxm5-80gb", None),
}  # fmt: skip
ASKED = {
    "fit": {"model": "8b"}, "throughput": {"model": "1b"}, "roofline": {"model": "1b"}, "tco": {},
    "estimate": {"model": "8b", "tokens": "10b"}, "inference": {"model": "8b"},
    "audit": {"model": "1b", "fits": "serving"},
}  # fmt: skip


@pytest.fixture(scope="module")
def catalog():
    return gpucost.open_catalog()


@pytest.mark.parametrize(("name", "held"), MACHINES.items())
def test_a_machine_is_what_it_holds(catalog, name, held):
    machine = catalog.machine(name)
    assert (machine.accelerator_id, machine.gpus) == held
    assert catalog.accelerator(name).id == held[0]
    assert [chip.id for chip in catalog.accelerators(name)] == [held[0]]
    assert catalog.offers(name) == catalog.offers(held[0])


@pytest.mark.parametrize("name", ["p5.48xlarge", "nd-h100-v5"])
@pytest.mark.parametrize("question", ASKED)
def test_every_question_takes_a_machine_as_its_accelerator_and_says_so(catalog, question, name):
    of_machine = getattr(gpucost, question)(gpu=name, **ASKED[question], catalog=catalog).payload
    sentences = [*of_machine["warnings"], *of_machine.get("notes", ())]
    assert any(sentence.startswith(name) and "8 × h100-sxm5-80gb" in sentence for sentence in sentences)
    if question in ("fit", "throughput"):
        assert of_machine.get("gpus", of_machine["request"].get("gpus")) == 8
    if question == "estimate":
        of_chip = gpucost.estimate(gpu="h100-sxm5-80gb", **ASKED[question], catalog=catalog).payload
        assert of_machine["options"][0] == of_chip["options"][0]


def test_a_stated_count_wins_over_that_of_the_machine(catalog):
    assert gpucost.fit(model="8b", gpu="p5.48xlarge", gpus=16, catalog=catalog).payload["request"]["gpus"] == 16
    assert gpucost.throughput("1b", "p5.48xlarge", 1, catalog=catalog).payload["request"]["gpus"] == 1


def test_the_lists_take_machines_and_filter_by_their_accelerators():
    code, text = ask("prices", ("--gpu", "{}", "--format", "json"), "a3-highgpu-8g")
    assert code == 0, text
    assert all("h100-sxm5-80gb" in row["gpu"].split("|") for row in json.loads(text[text.index("{") :])["rows"])
    assert ask("gpus", ("{}",), "p5.48xlarge")[0] == 0


@pytest.mark.parametrize("name", ["a3", "NDv5"])
def test_a_family_of_machines_with_several_accelerators_is_ambiguous(catalog, name):
    with pytest.raises(AmbiguousNameError) as error:
        catalog.accelerators(name)
    holders = {catalog.system(id_).accelerator_id for id_ in error.value.candidates}
    assert {"h100-sxm5-80gb", "h200-sxm-141gb"} <= holders


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("h1000", "h100"), ("a1000", "a100"), ("hh100", "h100"), ("v10", "v100"), ("b20", "b200"),
        ("rtx 5900", "rtx-5090"), ("rtx4009", "rtx-4090"), ("mi305x", "mi350x"), ("p5.48xlrge", "aws-p5.48xlarge"),
        ("a3-higpu-8g", "gcp-a3-highgpu-8g"),
    ],
)  # fmt: skip
def test_the_nearest_name_comes_first(catalog, name, start):
    with pytest.raises(UnknownNameError) as error:
        catalog.accelerator(name)
    assert error.value.candidates[0].startswith(start)


@pytest.mark.parametrize("name", ["xyz", "banana", "standard"])
def test_a_word_that_names_nothing_is_unknown(catalog, name):
    with pytest.raises(UnknownNameError):
        catalog.accelerators(name)


def test_a_known_accelerator_is_resolved_without_a_look_at_systems_or_offers(monkeypatch):
    catalog = gpucost.open_catalog()
    monkeypatch.setattr(type(catalog), "offers", None)
    monkeypatch.setattr(type(catalog), "system_names", None)
    assert catalog.machine("h100-sxm") is None
    assert catalog.accelerator("h100").id == "h100-sxm5-80gb"
    assert catalog.taken("h200-sxm") == catalog.holding("h100,h200") == []
