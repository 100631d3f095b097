"""Names as people write them."""

import pytest

from gpucost.catalog import open_catalog
from gpucost.catalog.names import index
from gpucost.errors import AmbiguousNameError, UnknownNameError


@pytest.fixture(scope="module")
def catalog():
    return open_catalog("2026-11-01")


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        ("H100 SXM5 80GB", "h100-sxm5-80gb"),
        ("h100-sxm-80gb", "h100-sxm5-80gb"),
        ("h100-sxm", "h100-sxm5-80gb"),
        ("h100-sxm5-80gb", "h100-sxm5-80gb"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm5-80gb"),  # as nvidia-smi writes it
        ("a100-80gb-sxm", "a100-sxm4-80gb"),
        ("A100-80GB-SXM", "a100-sxm4-80gb"),
        ("NVIDIA A100-SXM4-40GB", "a100-sxm4-40gb"),
        ("a100 pcie 40 GB", "a100-pcie-40gb"),
        ("H100-94GB-NVL", "h100-nvl-94gb"),
        ("h100 pcie", "h100-pcie-80gb"),
        ("rtx4090", "rtx-4090"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("b200 192gb", "b200-sxm"),  # as marketed; 180 GB as sold
        ("AMD Instinct MI300X OAM", "mi300x"),
        ("v5e", "tpu-v5e"),
        ("gaudi 3", "gaudi3"),
        ("l40", "l40"),
        ("p5.48xlarge", "h100-sxm5-80gb"),
    ],
)
def test_accelerators(catalog, name, id_):
    assert catalog.accelerator(name).id == id_


def test_a_family_filters_over_its_variants_and_is_ambiguous_where_one_chip_is_needed(catalog):
    family = {found.id for found in catalog.accelerators("h100")}
    assert {"h100-sxm5-80gb", "h100-pcie-80gb", "h100-nvl-94gb"} <= family
    assert not family & {"gh200-96gb", "h200-sxm-141gb", "h20"}
    hopper = {found.id for found in catalog.accelerators("hopper")}
    assert family < hopper
    with pytest.raises(AmbiguousNameError, match="h100-nvl-94gb") as error:
        catalog.accelerator("hopper")
    assert set(error.value.candidates) == hopper
    assert error.value.exit_code == 2


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        ("h100", "h100-sxm5-80gb"),
        ("NVIDIA H100", "h100-sxm5-80gb"),
        ("A100 80 GB", "a100-sxm4-80gb"),
        ("a100-pcie", "a100-pcie-80gb"),
        ("H200", "h200-sxm-141gb"),
        ("v100", "v100-sxm2-32gb"),
        ("rtx pro 6000", "rtx-pro-6000-bw-server"),
    ],
)
def test_a_bare_name_means_its_flagship_where_one_chip_is_needed_and_the_others_are_named(catalog, name, id_):
    assert catalog.accelerator(name).id == id_
    (said,) = catalog.taken(name)
    assert said.startswith(f"{name} is taken as {id_}, not ")
    assert all(found.id in said for found in catalog.accelerators(name))


def test_a_flagship_is_one_of_those_that_its_name_filters_and_one_chip_needs_no_word(catalog):
    for name, id_ in catalog.aliases["flagship"].items():
        family = {found.id for found in catalog.accelerators(name)}
        assert id_ in family, name
        assert len(family) > 1, f"{name} means one accelerator: its row is of the kind accelerator"
    assert catalog.taken("h100-sxm", "l4", None) == []


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        ("meta-llama/Llama-3.1-8B", "llama-3.1-8b"),
        ("Meta-Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("llama3.1:8b", "llama-3.1-8b"),
        ("8b", "llama-3.1-8b"),
        ("70b", "llama-3.1-70b"),
        ("Qwen/Qwen3-32B", "qwen3-32b"),
        ("deepseek-ai/DeepSeek-V3", "deepseek-v3"),
        ("openai/gpt-oss-120b", "gpt-oss-120b"),
    ],
)
def test_models(catalog, name, id_):
    assert catalog.architecture(name).name == id_


@pytest.mark.parametrize(
    ("name", "id_"),
    [
        ("GLM-4.6", "glm-4.6"),
        ("Kimi-K2-0905", "kimi-k2"),
        ("DeepSeek-V3.1-Terminus", "deepseek-v3.1-terminus"),
        ("mistralai/Mistral-Small-3.2-24B-Instruct-2506", "mistral-small-3.2-24b"),
        ("Qwen2.5-Coder-32B", "qwen2.5-coder-32b"),
        ("DeepSeek-R1-Distill-Llama-70B", "deepseek-r1-distill-llama-70b"),
        ("command-r", "command-r"),
        ("Qwen3.5-27B", "qwen3.5-27b"),
        ("Gemma 4", "gemma-4-31b"),
    ],
)
def test_models_with_the_dimensions_of_a_preset_and_new_ones(catalog, name, id_):
    assert catalog.architecture(name).name == id_


@pytest.mark.parametrize("name", ["-5%", "=1+1", "7%", "5", "x" * 100_000, "-" * 5_000, "ab-" * 3_000])
def test_what_is_no_name_resolves_to_nothing(catalog, name):
    assert catalog.model_names.matches(name) == []
    assert catalog.accelerator_names.matches(name) == []
    with pytest.raises(UnknownNameError, match=r"config\.json") as error:
        catalog.architecture(name)
    assert len(str(error.value)) < 500


def test_a_family_of_chips_names_all_its_members(catalog):
    hopper = {found.id for found in catalog.accelerators("Hopper")}
    assert {"h100-sxm5-80gb", "h200-sxm-141gb"} <= hopper
    assert "b200-sxm" in {found.id for found in catalog.accelerators("Blackwell")}


def test_systems(catalog):
    assert catalog.system("p5.48xlarge").id == "aws-p5.48xlarge"
    assert catalog.system("DGX H100").id == "dgx-h100"
    assert catalog.default_system("h100-sxm5-80gb").gpus == 8


@pytest.mark.parametrize("kind", ["accelerator", "system", "architecture"])
def test_an_unknown_name_gets_the_nearest_and_where_to_look(catalog, kind):
    name = {"accelerator": "h10O-sxm", "system": "dgx-h1000", "architecture": "lama-3.1-8b"}[kind]
    with pytest.raises(UnknownNameError, match="gpucost") as error:
        getattr(catalog, kind)(name)
    assert error.value.candidates


def test_a_size_with_a_decimal_point_is_another_size(catalog):
    assert catalog.architecture("1.1b").name != catalog.architecture("11b").name
    assert catalog.architecture("11b").status == "synthesised"


def test_a_node_without_a_named_network_is_assumed_and_says_so(catalog):
    found = catalog.default_system("l40")
    assert found.status == "synthesised"
    assert found.scaleout_gb_per_s > 0
    assert "assumed" in found.fabric


def test_a_part_of_a_clouds_node_is_no_default(catalog):
    for accelerator, node in (("trainium1", "aws-trn1.32xlarge"), ("inferentia2", "aws-inf2.48xlarge")):
        assert catalog.default_system(accelerator).id == node


def test_an_offer_without_a_node_never_gets_a_network(catalog):
    nodes = {row["id"] for row in catalog.rows("systems")}
    offers = [
        offer
        for offer in catalog.offers()
        if not {offer.system_id, f"{offer.provider}-{offer.instance_type.lower()}"} & nodes
    ]
    assert len(offers) > 100
    assert all(catalog.system_for(offer).scaleout_gb_per_s is None for offer in offers)
    assert all(catalog.system_for(offer).gpus == offer.gpus for offer in offers)


OWN_PAIRS = [
    ("our-13b", "our_13b"), ("our:13b", "our/13b"), ("x(1)", "x1"), ("Our-13b", "our-13b"), ("模型甲", "模型乙"),
    ("модель-а", "модель-б"), ("größe-13b", "grße-13b"), ("ä13b", "13b"), ("a#b", "a|b"), ("a—b", "a\u200bb"),
    ("50%", "50$"), ("=a", "'a'"), ("कि", "का"),
]  # fmt: skip


@pytest.mark.parametrize("kind", ["accelerator", "system", "model"])
@pytest.mark.parametrize("pair", OWN_PAIRS)
def test_an_id_is_known_by_every_sign_of_it_whatever_the_others_are(kind, pair):
    known = index(kind, [{"id": id_} for id_ in pair], {"ab": pair[0]})
    assert [known.one(id_) for id_ in pair] == list(pair)
    assert [known.exact(id_) for id_ in pair] == list(pair)


@pytest.mark.parametrize(("pair", "name"), [(("our-13b", "our_13b"), "our 13b"), (("A#b", "a#B"), "a#b")])
def test_a_name_of_which_two_ids_differ_in_signs_or_case_alone_is_ambiguous(pair, name):
    known = index("model", [{"id": id_} for id_ in pair], {})
    with pytest.raises(AmbiguousNameError, match=" is ambiguous: ") as error:
        known.one(name)
    assert set(error.value.candidates) == set(pair)
    assert known.exact(name) is None


@pytest.mark.parametrize(
    ("id_", "name"),
    [
        ("Größe-13b", "GRÖSSE 13B"),
        ("größe-13b", "gro\u0308ße-13b"),
        ("卡甲", " 卡甲 "),
        ("модель-甲", "МОДЕЛЬ_甲"),
        ("A#b", "a#B"),
    ],
)
def test_an_id_in_any_letters_is_known_in_any_case_and_form(id_, name):
    assert index("accelerator", [{"id": id_}], {}).one(name) == id_


@pytest.mark.parametrize("name", ["é", "日本語", "модель", "ä13b", "_", "()"])
def test_a_name_in_other_letters_is_not_that_of_an_id_which_shares_none(name):
    with pytest.raises(UnknownNameError):
        index("model", [{"id": id_} for id_ in ("模型甲", "13b", "~")], {}).one(name)


def test_a_model_of_ones_own_may_be_called_as_a_file_is(tmp_path):
    book = tmp_path / "book.toml"
    book.write_text('[[model]]\nid = "our-13b.json"\nlike = "llama-2-13b"\n', "utf-8")
    assert open_catalog(book=book).architecture("our-13b.json").name == "our-13b.json"
