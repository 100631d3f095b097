"""Scenario files: read, checked, answered, written in every medium."""

import json
import tomllib
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from gpucost.answers.schema import answer_schema
from gpucost.arguments import giving_way, read
from gpucost.ask import QUESTIONS
from gpucost.cli import cli
from gpucost.errors import NothingFitsError, UsageError
from gpucost.library.report import report
from gpucost.library.scenario import ASKS, example, json_schema, make_scenario, parts, read_scenario
from gpucost.render.json import dumps
from tests.render import answers

SMALL = """
name = "Two questions"
[supply]
gpu = "h100-sxm"
[[training]]
name = "Pretrain"
model = "8b"
tokens = "20b"
gpus = 64
top = 3
[[ownership]]
name = "Own"
gpu = "h100-sxm"
gpus = 64
utilisation = "60%"
years = 3
rent = 2.4
"""


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("scenario") / "small.toml"
    path.write_text(SMALL, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("lines", "lead"),
    [
        ('model = "8b"\ngpu = "h100-sxm"\ngpus = 24\noption = "on_demand"', "bound by"),  # 512 over 12 groups
        ('model = "11.3b"\ngpu = "h100-sxm"', "bound by"),  # no preset
        ('model = "config.json"\ngpu = "h100-sxm"', "bound by"),
        ('model = "8b"\ngpu = "h100-sxm"\nmethod = "lora"\nsequence = 2048\nprecision = "fp8"', "bound by"),
    ],
)
def test_a_report_says_what_bounds_any_run_that_is_answered(tmp_path: Path, lines: str, lead: str) -> None:
    (tmp_path / "config.json").write_text(
        '{"model_type": "llama", "hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16,'
        ' "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 128256, "tie_word_embeddings": true}',
        "utf-8",
    )
    lines = lines.replace("config.json", str(tmp_path / "config.json"))
    (tmp_path / "s.toml").write_text(f'[[training]]\nname = "Run"\ntokens = "20b"\n{lines}\n', "utf-8")
    part = report(tmp_path / "s.toml").payload["parts"][0]["payload"]
    best, found = part["options"][0], part["roofline"]
    assert lead in found["lead"]
    step_s = part["workload"]["global_batch"] * part["workload"]["sequence_tokens"] / best["gpus"]
    assert found["step_s"] == pytest.approx(step_s / best["tokens_per_s_per_gpu"], rel=1e-6)


def test_the_example_is_valid_toml_and_a_valid_scenario() -> None:
    scenario = make_scenario(tomllib.loads(example()))
    assert [part.kind for part in scenario.parts] == ["training", "serving", "ownership"]


def test_every_key_of_the_example_is_accepted_when_uncommented() -> None:
    lines = [
        line.removeprefix("# ") if line.startswith("# ") and (" = " in line or line.startswith("# [[")) else line
        for line in example().splitlines()
    ]
    content = tomllib.loads("\n".join(lines))
    assert {key: len(content[key][0]) for key in parts()} == {key: len(fields) for key, fields in parts().items()}
    for kind, question in ASKS.items():  # what excludes each other cannot stand together
        for entry in content[kind]:
            for names in QUESTIONS[question].exclusive:
                for name in names[1:]:
                    entry.pop(name)
            entry |= {"method": "lora"} if "lora_rank" in entry else {}
            entry |= {"draft_tokens": 4, "acceptance": 0.7} if "acceptance" in entry else {}
        content[kind] = [giving_way(partial(asked, question), one, lambda _: True) for one in content[kind]]
    make_scenario(content)


def asked(question: str, entry: dict[str, Any]) -> dict[str, Any]:
    read(QUESTIONS[question], **{key: value for key, value in entry.items() if key != "name"})
    return entry


def test_what_parts_share_gives_way_to_what_one_says() -> None:
    owned = {"name": "own", "gpu": "h100-sxm", "gpus": 8, "rent": 2.35}
    content = {"supply": {"provider": "lambda", "region": "us"}, "ownership": [owned]}
    assert not {"provider", "region"} & set(make_scenario(content).parts[0].arguments)
    with pytest.raises(UsageError, match=r"without a price by (--rent|rent=)"):
        make_scenario({"ownership": [{**owned, "provider": "lambda"}]})


def test_the_schema_accepts_the_example_and_refuses_a_misspelt_key() -> None:
    jsonschema = pytest.importorskip("jsonschema")
    content = tomllib.loads(example())
    jsonschema.validate(content, json_schema())
    content["training"][0]["tokns"] = "1b"
    with pytest.raises(jsonschema.ValidationError, match="tokns"):
        jsonschema.validate(content, json_schema())


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (
            '[[training]]\nname = "a"\nmodel = "8b"\ntokns = "1b"',
            r"training\[1\].tokns: no such key. Did you mean tokens",
        ),
        ('[[training]]\nname = "a"\nmodel = "8b"', r"training\[1\].tokens: this key is required"),
        ('[[training]]\nname = "a"\nmodel = 8\ntokens = "1b"', r"training\[1\].model: .*8"),
        ('[[trainig]]\nname = "a"', "trainig: no such key. Did you mean training"),
        ("name = 'x'", "[[training]]"),
        ("name = ", "not valid TOML"),
        ('[[training]]\nname = "a"\nmodel = "8b"\ntokens = "1b"\n' * 2, "two parts are called 'a'"),
    ],
)
def test_a_bad_file_gets_one_sentence(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "bad.toml"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(UsageError, match=words) as caught:
        read_scenario(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_file_names_the_command_that_makes_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="gpucost init"):
        read_scenario(tmp_path / "none.toml")


def test_supply_filters_reach_the_parts_that_know_them_and_yield_to_their_own() -> None:
    content = tomllib.loads(SMALL)
    content["supply"]["provider"] = "lambda"
    content["training"][0]["provider"] = "crusoe"
    content["ownership"][0].pop("rent", None)
    training, ownership = make_scenario(content).parts
    assert (training.arguments["gpu"], training.arguments["provider"]) == ("h100-sxm", "crusoe")
    assert ownership.arguments["provider"] == "lambda"
    assert "gpu" not in content["training"][0]


def test_paths_are_relative_to_the_scenario(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text('[[training]]\nname = "a"\nmodel = "own/config.json"\ntokens = "1b"', encoding="utf-8")
    assert read_scenario(path).parts[0].arguments["model"] == str(tmp_path / "own/config.json")


@pytest.mark.parametrize(
    ("part", "line", "key", "found"),
    [
        ("ownership", 'rent = "q.csv"', "rent", "d/q.csv"),
        ("ownership", 'rent = ["q.XLSX", "a=2/h"]', "rent", ["d/q.XLSX", "a=2/h"]),
        ("ownership", 'rent = {"q.csv" = "", usage = "2/h"}', "rent", {"d/q.csv": "", "usage": "2/h"}),
        ("ownership", 'rent_curve = "u.txt"', "rent_curve", "d/u.txt"),
        ("ownership", 'use_path = "u.csv"', "use_path", "d/u.csv"),
        ("ownership", 'use_path = "ramp 20% over 6 months"', "use_path", "ramp 20% over 6 months"),
        ("ownership", 'plan = "p.TOML"', "plan", "d/p.TOML"),
        ("ownership", 'set = ["currency_curve=c.csv"]', "set", {"currency_curve": "d/c.csv"}),
        ("ownership", '[ownership.plan.a]\nuse_path = "u.csv"\ncurrency_curve = "c"', "plan",
         {"a": {"use_path": "d/u.csv", "currency_curve": "d/c"}}),
        ("mix", 'demand = "d.CSV"', "demand", "d/d.CSV"),
        ("serving", 'profile = "p.txt"\nmodel = "8b"', "profile", "d/p.txt"),
        ("serving", 'profile = "office"\nmodel = "8b"', "profile", "office"),
        ("serving", 'model = "C.JSON"', "model", "d/C.JSON"),
        ("serving", 'model = "mine"', "model", "d/mine"),
        ("serving", 'model = "8b"', "model", "8b"),
        ("comparison", 'first = "now"\nsecond = "other.toml#now"', "second", "d/other.toml#now"),
        ("comparison", 'first = "now"\nsecond = "other.toml#now"', "first", "d/now"),  # no earlier part
    ],
)  # fmt: skip
def test_every_file_of_a_scenario_is_looked_for_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, part: str, line: str, key: str, found: object
) -> None:
    common = {"ownership": 'gpu = "h100-sxm"\ngpus = 8\n', "serving": "prompt_tokens = 9\noutput_tokens = 9\n"}
    text = f'[[{part}]]\nname = "a"\n{common.get(part, "")}{line}\n'
    for name in ("d/s.toml", "d/mine/config.json", "8b/config.json"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    assert read_scenario("d/s.toml").parts[0].arguments[key] == found


@pytest.mark.slow
def test_a_report_comes_in_every_format_and_is_the_same_again_from_json(small: Path) -> None:
    runner = CliRunner()
    for suffix in ("xlsx", "html", "md", "json", "txt"):
        made = runner.invoke(cli, ["report", str(small), "-o", str(small.with_suffix(f".{suffix}"))])
        assert made.exit_code == 0, made.output
        assert small.with_suffix(f".{suffix}").stat().st_size > 1000
    payload = json.loads(small.with_suffix(".json").read_text(encoding="utf-8"))
    assert [part["name"] for part in payload["parts"]] == ["Pretrain", "Own"]
    again = report(small.with_suffix(".json"))
    assert again.to_markdown().splitlines()[:5] == small.with_suffix(".md").read_text(encoding="utf-8").splitlines()[:5]


def test_a_part_that_cannot_be_answered_is_named(tmp_path: Path) -> None:
    content = tomllib.loads(SMALL)
    content["training"][0] |= {"model": "405b", "gpus": 1, "gpu": "rtx-4090"}
    with pytest.raises(NothingFitsError, match="training part 'Pretrain'"):
        report(content)


def test_an_unknown_suffix_is_refused_before_any_work(small: Path) -> None:
    made = CliRunner().invoke(cli, ["report", str(small), "-o", "report.docx"])
    assert isinstance(made.exception, UsageError)
    assert ".xlsx" in str(made.exception)


def test_init_does_not_overwrite_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "scenario.toml"
    assert CliRunner().invoke(cli, ["init", str(path)]).exit_code == 0
    path.write_text("mine", encoding="utf-8")
    refused = CliRunner().invoke(cli, ["init", str(path)])
    assert isinstance(refused.exception, UsageError)
    assert path.read_text(encoding="utf-8") == "mine"


def test_schema_prints_json_for_scenarios_and_tables() -> None:
    for what in ("scenario", "estimate", "report", "offers"):
        made = CliRunner().invoke(cli, ["data", "schema", what])
        assert json.loads(made.output)["type"] == "object"
    unknown = CliRunner().invoke(cli, ["data", "schema", "ofers"])
    assert "offers" in str(unknown.exception)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["estimate", "inference", "tco"])
def test_answers_are_what_their_schema_says(kind: str) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    made = {"estimate": answers.training, "inference": answers.serving, "tco": answers.ownership}[kind]()
    saved = json.loads(dumps(made))
    schema = answer_schema(kind)
    jsonschema.validate(saved, schema)
    assert saved.keys() >= set(schema["required"])
    for key in schema["required"][::10]:
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({name: value for name, value in saved.items() if name != key}, schema)


def test_a_report_is_what_its_schema_says(small: Path) -> None:
    jsonschema = pytest.importorskip("jsonschema")
    saved, schema = json.loads(dumps(report(small).to_dict())), answer_schema("scenario")
    jsonschema.validate(saved, schema)
