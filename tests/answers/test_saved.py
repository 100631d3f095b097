"""Saved answers against the threat model of SECURITY.md: refused in a sentence, or accepted and told."""

import json
import os
import zipfile
from pathlib import Path

import openpyxl
import pytest

import gpucost
from gpucost.answers import KINDS, answer_type
from gpucost.answers.saved import checked, read_answer, read_estimate, seal_of, sealed
from gpucost.answers.schema import answer_schema
from gpucost.ask.result import Result
from gpucost.errors import DataError, UsageError
from gpucost.render.excel import write_workbook
from gpucost.render.json import dumps
from tests.commands import in_process
from tests.render import answers
from tests.render.answers import QUESTIONS

CHANGED = "was changed after it was saved: its seal does not match its content"


@pytest.fixture(scope="module")
def small_run():
    return gpucost.estimate("8b", "1b", gpu="h100-sxm", gpus=8, top=2, as_of=answers.DAY).to_json()


@pytest.fixture
def estimate(tmp_path, monkeypatch, small_run):
    """Return the name of a saved estimate in the present folder."""
    monkeypatch.chdir(tmp_path)
    Path("run.json").write_text(small_run, "utf-8")
    return "run.json"


def change(name, **values):
    """Change keys of a saved answer and leave its seal."""
    found = json.loads(Path(name).read_text("utf-8"))
    Path(name).write_text(json.dumps(found | values), "utf-8")


def seal_anew(name, payload):
    Path(name).write_text(sealed(json.dumps({key: value for key, value in payload.items() if key != "seal"})), "utf-8")


# the seal


@pytest.mark.parametrize("question", QUESTIONS)
def test_what_is_saved_is_read_and_what_was_changed_is_refused(question, tmp_path):
    path = tmp_path / "saved.json"
    path.write_text(Result(QUESTIONS[question]()).to_json(), "utf-8")
    found = read_answer(path)
    assert "seal" not in found
    whole = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps(dict(reversed(whole.items())), indent=9), "utf-8")
    assert read_answer(path) == found, "neither order nor spaces are content"
    change(path, lead="It costs nothing.")
    with pytest.raises(UsageError, match=CHANGED):
        read_answer(path)


@pytest.mark.parametrize(
    "asked",
    [
        ["saved", "rerun", "run.json"],
        ["compare", "run.json", "run.json"],
        ["report", "run.json"],
        ["report", "-o", "out.html", "run.json"],
    ],
)
def test_commands_refuse_a_changed_answer_in_one_sentence(estimate, asked):
    change(estimate, lead="It costs nothing.")
    refused = in_process(*asked)
    assert refused.returncode == 2
    assert refused.stdout == ""
    (line,) = refused.stderr.splitlines()
    assert CHANGED in line
    assert "--accept-changed" in line
    assert not Path("out.html").exists()


@pytest.mark.parametrize(
    "asked",
    [
        *(
            ["saved", "rerun", "run.json", *more]
            for more in ([], ["--explain"], ["--format", "json"], ["--format", "csv"])
        ),
        *(
            ["compare", "run.json", "run.json", *more]
            for more in ([], ["--quiet"], ["--format", "csv"], ["--format", "md"])
        ),
        *(["report", "run.json", *more] for more in ([], ["--status", "approved"])),
    ],
    ids=" ".join,
)
def test_an_accepted_change_is_told_with_what_a_command_writes(estimate, asked):
    change(estimate, lead="It costs nothing.")
    answered = in_process(*asked, "--accept-changed")
    assert answered.returncode == 0, answered.stderr
    assert "after it" in " ".join((answered.stdout + answered.stderr).split())


@pytest.mark.parametrize("suffix", ["html", "md", "txt", "json", "xlsx"])
@pytest.mark.parametrize("asked", [["report", "run.json"], ["compare", "run.json", "other.json"]])
def test_an_accepted_change_is_told_on_every_page(estimate, asked, suffix):
    if asked[0] == "compare" and suffix in ("txt", "md", "json"):
        pytest.skip("compare writes these to the terminal as well")
    Path("other.json").write_bytes(Path(estimate).read_bytes())
    change(estimate, lead="It costs nothing.")
    answered = in_process(*asked, "--accept-changed", "-o", f"out.{suffix}")
    assert answered.returncode == 0, answered.stderr
    if suffix == "xlsx":
        with zipfile.ZipFile("out.xlsx") as book:
            text = b"".join(book.read(name) for name in book.namelist()).decode("utf-8", "replace")
    else:
        text = Path(f"out.{suffix}").read_text("utf-8")
    assert "run.json was changed after it was saved" in " ".join(text.split())
    if suffix == "json":
        assert "run.json was changed" in read_answer("out.json")["warnings"][0], "it stays told when it is sealed again"


def test_a_rerun_of_an_accepted_change_finds_it(estimate):
    whole = json.loads(Path(estimate).read_text("utf-8"))
    options = [whole["options"][0] | {"cost_usd": 1.0}, *whole["options"][1:]]
    change(estimate, options=options)
    told = in_process("saved", "rerun", estimate, "--accept-changed", "--explain", "--format", "json")
    found = json.loads(told.stdout)
    assert [row["where"] for row in found["differences"]] == ["options[0].cost_usd"]
    assert "by hand" in found["lead"]


def test_an_answer_without_a_seal_is_read_as_it_stands(tmp_path):
    (tmp_path / "saved.json").write_text(dumps(answers.by_hand()), "utf-8")
    assert read_answer(tmp_path / "saved.json")["lead"] == answers.by_hand()["lead"]


def test_a_seal_does_not_see_how_numbers_are_written():
    assert seal_of('{"a": 1, "b": [0.1]}') == seal_of('{"b": [1e-1], "a": 1.0}')
    assert seal_of('{"a": 1}') != seal_of('{"a": "1"}') != seal_of('{"a": 2}')
    text = '{"kind": "fit"}'
    assert json.loads(sealed(text))["seal"] == seal_of(text) == seal_of(sealed(text))


def test_the_checks_of_a_workbook_are_stored_as_they_are(tmp_path):
    """A figure that does not follow from its formula is seen in the workbook, also by a reader that calculates not."""
    payload = json.loads(dumps(QUESTIONS["estimate"]()))
    stored = []
    for factor in (1, 2):
        payload["options"][0]["cost_usd"] *= factor
        write_workbook(payload, str(tmp_path / "made.xlsx"))
        book = openpyxl.load_workbook(tmp_path / "made.xlsx", data_only=True)
        verdicts = {row[0]: row[1] for sheet in ("Cover", "Checks") for row in book[sheet].values}
        stored.append((verdicts["Master check"], [name for name, said in verdicts.items() if said == "LOOK"]))
    (fine, none), (faulty, found) = stored
    assert (fine, none, faulty) == ("OK", [], "LOOK BELOW")
    assert [name.rpartition(": ")[2] for name in found] == ["cost_usd agrees with gpucost"]


# types, finiteness and shape


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "JSON"),
        ('{"kind": ', "JSON"),
        ('{"kind": "fit", "gpus": NaN}', "JSON"),
        ('{"kind": "fit", "gpus": 1e999}', "JSON"),
        ('{"kind": "fit", "lead": "\\ud800"}', "JSON"),
        ("[" * 100_000, "too deeply"),
        ('{"a":' * 70 + "1" + "}" * 70, "too deeply"),
        ("[1]", "`kind`"),
        ('{"kind": 3}', "`kind`"),
        ('{"kind": "recipe"}', "'recipe'"),
        ('{"kind": "fit"}', "schema version"),
        ('{"kind": "fit", "schema_version": "99"}', "'99'"),
        ('{"kind": "fit", "schema_version": "2"}', "is no fit"),
        (json.dumps({"kind": "fit", "lead": "x" * 200_000}), "200,000 characters"),
        (f'{{"kind": "fit", "gpus": {"9" * 400}}}', "digits"),
    ],
    ids=range(15),
)
def test_a_corrupt_or_foreign_file_is_refused_in_a_sentence(tmp_path, text, said):
    (tmp_path / "a.json").write_text(text, "utf-8")
    with pytest.raises((DataError, UsageError)) as error:
        read_answer(tmp_path / "a.json")
    assert said in str(error.value)
    assert len(str(error.value)) < 600


@pytest.mark.parametrize(
    ("place", "value", "said"),
    [
        (("lead",), None, "lead: Expected str, got null"),
        (("options", 0, "days"), "5", "options[0].days: Expected float, got str"),
        (("options", 0, "gpus"), True, "options[0].gpus: Expected int, got bool"),
        (("options", 0, "layout"), [], "options[0].layout: Expected object, got array"),
        (("options",), {}, "options: Expected array, got object"),
        (("as_of",), "soon", "as_of is 'soon', not a day"),
        (("as_of",), "2026-02-30", "as_of is '2026-02-30', not a day"),
    ],
)
def test_a_value_of_another_type_is_refused_with_its_place(tmp_path, place, value, said):
    payload = json.loads(dumps(answers.by_hand()))
    *way, last = place
    holder = payload
    for step in way:
        holder = holder[step]
    holder[last] = value
    seal_anew(tmp_path / "a.json", payload)
    with pytest.raises(UsageError) as error:
        read_answer(tmp_path / "a.json")
    assert said in str(error.value)


def test_parts_of_a_scenario_are_held_to_the_types_of_their_kinds(tmp_path):
    payload = json.loads(dumps(QUESTIONS["scenario"]()))
    payload["parts"][0]["payload"]["sources"] = "x"
    seal_anew(tmp_path / "a.json", payload)
    with pytest.raises(UsageError, match="sources: Expected object, got str"):
        read_answer(tmp_path / "a.json")


def test_an_answer_of_another_kind_is_no_estimate(tmp_path):
    (tmp_path / "fit.json").write_text(Result(QUESTIONS["fit"]()).to_json(), "utf-8")
    with pytest.raises(UsageError, match="holds an answer of kind fit, not an estimate"):
        read_estimate(tmp_path / "fit.json")


@pytest.mark.parametrize("kind", ["estimate", "inference", "tco", "mix", "fit", "comparison", "sweep"])
@pytest.mark.parametrize("suffix", ["html", "xlsx", "md"])
def test_content_that_contradicts_itself_ends_in_a_sentence_or_a_page(tmp_path, kind, suffix):
    """Empty lists and zeros have the right types; whatever breaks at them is told in one sentence."""
    payload = json.loads(dumps(QUESTIONS[kind]()))
    for key in ("options", "rows", "months", "changes", "by_year", "components", "by_utilisation"):
        if isinstance(payload.get(key), list):
            bare = {**payload, key: []}
            seal_anew(tmp_path / "a.json", bare)
            told = in_process("report", str(tmp_path / "a.json"), "-o", str(tmp_path / f"a.{suffix}"))
            assert told.returncode in (0, 2), told.stderr
            assert "Traceback" not in told.stderr
            assert len(told.stderr.splitlines()) <= 1 + len(payload["warnings"])


# versions


@pytest.mark.slow
@pytest.mark.parametrize("question", QUESTIONS)
def test_a_figure_that_is_new_since_an_answer_was_saved_reads_as_not_known(question, tmp_path):
    """Every key that may be None, left out as a version before that key would have done."""

    def without_none(value):
        if isinstance(value, dict):
            return {key: without_none(item) for key, item in value.items() if item is not None}
        return [*map(without_none, value)] if isinstance(value, list) else value

    payload = json.loads(dumps(QUESTIONS[question]()))
    older = {key: value if key == "request" else without_none(value) for key, value in payload.items()}
    seal_anew(tmp_path / "a.json", older)
    gpucost.report(str(tmp_path / "a.json")).to_markdown()
    told = checked(older, "a.json")
    for key, value in payload.items():
        if value is None and key in answer_type(payload["kind"]).__required_keys__:
            assert told[key] is None


def test_keys_of_a_later_version_are_kept_and_do_no_harm(tmp_path):
    payload = json.loads(dumps(answers.counted()))
    payload["worth_usd"] = 5.0
    payload["options"][0]["colour"] = {"deep": ["red"]}
    seal_anew(tmp_path / "a.json", payload)
    found = read_answer(tmp_path / "a.json")
    assert (found["worth_usd"], found["options"][0]["colour"]) == (5.0, {"deep": ["red"]})
    assert gpucost.report(str(tmp_path / "a.json")).to_text(details=True)


def required(schema, place=""):
    """Yield the keys of a schema that an answer must have and that may not be None."""
    for name, inner in schema.get("properties", {}).items():
        may_be_none = {"type": "null"} in inner.get("anyOf", ()) or not {"type", "enum", "anyOf"} & inner.keys()
        if name in schema["required"] and not may_be_none:
            yield f"{place}{name}"
        for one in [inner, *inner.get("anyOf", ())]:
            yield from required(one, f"{place}{name}.")
    if isinstance(schema.get("items"), dict):
        yield from required(schema["items"], place)


def test_a_new_figure_never_makes_saved_answers_unreadable():
    """Within a schema version no key joins those that an answer must have: a new one may be None, or NotRequired.

    What such a new one holds, and a new kind of answer, may have keys of its own: they join the list with it.
    """
    file = Path(__file__).parent / "required.json"
    known = json.loads(file.read_text("utf-8"))
    new = [kind for kind in KINDS if kind not in known["keys"]]
    if os.environ.get("WRITE_REQUIRED"):  # of new kinds alone: what an older one must have is not ours to widen
        known["keys"] |= {kind: sorted({*required(answer_schema(kind))}) for kind in new}
        file.write_text(json.dumps(known, indent=1) + "\n", "utf-8")
        new = []
    assert not new, f"{new}: WRITE_REQUIRED=1 pytest tests/answers/test_saved.py writes down what they must have"
    for kind in KINDS:
        joined = set(required(answer_schema(kind))) - set(known["keys"][kind])
        assert not joined, f"{kind}: saved answers lack {', '.join(sorted(joined))}"


def test_a_comparison_of_reports_has_a_line_for_each_part(tmp_path):
    part = {"name": "run", "part": "training", "payload": json.loads(dumps(QUESTIONS["estimate"]()))}
    whole = {**part["payload"], "kind": "scenario", "lead": "", "name": "all", "description": "", "parts": [part]}
    seal_anew(tmp_path / "a.json", {name: value for name, value in whole.items() if name != "headline"})
    path = str(tmp_path / "a.json")
    assert gpucost.compare(path, path).headline == "run: Nothing that affects the training run differs."


# nothing runs


def test_texts_of_a_file_are_never_live_in_a_workbook_or_a_page(tmp_path):
    payload = json.loads(dumps(answers.counted()))
    hostile = '=WEBSERVICE("http://x")'
    payload["lead"] = (payload["warnings"][0:0] and "") or hostile
    payload["warnings"] = [hostile, "<script>alert(1)</script>", "\x1b[2J"]
    payload["options"][0]["lines"][0]["name"] = hostile
    payload["options"][0]["provider"] = "@SUM(1+1)*cmd|'/c calc'!A1"
    seal_anew(tmp_path / "a.json", payload)
    report = gpucost.report(str(tmp_path / "a.json"))
    report.write(str(tmp_path / "a.xlsx"))
    report.write(str(tmp_path / "a.html"))
    with zipfile.ZipFile(tmp_path / "a.xlsx") as book:
        cells = b"".join(book.read(name) for name in book.namelist() if "sheet" in name).decode()
    formulas = [part.split("</f>")[0] for part in cells.split("<f>")[1:]]
    assert formulas
    assert not [one for one in formulas if "WEBSERVICE(" in one.replace('"=WEBSERVICE', "") or one.startswith("@")]
    page = (tmp_path / "a.html").read_text("utf-8")
    assert "<script>alert(1)" not in page
    assert "\x1b" not in page + report.to_text(details=True)
