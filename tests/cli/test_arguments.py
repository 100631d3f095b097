"""One table of arguments: command, library, scenario file and schema take the same names, values and refusals."""

import ast
import csv
import enum
import importlib
import inspect
import io
import json
import os
import re
import subprocess
import sys
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import click
import numpy as np
import pytest
from click.testing import CliRunner

import gpucost
from gpucost.arguments import Question, flag_of, kinds, known, read, read_stated, reading
from gpucost.arguments.kinds import FLAG
from gpucost.arguments.signature import COLUMNS, argument_of, detail, python_names
from gpucost.ask import QUESTIONS, dispatch
from gpucost.cli import cli
from gpucost.cli.options import SEVERAL
from gpucost.errors import ContradictionError, GpuCostError, UsageError
from gpucost.library.scenario import ASKS, json_schema, make_scenario, parts
from tests.commands import in_process
from tests.rules import for_each

BASE = {
    "estimate": {"model": "8b", "tokens": "100b"},
    "inference": {"model": "8b"},
    "tco": {"gpu": "h100-sxm", "gpus": 8},
    "mix": {},
    "fit": {"model": "8b", "gpu": "h100-sxm"},
    "throughput": {"model": "8b", "gpu": "h100-sxm"},
    "roofline": {"gpu": "h100-sxm"},
    "audit": {},
    "choose": {"model": "8b"},
    "reconcile": {"invoice": "invoice.csv"},
    "compare": {},
    "commit": {"usage": "usage.csv"},
}
assert BASE.keys() == QUESTIONS.keys(), "BASE has one way to ask each question"
PLACES = ("demand", "first", "second", "invoice", "usage")  # written without an option's name
ESTIMATE = ["estimate", "--model", "8b", "--tokens", "100b"]
KIND_OF = {question: kind for kind, question in ASKS.items()}
ARGUMENTS = [
    (question, argument)
    for question, found in QUESTIONS.items()
    for argument in found.arguments
    if not argument.library_only
]
GIVEN = {  # a value for each kind of argument that has no example and no closed list
    "system": "hgx-h100", "matmul": "8x8x8", "attention": "8x8x8", "profile": "office", "weights_gb": 16, "days": 8,
    "software_year": 2024.5, "sharding": 3, "fits": "serving",
}  # fmt: skip


def value_of(argument):
    """Return a value that is not the default."""
    if argument.kind is FLAG:
        return not argument.default
    if argument.kind.choices:
        return next(word for word in reversed(argument.kind.choices) if word != argument.default)
    given = GIVEN.get(argument.name, argument.example)
    usual = {"SHARE": "30%", "N": 4}
    return given if given is not None else usual.get(argument.kind.metavar, "2")


def base(question, argument):
    """Return what a question cannot do without; a second place needs a first."""
    return {"first": "a.json"} if argument.name == "second" else BASE[question]


@pytest.fixture
def heard(monkeypatch):
    """Hear what reaches the one door behind command and library, in place of an answer."""
    found = []

    class Heard(Exception):
        pass

    def listen(asked, given, catalog=None):
        question = asked if isinstance(asked, Question) else QUESTIONS[asked]
        found.append((question.name, read(question, **known(question, given))))
        raise Heard

    monkeypatch.setattr(dispatch, "answered", listen)
    monkeypatch.setattr(reading, "refuse_idle", lambda *_: None)  # arguments are given one by one

    def ask(call):
        found.clear()
        try:
            result = call()
        except Heard:
            return found[0]
        raised = getattr(result, "exception", None)
        if isinstance(raised, GpuCostError):
            raise raised
        assert isinstance(raised, Heard), getattr(result, "output", result)
        return found[0]

    return ask


def command_line(question, given):
    """Write arguments as a person types them."""
    words = [question]
    for name, value in given.items():
        if name in PLACES:
            words.append(str(value))
        elif isinstance(value, bool):
            words.append(flag_of(name) if value else f"--no-{flag_of(name)[2:]}")
        elif isinstance(value, dict):
            words += [part for key, entry in value.items() for part in (flag_of(name), f"{key}={entry}")]
        else:
            words += [flag_of(name), str(value)]
    return words


def same(value):
    return {key: str(entry) for key, entry in value.items()} if isinstance(value, dict) else value


@pytest.mark.slow
@for_each("question, argument", ARGUMENTS, lambda question, argument: f"{question} {argument.name}")
def test_command_library_and_scenario_read_an_argument_alike(question, argument, heard):
    given = {**base(question, argument), argument.name: value_of(argument)}
    name, by_command = heard(lambda: CliRunner().invoke(cli, command_line(question, given)))
    _, by_library = heard(lambda: getattr(gpucost, question)(**given))
    assert name == question
    assert same(by_command[argument.name]) == same(by_library[argument.name]) is not None
    by_command.pop("with_facts", None), by_library.pop("with_facts", None)  # a command embeds facts in JSON only
    assert by_command | {"set": None} == by_library | {"set": None}
    if question in KIND_OF:
        kind = KIND_OF[question]
        part = make_scenario({kind: [{"name": "a", **plain(kind, given)}]}).parts[0]
        assert read(QUESTIONS[question], **part.arguments)[argument.name] == by_library[argument.name]
        assert argument.name in json_schema()["properties"][kind]["items"]["properties"]


def plain(kind, given):
    return {"gpu": "h100-sxm", "gpus": 8, **given} if kind == "ownership" else given


class Chosen(str, enum.Enum):  # noqa: UP042 # whose text is its name
    SPOT = "spot"


@pytest.mark.parametrize(
    ("kind", "given", "read"),
    [
        (kinds.OPTION, Chosen.SPOT, "spot"),
        (kinds.DATE, np.datetime64("2026-12-30"), "2026-12-30"),
        (kinds.DATE, np.datetime64("2026-12-30T01:00", "ns"), "2026-12-30"),
        (kinds.DEADLINE, np.datetime64("2026-12-30"), date(2026, 12, 30)),
        (kinds.USD, Decimal("2.5"), 2.5),
        (kinds.whole(), Fraction(16, 2), 8),
    ],
)
def test_values_of_the_usual_packages_are_read_as_what_they_mean(kind, given, read):
    assert kind.read(given, "it") == read


class Asked(str, enum.Enum):  # noqa: UP042
    SHARE = "35%"
    DATA = "2TB"
    WAIT = "500ms"


@pytest.mark.parametrize(
    ("question", "name", "given", "text"),
    [
        ("estimate", "mfu", Asked.SHARE, "35%"),
        ("estimate", "dataset", Asked.DATA, "2TB"),
        ("estimate", "dataset", np.array("2TB"), "2TB"),
        ("inference", "ttft", Asked.WAIT, "500ms"),
    ],
)
def test_a_text_of_an_enumeration_or_of_numpy_is_read_as_a_text(question, name, given, text):
    assert read_stated(QUESTIONS[question], **{name: given}) == read_stated(QUESTIONS[question], **{name: text})


@pytest.mark.parametrize(
    ("kind", "given", "said"),
    [
        (kinds.USD, Decimal("NaN"), "positive"),
        (kinds.USD, Fraction(10**400), "number"),
        (kinds.RUN_TOKENS, float, "cannot read <class 'float'>. Write a number"),
        (kinds.whole(), np.float64, "number"),
        (kinds.DEADLINE, int, "number"),
        (kinds.DATE, np.datetime64("NaT"), "Write YYYY-MM-DD"),
        (kinds.DEMAND, iter([1, 2]), "list of"),
    ],
)
def test_values_of_the_usual_packages_that_mean_nothing_are_refused(kind, given, said):
    with pytest.raises(UsageError, match=said):
        kind.read(given, "it")


@pytest.mark.slow
@for_each("question, argument", ARGUMENTS, lambda question, argument: f"{question} {argument.name}")
def test_the_same_bad_value_is_refused_in_the_same_sentence(question, argument, heard):
    if argument.kind is FLAG or _takes_any(argument):
        pytest.skip("any text may be a name that the catalog knows")
    bad = "\x00 no such"
    given = {**base(question, argument), argument.name: bad}
    said = []
    for call in (
        lambda: CliRunner().invoke(cli, command_line(question, given)),
        lambda: getattr(gpucost, question)(**given),
    ):
        with pytest.raises(UsageError) as caught:
            heard(call)
        said.append(str(caught.value))
    if question in KIND_OF:
        kind = KIND_OF[question]
        with pytest.raises(UsageError) as caught:
            make_scenario({kind: [{"name": "a", **plain(kind, given)}]})
        said.append(str(caught.value).rpartition(f"{kind}[1].{argument.name}: ")[2])
    names = {item.name for item in QUESTIONS[question].arguments}
    typed, called, *written = said
    assert {*written} <= {typed}, said
    assert called == python_names(typed, names)
    assert (typed.partition(":")[0], called.partition(":")[0]) == (flag_of(argument.name), f"{argument.name}=")


def _takes_any(argument):
    try:
        argument.kind.read("\x00 no such", "--x")
    except UsageError:
        return False
    return True


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_signature_declares_each_argument_with_its_type_and_a_sentence(question):
    signature = inspect.signature(getattr(gpucost, question))
    found = QUESTIONS[question].arguments
    assert [*signature.parameters] == [*(item.name for item in found), "catalog"]
    for item in found:
        parameter = signature.parameters[item.name]
        assert parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)
        assert parameter.default == (parameter.empty if item.required else item.default)
        assert item.help.endswith((".", "…"))
        help_ = re.escape(python_names(item.help, {*signature.parameters}))
        assert re.search(rf"^    {item.name} : \S.*\n        {help_}$", getattr(gpucost, question).__doc__, re.M)
        assert "Annotated" not in str(parameter)
    assert signature.return_annotation is not signature.empty


@pytest.mark.parametrize("question", QUESTIONS)
def test_rules_speak_of_arguments_that_there_are(question):
    found = QUESTIONS[question]
    known = {item.name for item in found.arguments} | {COLUMNS}
    for need in found.needs:
        assert {*need.names, *(other.name for other in need.one_of)} <= known
    assert {name for names in found.exclusive for name in names} <= known


def test_asking_one_question_builds_no_other():
    code = (
        "import sys, gpucost; gpucost.estimate;"
        "print([name for name in sys.modules if name.startswith(('gpucost.ask.', 'gpucost.library.'))])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=True)
    assert ast.literal_eval(done.stdout) == ["gpucost.ask.dispatch", "gpucost.ask.result", "gpucost.ask.estimate"]


def test_of_two_annotations_the_outer_one_speaks_last():
    inner = Annotated[int, kinds.USD, "One.", detail(example=1, field="a_usd", usual="none")]
    found = argument_of("a", Annotated[inner | None, "Other.", detail(usual="b", field="")])
    assert (found.kind, found.help, found.example, found.field, found.usual) == (kinds.USD, "Other.", 1, "", "b")


@pytest.mark.parametrize(
    ("question", "given"),
    [
        ("estimate", {"model": "8b", "tokens": "1b", "gpu": ["h100", "b200"], "option": ["on_demand", "reserved"]}),
        ("inference", {"model": "8b", "gpu": ["h100", "l40s"], "provider": ("aws", "gcp")}),
        ("choose", {"model": "8b", "gpu": ["h100", "l40s"], "region": ["eu", "us"]}),
        ("compare", {"model": ["8b", "70b"], "gpu": ["h100", "b200"]}),
    ],
)
def test_a_list_says_what_a_text_with_commas_says(question, given):
    text = {name: ",".join(value) if isinstance(value, (list, tuple)) else value for name, value in given.items()}
    assert read(QUESTIONS[question], **given) == read(QUESTIONS[question], **text)


@pytest.mark.parametrize("gpu", [[], [""], [8], ["h100", None]])
def test_a_list_of_no_names_is_refused(gpu):
    with pytest.raises(UsageError, match=r"^--gpu: "):
        read(QUESTIONS["estimate"], model="8b", tokens="1b", gpu=gpu)


def test_editors_see_every_public_name_with_the_types_of_its_own_module():
    (typed,) = [node for node in ast.parse(Path(gpucost.__file__).read_text()).body if isinstance(node, ast.If)]
    seen = {node.names[0].name: node.module for node in typed.body if node.module.startswith("gpucost.")}
    assert {**seen, "__version__": ""}.keys() == {*gpucost.__all__}
    for name, module in seen.items():
        assert getattr(importlib.import_module(module), name) is getattr(gpucost, name)


@pytest.mark.parametrize("question", QUESTIONS)
def test_defaults_are_values_that_their_own_kind_reads(question):
    for argument in QUESTIONS[question].arguments:
        if argument.default is not None:
            assert argument.kind.read(argument.default, argument.name) is not None
        if argument.example is not None:
            assert argument.kind.read(argument.example, argument.name) is not None


@pytest.mark.parametrize("name", ["as_of", "known_as_of"])
def test_a_day_beside_a_catalog_of_another_day_is_refused(name):
    catalog = gpucost.open_catalog("2026-11-20", "2026-11-20")
    asked = {"model": "8b", "gpu": "h100-sxm", "gpus": 8, "catalog": catalog}
    with pytest.raises(UsageError, match=f"^{name}: 2025-01-01, but the catalog that was given has 2026-11-20"):
        gpucost.throughput(**asked, **{name: "2025-01-01"})
    assert gpucost.throughput(**asked, **{name: date(2026, 11, 20)}).payload["as_of"] == "2026-11-20"
    with pytest.raises(UsageError, match="catalog that was given has none"):
        gpucost.throughput(**{**asked, "catalog": gpucost.open_catalog()}, known_as_of="2025-01-01")


def test_lists_in_the_table_are_those_of_the_physics():
    from gpucost import words
    from gpucost.physics import columns
    from gpucost.physics.serving.cases import CACHE_BYTES, FORMATS
    from gpucost.physics.serving.efficiency import ENGINE_NAMES
    from gpucost.physics.training.memory_recipe import OFFLOADS, OPTIMIZERS, STYLES
    from gpucost.workloads.training import SOFTWARE

    def choices(question, name):
        return next(item for item in QUESTIONS[question].arguments if item.name == name).kind.choices

    assert set(choices("throughput", "precision")) == set(columns.PRECISIONS)
    assert choices("fit", "optimizer") == tuple(OPTIMIZERS)
    assert choices("fit", "style") == STYLES
    assert choices("fit", "offload") == OFFLOADS
    assert choices("fit", "recompute") == ("auto", *columns.RECOMPUTES)
    assert words.METHODS == columns.METHODS
    assert set(choices("estimate", "software")) == set(SOFTWARE) - {"unknown"}
    assert choices("inference", "precision") == ("auto", *FORMATS)
    assert choices("inference", "cache") == ("auto", *CACHE_BYTES)
    assert choices("inference", "engine") == ENGINE_NAMES


def test_requests_hold_what_the_table_says():
    from gpucost.serving.request import InferenceRequest
    from gpucost.training.request import TrainingRequest

    for question, request, own in (
        ("estimate", TrainingRequest, {"deadline_days", "deadline_given"}),
        ("inference", InferenceRequest, {"utilisation_given", "ttft_given", "tpot_given", "longer_tokens"}),
    ):
        fields = {item.field or item.name for item in QUESTIONS[question].arguments if not item.library_only}
        fields -= {"images", "image_size", "steps"}  # of models beyond decoders: TaskQuestion
        assert set(request.__struct_fields__) - own == fields - {"deadline"}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("tco", "--gpu", "h100-sxm", "--gpus", "8", "--option", "nonsense"), "--option: unknown 'nonsense'"),
        (("tco", "--gpu", "h100-sxm", "--years", "4", "--months", "12"), "given twice, by --years and --months"),
        (("audit", "--model", "8b", "--days", "800", "--hours", "1"), "given twice, by --days and --hours"),
        (("audit", "--model", "8b", "--gpus", "8.9"), "--gpus: '8.9' is not a whole number"),
        (("throughput", "--model", "8b", "--gpu", "h100-sxm", "--sequence", "0.5"), "--sequence: '0.5' is not a whole"),
        (("validate", "--max-error", "nan"), "--max-error: 'nan' lies outside"),
        (("roofline", "--gpu", "h100-sxm", "--matmul", "8x8x8", "--copy", "8"), "given twice, by --matmul and --copy"),
        (("mix", "--constant", "8", "--budget", "nan"), "--budget: 'nan' lies outside"),
    ],
)
def test_nothing_that_was_given_is_ignored_without_a_word(words, said):
    assert said in str(CliRunner().invoke(cli, words).exception)


COMMAS = {
    "2,35": (("tco", "rent"), ("mix", "constant"), ("estimate", "epochs"), ("tco", "years")),
    "10,5b": (("estimate", "tokens"),),
    "1,00,000": (("tco", "rent"), ("mix", "budget")),
    "0,500": (("tco", "rent"), ("mix", "budget"), ("inference", "requests_per_s")),
    "1,200,": (("mix", "budget"),),
}


@pytest.mark.parametrize(("question", "name", "given"), [(*where, text) for text in COMMAS for where in COMMAS[text]])
def test_a_decimal_comma_is_never_read_as_one_of_thousands(question, name, given):
    with pytest.raises(UsageError, match=r"--.* has a comma that does not separate thousands. Write 2.35 for 2,35"):
        read(QUESTIONS[question], **{**BASE[question], name: given})


@pytest.mark.parametrize(
    ("question", "name", "given"),
    [
        ("tco", "gpus", "4_1"), ("tco", "rent", "4_1"), ("mix", "budget", "1_2,000"), ("estimate", "tokens", "1_0b"),
        ("tco", "utilisation", "0.7_1"), ("tco", "utilisation", "7_1%"), ("estimate", "overhead", "1_0%"),
        ("inference", "ttft", "1_0ms"), ("tco", "rent", "\u0664"), ("estimate", "deadline", "1_0d"),
    ],
)  # fmt: skip
def test_an_underscore_parts_thousands_or_is_refused(question, name, given):
    with pytest.raises(UsageError, match=r"--"):
        read(QUESTIONS[question], **{**BASE[question], name: given})


@pytest.mark.parametrize("given", ["1,200", "$1,200", "1,200.0", "1.2k", "1200", "1_200"])
def test_commas_between_thousands_are_read(given):
    assert read(QUESTIONS["mix"], budget=given)["budget"] == 1200
    assert read(QUESTIONS["tco"], **{**BASE["tco"], "rent": given})["rent"] == {"": 1200}
    assert read(QUESTIONS["tco"], **{**BASE["tco"], "gpus": given.lstrip("$")})["gpus"] == 1200


@pytest.mark.parametrize("share", [("--utilisation", "70%"), ("--set", "utilisation_fraction=70%")])
def test_a_serving_load_takes_a_utilisation_in_per_cent(share):
    words = ["tco", "--model", "8b", "--tokens-per-month", "1b", "--gpu", "h100-sxm", "--draws", "0", *share]
    result = CliRunner().invoke(cli, words)
    assert result.exit_code == 0, result.exception
    assert "Renting" in result.stdout or "Owning" in result.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("gpus", "h100"),
        ("prices", "--gpu", "h100-sxm", "--limit", "3"),
        ("fit", "--model", "8b", "--gpu", "h100-sxm", "--gpus", "8"),
        ("audit", "--model", "8b", "--gpu", "h100-sxm", "--gpus", "8", "--fits", "serving"),
        ("throughput", "--model", "8b", "--gpu", "h100-sxm", "--gpus", "8"),
    ],
    ids=lambda words: words[0],
)
def test_an_ending_makes_the_document_that_it_names(words, tmp_path):
    for ending, start in ((".xlsx", b"PK"), (".html", b"<!"), (".json", b"{")):
        path = tmp_path / f"answer{ending}"
        result = CliRunner().invoke(cli, [*words, "-o", str(path)])
        assert result.exit_code == 0, result.output
        assert path.read_bytes().startswith(start)
    for more, said in ((["--format", "csv", "-o", "other.xlsx"], "leave --format"), (["-o", "other.docx"], ".html")):
        refused = CliRunner().invoke(cli, [*words, *more[:-1], str(tmp_path / more[-1])])
        assert said in refused.output
        assert not (tmp_path / more[-1]).exists()


@pytest.mark.parametrize("name", ["p.parquet", "p.csv.gz", "p.tsv", "p.yaml", "p.pptx", "p.toml", "p.unknown"])
def test_an_ending_that_nothing_writes_is_refused(tmp_path, name):
    refused = CliRunner().invoke(cli, ["gpus", "h100", "-o", str(tmp_path / name)])
    assert f"{os.path.splitext(name)[1]}" in refused.output
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("more", [["out"], ["out.txt"], ["out.log"], ["out."], ["out.d", "--format", "csv"]])
def test_a_text_may_end_as_texts_do(tmp_path, more):
    made = CliRunner().invoke(cli, ["gpus", "h100", "-o", str(tmp_path / more[0]), *more[1:]])
    assert made.exit_code == 0, made.output
    assert "h100-sxm5-80gb" in (tmp_path / more[0]).read_text()


def test_a_plan_is_toml(tmp_path):
    plan = str(tmp_path / "plan.toml")
    asked = ["tco", "--gpu", "h100-sxm", "--gpus", "8", "--rent", "2", "-o", plan]
    assert "gpucost does not write .toml" in CliRunner().invoke(cli, asked).output
    assert CliRunner().invoke(cli, [*asked, "--print-plan"]).exit_code == 0
    assert CliRunner().invoke(cli, ["tco", "--plan", plan, "--draws", "0"]).exit_code == 0


RUN = ["estimate", "--model", "8b", "--tokens", "1b", "--gpu", "h100-sxm", "--gpus", "8", "--top", "2"]


@pytest.mark.parametrize("to_file", [False, True])
def test_fields_pick_the_columns_of_json_too(tmp_path, to_file):
    path = tmp_path / "x.json"
    found = CliRunner().invoke(
        cli, [*RUN, "--fields", "rank,gpu", *(["-o", str(path)] if to_file else ["--format", "json"])]
    )
    made = json.loads(path.read_text() if to_file else found.stdout)
    assert made["rows"] == [{"rank": 1, "gpu": "h100-sxm5-80gb"}, {"rank": 2, "gpu": "h100-sxm5-80gb"}]
    assert {"as_of", "catalog_version", "warnings"} <= set(made)


def test_fields_pick_the_columns_of_a_bill():
    asked = [*RUN, "--top", "1", "--format", "csv", "--lines"]
    whole = [*csv.DictReader(io.StringIO(CliRunner().invoke(cli, asked).stdout))]
    picked = [*csv.DictReader(io.StringIO(CliRunner().invoke(cli, [*asked, "--fields", "name,cost_usd"]).stdout))]
    assert picked == [{name: row[name] for name in ("name", "cost_usd")} for row in whole]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--format", "json", "--fields", "nonsense"], "unknown column 'nonsense'"),
        (["--lines"], "--lines: only as CSV"),
        (["--lines", "-o", "x.json"], "--lines: only as CSV"),
        (["--explain", "--format", "csv"], "--explain writes text or Markdown only"),
        (["--explain", "--fields", "rank"], "--explain writes text or Markdown only"),
        (["--explain", "-o", "x.html"], "text file"),
    ],
)
def test_ways_of_writing_that_contradict_each_other_are_refused(tmp_path, monkeypatch, more, said):
    monkeypatch.chdir(tmp_path)
    refused = in_process(*RUN, *more)
    assert refused.returncode == 2
    assert said in refused.stderr
    assert not list(tmp_path.iterdir())


def test_a_sweep_into_one_file_holds_all_columns(tmp_path):
    asked = ["sweep", *RUN[1:7], "--gpus", "8", "-o", str(tmp_path / "s.csv")]
    assert "Leave --fields" in CliRunner().invoke(cli, [*asked, "--fields", "cost_usd"]).output
    assert CliRunner().invoke(cli, [*asked, "--format", "csv"]).exit_code == 0


def test_a_dash_is_the_terminal(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(cli, ["gpus", "h100", "-o", "-"])
    assert "h100-sxm5-80gb" in result.output
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("option", "typed", "names"),
    [
        ("gpu", "h100-s", {"h100-sxm5-80gb"}),
        ("model", "llama-3.1-7", {"llama-3.1-70b"}),
        ("provider", "lam", {"lambda"}),
        ("option", "on_demand,sp", {"on_demand,spot"}),
        ("software", "deep", {"deepspeed"}),
        ("region", "us-", set()),
    ],
)
def test_values_complete_from_the_catalog(option, typed, names):
    command = cli.get_command(click.Context(cli), "estimate")
    parameter = next(item for item in command.params if item.name == option)
    found = {item.value for item in parameter.shell_complete(click.Context(command), typed)}
    assert found >= names
    assert found
    assert all(word.startswith(typed) for word in found)


@pytest.mark.parametrize(
    ("command", "parameter", "typed", "names"),
    [
        ("prices", "gpu", "h100-s", {"h100-sxm5-80gb"}),
        ("prices history", "provider", "lam", {"lambda"}),
        ("prices diff", "option", "sp", {"spot"}),
        ("gpus", "name", "mi3", {"mi300x"}),
        ("gpus", "vendor", "A", {"AMD"}),
        ("data systems", "name", "p5", {"p5.48xlarge"}),
        ("models", "name", "llama-3.1-7", {"llama-3.1-70b"}),
        ("models", "family", "Llama", {"Llama 3.1"}),
        ("data sources", "table", "off", {"offers"}),
        ("sql", "question", "cheapest", {"cheapest-on-demand"}),
    ],
)
def test_lists_take_and_complete_names_as_questions_do(command, parameter, typed, names):
    found = cli
    for word in command.split():
        found = found.get_command(click.Context(found), word)
    taken = next(item for item in found.params if item.name == parameter)
    assert {item.value for item in taken.shell_complete(click.Context(found), typed)} >= names


def test_a_list_refuses_a_bad_value_in_the_sentence_of_the_questions():
    said = [CliRunner().invoke(cli, [*words, "--max-age", "soon"]).exception for words in (["prices"], ESTIMATE)]
    assert isinstance(said[0], UsageError)
    assert str(said[0]) == str(said[1])


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["team=a", "team=b"], "it: 'team' is given twice, as 'a' and as 'b'"),
        (["=a"], "it: the value 'a' has no name"),
        ({" ": 1}, "it: the value 1 has no name"),
        ("team", "it: 'team' is not NAME=VALUE. Write NAME=VALUE.$"),
    ],
)
def test_a_table_gives_each_name_one_value(given, said):
    with pytest.raises(UsageError, match=said):
        kinds.TABLE.read(given, "it")


def test_every_table_of_inputs_is_repeatable():
    for question in QUESTIONS:
        command = cli.get_command(click.Context(cli), question)
        several = [item for item in QUESTIONS[question].arguments if item.kind in SEVERAL]
        assert {item.name for item in command.params if getattr(item, "multiple", False)} == {i.name for i in several}


NEEDS = [
    pytest.param(question, {item.name: item for item in found.arguments}, name, need, id=f"{question}-{name}-{at}")
    for question, found in QUESTIONS.items()
    for at, need in enumerate(found.needs)
    for name in need.names
]


@pytest.mark.parametrize(("question", "known", "name", "need"), NEEDS)
def test_what_would_be_ignored_is_refused(question, known, name, need):
    def other_than(words, name):
        return next(word for word in known[name].kind.choices or ("True",) if word not in words)

    spoiled = {name: "70b" if name == "model" else value_of(known[name])}
    for other, wanted, words in need.one_of:  # no alternative holds
        if words:
            spoiled[other] = other_than(words, other) if wanted else words[0]
        elif not wanted:
            spoiled[other] = value_of(known[other])
    values = {key: known[key].default for key in known} | read_stated(QUESTIONS[question], **spoiled)
    with pytest.raises(ContradictionError, match=f"^--(no-)?{name.replace('_', '-')}: only ") as told:
        reading.refuse_idle(QUESTIONS[question], spoiled, values)
    assert told.value.names == (name,)


@pytest.mark.parametrize(
    ("text", "number"), [(".5e1", 5), ("1_000", 1000), ("1,000k", 1e6), ("1_", None), ("1__0", None), ("١", None)]
)
def test_an_amount_is_read_or_refused_as_a_number_is_written(text, number):
    kind = next(item.kind for item in QUESTIONS["choose"].arguments if item.name == "budget")
    if number is not None:
        assert kind.read(text, "--budget") == number
        return
    for item in (kind, next(item.kind for item in QUESTIONS["tco"].arguments if item.name == "utilisation")):
        with pytest.raises(UsageError, match=f"(cannot read )?'{text}'"):
            item.read(text, "--budget")


@pytest.mark.parametrize(
    ("question", "asked"),
    [
        ("estimate", {"method": "qlora", "lora_rank": 64}),
        ("estimate", {"lora_rank": 16}),  # as without
        ("inference", {"draft_tokens": 4, "acceptance": "70%", "draft_cost": "20%"}),
        ("throughput", {"flash": True}),
        ("throughput", {"flash": False, "gpus": [8, 16], "tensor": [1, 2]}),
        ("roofline", {"matmul": "8x8x8", "precision": "fp8"}),
        ("choose", {"purpose": "desk", "hours_per_month": 20}),
        ("audit", {"model": "8b", "gpu": "h100-sxm", "tokens": "1b", "cost": 100}),
        ("mix", {"constant": 8, "growth": "20%", "own": True, "budget": 100}),
        ("commit", {"on_demand": 3, "gpu": "h100-sxm"}),
    ],
)
def test_what_is_not_ignored_is_read(question, asked):
    assert read(QUESTIONS[question], **{**BASE[question], **asked})


def test_a_setting_gives_way_to_what_is_typed(monkeypatch):
    monkeypatch.setenv("GPUCOST_MFU", "40%")
    monkeypatch.setenv("GPUCOST_LORA_RANK", "64")
    run = ["--gpu", "h100-sxm", "--gpus", "8", "--step-time", "60s", "--top", "1", "--quiet"]
    typed = CliRunner().invoke(cli, [*ESTIMATE, *run])
    assert typed.exit_code == 0, typed.output
    twice = CliRunner().invoke(cli, [*ESTIMATE, *run, "--mfu", "30%"])
    assert "twice" in str(twice.exception)


def test_parts_hold_a_name_and_the_arguments_of_their_question():
    for kind, question in ASKS.items():
        names = [item.name for item in QUESTIONS[question].arguments if not item.library_only]
        assert [item.name for item in parts()[kind]] == ["name", *names]


def test_settings_that_a_command_has_no_use_for_are_not_heeded(monkeypatch):
    for name, value in {"GPU": "h200", "GPUS": "64", "PRECISION": "fp8"}.items():
        monkeypatch.setenv(f"GPUCOST_{name}", value)
    listed = CliRunner().invoke(cli, ["gpus", "h100-sxm", "--format", "csv", "--fields", "id"])
    assert listed.output.split() == ["id", "h100-sxm5-80gb"]
    fits = CliRunner().invoke(cli, ["fit", "--model", "70b", "--serving", "--quiet"])
    assert fits.exit_code == 0, fits.exception
    fits = CliRunner().invoke(cli, ["fit", "--model", "8b", "--gpu", "h100-sxm", "--quiet"])
    assert fits.exit_code == 0, fits.exception


@pytest.mark.parametrize(
    ("asked", "fragment"),
    [
        ({"tokens": 100}, "100b"),
        ({"tokens": "8k"}, "8,192"),
        ({"tokens": "1k", "sequence": 2048}, "2,048"),
        ({"tokens": "1b", "usd_per_gpu_hour": "8b"}, "model="),
        ({"tokens": "1b", "usd_per_gpu_hour": 5000}, "2,000"),
        ({"tokens": "1b", "usd_per_gpu_hour": 1e-5}, "0.001"),
    ],
)
def test_a_run_of_no_step_and_a_price_of_no_hour_are_refused_with_what_was_meant(asked, fragment):
    with pytest.raises(UsageError, match=re.escape(fragment)):
        gpucost.estimate("8b", gpu="h100-sxm", **asked)


@pytest.mark.parametrize("rent", ["8b", {"acme": "8b/h"}, 5000, ["acme=9000/h"]])
def test_a_rent_that_no_hour_has_is_refused(rent):
    with pytest.raises(UsageError, match="per GPU-hour"):
        gpucost.tco("h100-sxm", 8, rent=rent, draws=0)


def test_a_run_of_one_step_is_answered():
    assert gpucost.estimate("8b", 8192, gpu="h100-sxm", with_facts=False).payload["workload"]["global_batch"] == 1
