"""Settings: flag > GPUCOST_* > project file > user file > default, and `gpucost config` says who spoke."""

import json
import shutil
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import gpucost
from gpucost.catalog import settings
from gpucost.catalog.loader import shipped_root
from gpucost.cli import cli
from gpucost.errors import CheckFailedError, DataError, UsageError


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Work in an empty folder with a user folder of its own."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    (tmp_path / "config" / "gpucost").mkdir(parents=True)
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    return tmp_path


def run(*arguments):
    result = CliRunner().invoke(cli, list(arguments))
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


def spoken():
    return {
        row["setting"]: (row["value"], row["from"]) for row in json.loads(run("config", "--format", "json"))["rows"]
    }


def test_each_speaker_overrules_the_one_before(place, monkeypatch):
    assert run("gpus", "h100-sxm").startswith("id ")
    (place / "config/gpucost/config.toml").write_text('format = "csv"\n')
    assert run("gpus", "h100-sxm").startswith("id,")
    assert spoken()["format"] == ("csv", f"file {place / 'config/gpucost/config.toml'}")
    (place / "work/pyproject.toml").write_text('[tool.gpucost]\nformat = "md"\n')
    assert run("gpus", "h100-sxm").startswith("| id")
    (place / "work/gpucost.toml").write_text('format = "json"\n')
    assert run("gpus", "h100-sxm").startswith("{")
    assert spoken()["format"] == ("json", "file gpucost.toml")
    monkeypatch.setenv("GPUCOST_FORMAT", "csv")
    assert run("gpus", "h100-sxm").startswith("id,")
    assert spoken()["format"] == ("csv", "environment variable GPUCOST_FORMAT")
    assert run("gpus", "h100-sxm", "--format", "table").startswith("id ")


def test_a_named_file_overrules_a_format_of_the_settings(place, monkeypatch):
    monkeypatch.setenv("GPUCOST_FORMAT", "json")
    run("gpus", "h100-sxm", "-o", "a.csv")
    assert Path("a.csv").read_text().startswith("id,")
    run("gpus", "h100-sxm", "-o", "a.html")
    assert Path("a.html").read_text().startswith("<!")
    run("gpus", "h100-sxm", "-o", "a")
    assert Path("a").read_text().startswith("{")


def test_a_flag_overrules_settings_of_what_it_excludes(place, monkeypatch):
    asked = ("throughput", "--model", "8b", "--gpu", "h100-sxm", "--gpus", "8")
    typed = run(*asked, "--step-time", "60s")
    monkeypatch.setenv("GPUCOST_MFU", "30%")
    assert run(*asked, "--step-time", "60s") == typed
    assert "(--mfu)" in run(*asked)
    swept = ("sweep", *asked[1:], "--tokens", "1b", "--step-time", "60s", "--quiet")
    assert "1 case" in run(*swept)


DISPLAY = [
    ({"FORMAT": "json"}, ["--quiet"]),
    ({"DETAILS": "true", "FIELDS": "gpu"}, ["--quiet"]),
    ({"LINES": "true"}, []),
    ({"LINES": "true", "FORMAT": "json"}, ["--format", "table"]),
    ({"QUIET": "true"}, ["--format", "json"]),
    ({"FORMAT": "csv", "FIELDS": "gpu"}, ["--explain"]),
    ({"EXPLAIN": "true"}, ["--fields", "gpu"]),
    ({"FIELDS": "gpu", "QUIET": "true"}, ["-o", "a.html"]),
    ({"FIELDS": "gpu"}, ["-o", "a.html"]),
]


@pytest.mark.slow
@pytest.mark.parametrize(("said", "typed"), DISPLAY)
def test_a_way_of_writing_by_a_setting_gives_way_to_what_is_typed(place, monkeypatch, said, typed):
    asked = ("estimate", "--model", "8b", "--tokens", "1b", "--gpu", "h100-sxm", "--gpus", "8", "--top", "1", *typed)
    plain = run(*asked)
    for name, value in said.items():
        monkeypatch.setenv(f"GPUCOST_{name}", value)
    found = CliRunner().invoke(cli, asked, catch_exceptions=False)
    assert (found.exit_code, found.stdout) == (0, plain)


def test_ways_of_writing_that_settings_alone_contradict_say_that_they_are_settings(place, monkeypatch):
    monkeypatch.setenv("GPUCOST_FORMAT", "json")
    monkeypatch.setenv("GPUCOST_QUIET", "true")
    heard = CliRunner().invoke(cli, ["tco", "--gpu", "h100-sxm", "--gpus", "8", "--draws", "0"]).stderr
    assert "--quiet writes one line" in heard
    assert "`gpucost config`" in heard


def test_fields_of_the_settings_give_way_to_a_plot_and_to_a_whole_table(place, monkeypatch):
    monkeypatch.setenv("GPUCOST_FIELDS", "gpu")
    run("prices", "history", "--gpu", "h100-sxm", "--provider", "lambda", "--plot", "-o", "a.html")
    assert Path("a.html").read_text().startswith("<!")
    run("sweep", "--model", "8b", "--tokens", "1b", "--gpu", "h100-sxm", "--gpus", "8", "-o", "a.csv")
    assert Path("a.csv").read_text().count(",") > 9


def test_a_setting_may_hold_for_one_command_only(place, monkeypatch):
    (place / "work/gpucost.toml").write_text('[gpus]\nfields = "id"\n[prices]\nprovider = "aws"\n')
    assert run("gpus", "h100-sxm", "--format", "csv") == "id\nh100-sxm5-80gb\n"
    assert "," in run("data", "systems", "dgx-h100", "--format", "csv")
    monkeypatch.setenv("GPUCOST_GPUS_FIELDS", "vendor")
    assert run("gpus", "h100-sxm", "--format", "csv") == "vendor\nNVIDIA\n"


ESTIMATE = ("estimate", "--model", "8b", "--tokens", "1b", "--gpus", "8", "--top", "1", "--fields", "gpu")


@pytest.mark.parametrize("text", [
    'gpu = "a100"\nestimate_gpu = "h100-sxm"',
    'estimate_gpu = "h100-sxm"\ngpu = "a100"',
    'gpu = "a100"\n[estimate]\ngpu = "h100-sxm"',
])  # fmt: skip
def test_what_is_meant_for_one_command_overrules_what_the_same_speaker_says_to_all(place, monkeypatch, text):
    (place / "work/gpucost.toml").write_text(text)
    assert "h100" in run(*ESTIMATE)
    monkeypatch.setenv("GPUCOST_GPU", "b200-sxm")
    assert "b200" in run(*ESTIMATE)


@pytest.mark.parametrize(("narrow", "words"), [("ESTIMATE", ESTIMATE), ("PRICES", ("prices", "--fields", "gpu"))])
def test_no_alphabet_decides_between_variables(place, monkeypatch, narrow, words):
    monkeypatch.setenv("GPUCOST_GPU", "a100-80gb-sxm")
    monkeypatch.setenv(f"GPUCOST_{narrow}_GPU", "h100-sxm")
    assert "h100" in run(*words)


WATCH = ("prices", "watch", "--provider", "crusoe")


@pytest.mark.parametrize(("name", "value"), [("PRICES_BUDGET", "90"), ("PRICES_WATCH_BUDGET", "90"), ("BUDGET", "90")])
def test_settings_of_a_group_reach_its_subcommands(place, monkeypatch, name, value):
    (place / "work/gpucost.toml").write_text('[prices]\ngpu = "h100-sxm"\n')
    monkeypatch.setenv(f"GPUCOST_{name}", value)
    assert CliRunner().invoke(cli, WATCH, catch_exceptions=False).exit_code == 0


def test_a_subcommand_does_not_listen_to_the_table_of_a_command_that_bears_its_name(place):
    (place / "work/gpucost.toml").write_text('[watch]\nbudget = 90\n[history]\nfields = "gpu"\n')
    with pytest.raises(UsageError, match=r"(--budget|budget=) is missing"):
        run(*WATCH, "--gpu", "h100-sxm")
    assert run("prices", "history", "--gpu", "h100-sxm", "--provider", "lambda", "--format", "csv").startswith("gpu\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[estimat]\ngpu = "h100"', "estimat.gpu: no command has this name; did you mean estimate?"),
        ("[estimate]\nhistory = 3", "estimate.history: estimate takes no such option"),
        ("[prices]\nbudgt = 3", "prices.budgt: prices takes no such option; did you mean budget?"),
        ("prices_wach_budget = 3", "no option has this name; did you mean prices_watch_budget?"),
        (f"{'x' * 5000} = 3", f"gpucost: {'x' * 40}… (5,000 characters): no option has this name"),
    ],
)
def test_a_setting_that_no_command_heeds_is_named(place, text, said):
    (place / "work/gpucost.toml").write_text(f"{text}\n[gpus]\nfields = 'id'\n")
    heard = CliRunner().invoke(cli, ["config"]).stderr
    assert said in heard
    assert "gpus" not in heard


def test_a_day_may_be_a_setting_of_the_library_too(place, monkeypatch):
    from datetime import date

    from gpucost.catalog import open_catalog

    monkeypatch.setenv("GPUCOST_AS_OF", "2025-03-01")
    assert open_catalog().as_of == date(2025, 3, 1)
    assert open_catalog("2025-04-01").as_of == date(2025, 4, 1)


def test_a_misspelt_setting_is_named(place):
    (place / "work/gpucost.toml").write_text('fromat = "csv"\n')
    result = CliRunner().invoke(cli, ["config"])
    assert "did you mean format?" in result.stderr


def test_a_broken_settings_file_is_one_clear_sentence(place):
    (place / "work/gpucost.toml").write_text("format = \n")
    with pytest.raises(UsageError, match=r"gpucost\.toml(:1)?: is not valid TOML"):
        run("gpus")


@pytest.mark.parametrize(
    "text",
    [
        '[tool.gpucost]\nformat = "csv"',
        '[ tool . gpucost ]\nformat = "csv"',
        '[tool."gpucost"]\nformat = "csv"',
        'tool.gpucost.format = "csv"',
        '[tool]\nother = 1\ngpucost.format = "csv"',
        'tool = {gpucost = {format = "csv"}}',
    ],
)
def test_the_table_of_a_project_may_be_written_in_every_way_of_toml(place, text):
    (place / "work/pyproject.toml").write_text(f"{text}\n")
    assert spoken()["format"] == ("csv", "file pyproject.toml")


@pytest.mark.parametrize("text", ['[project]\nname = "gpucost"', '[tool.a]\nneeds = ["gpucost"]', "[tool]\ngpucost ="])
def test_a_project_without_the_table_says_nothing(place, text):
    (place / "work/pyproject.toml").write_text(f"{text}\n")
    assert settings.project_file() is None


@pytest.mark.parametrize(
    ("text", "words", "said"),
    [
        ('as_of = "soon"', ["gpus", "h100"], "file gpucost.toml: .*cannot read 'soon'"),
        (
            '[estimate]\ngpus = "x"',
            ["estimate", "--model", "8b", "--tokens", "1b"],
            "^file gpucost.toml: --gpus: cannot",
        ),
        (
            '[estimate]\ngpus = "x"',
            ["estimate", "--model", "8b", "--tokens", "1b", "--gpus", "y"],
            "^--gpus: cannot read 'y'",
        ),
        ('gpu = "h1000"', ["tco", "--gpus", "8"], "^file gpucost.toml: unknown accelerator 'h1000'"),
        ('[prices]\nas_of = "1"', ["prices", "--gpu", "h100"], "^file gpucost.toml: --as-of: cannot read '1'"),
        ('as_of = "2026-01-01"\nas-of = "2026-02-01"', ["gpus"], "gpucost.toml: as-of is given twice, also as as_of"),
    ],
)
def test_a_bad_value_is_said_with_the_file_that_gives_it(place, text, words, said):
    (place / "work/gpucost.toml").write_text(f"{text}\n")
    with pytest.raises(UsageError, match=said):
        run(*words)


def test_a_bad_choice_is_said_with_who_gives_it(place, monkeypatch):
    monkeypatch.setenv("GPUCOST_FORMAT", "soon")
    assert "'--format': environment variable GPUCOST_FORMAT: 'soon' is not" in CliRunner().invoke(cli, ["gpus"]).stderr
    monkeypatch.setenv("GPUCOST_AS_OF", "soon")
    with pytest.raises(UsageError, match=r"^environment variable GPUCOST_AS_OF: as_of: cannot read 'soon'"):
        gpucost.open_catalog()


def test_it_works_without_a_home(place, monkeypatch):
    for name in ("HOME", "XDG_CONFIG_HOME", "USERPROFILE"):
        monkeypatch.delenv(name, raising=False)
    assert "h100-sxm5-80gb" in run("gpus", "h100-sxm")
    monkeypatch.setenv("HOME", "/nonexistent")
    assert "h100-sxm5-80gb" in run("gpus", "h100-sxm")


def test_another_data_folder_is_named_and_must_be_one(place, monkeypatch):
    from tests.catalog.world import world

    world(place / "data")
    monkeypatch.setenv("GPUCOST_DATA", str(place / "data"))
    assert run("models", "--format", "csv", "--fields", "id") == "id\ntiny-1b\n"
    assert spoken()["data folder"] == (str(place / "data"), "environment variable GPUCOST_DATA")
    monkeypatch.setenv("GPUCOST_DATA", str(place))
    with pytest.raises(UsageError, match="folder models"):
        run("models")


@pytest.mark.slow
def test_a_data_folder_that_breaks_a_rule_is_refused_by_every_command_and_listed_by_the_check(place, monkeypatch):
    root = place / "data"
    for folder in ("models", "pricing"):
        shutil.copytree(shipped_root() / folder, root / folder)
    monkeypatch.setenv("GPUCOST_DATA", str(root))
    assert "llama-3.1-8b" in run("models")
    offers = root / "pricing" / "offers" / "ovh.csv"
    offers.write_text(offers.read_text("utf-8").replace(",on_demand,", ",sometimes,"), "utf-8")
    for command in (["models"], ["inference", "--model", "8b"]):
        with pytest.raises(DataError, match=r"data folder .* pricing/offers/ovh.csv:\d+:option: 'sometimes'.* more"):
            run(*command)
    with pytest.raises(CheckFailedError):
        run("data", "check")
    monkeypatch.delenv("GPUCOST_DATA")
    with pytest.raises(DataError, match=r"'sometimes'.* more"):
        gpucost.open_catalog(root=root)
    with pytest.raises(UsageError, match="folder models"):
        gpucost.open_catalog(root=place, checked=False)


@pytest.mark.parametrize("named", [None, "", "/somewhere/else"])
def test_the_user_folder_is_the_one_that_the_platform_has(monkeypatch, named):
    """The shortcut around the import of platformdirs gives its answer."""
    from platformdirs import user_config_path

    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    if named is not None:
        monkeypatch.setenv("XDG_CONFIG_HOME", named)
    assert settings.user_folder() == user_config_path("gpucost", appauthor=False)


@pytest.mark.parametrize("file", ["gpucost.toml", "pyproject.toml"])
@pytest.mark.parametrize(
    ("table", "name"),
    [
        ("", "store"),
        ("estimate", "store"),
        ("prices", "mirror"),
        ("", "prices_refresh_mirror"),
        ("prices", "from"),
        ("sweep", "scheduler"),
        ("mcp", "files"),
        ("serve", "files"),
        ("", "output_file"),
        ("estimate", "output-file"),
    ],
)
def test_a_file_of_the_working_folder_names_no_address_and_opens_no_folder(place, file, table, name):
    """A repository that somebody cloned may bring such a file."""
    head = ".".join(filter(None, ["tool.gpucost" if file == "pyproject.toml" else "", table]))
    text = (f"[{head}]\n" if head else "") + f'{name} = "https://prices.example.org/gpu"\n'
    (place / "work" / file).write_text(text)
    assert all(item.name != name.replace("-", "_") for item in settings.spoken())
    assert settings.setting("store") is None
    [row] = [row for row in json.loads(run("config", "--format", "json"))["rows"] if "left out" in (row["note"] or "")]
    assert row["from"] == f"file {file}"
    (place / "config/gpucost/config.toml").write_text(f'{name} = "here"\n')
    assert any(item.name == name.replace("-", "_") and item.value == "here" for item in settings.spoken())


def test_every_option_that_reaches_out_is_of_the_user_alone():
    from gpucost.cli import COMMANDS

    waiting = [cli.get_command(click.Context(cli), name) for name in COMMANDS]
    reaching = set()
    for command in waiting:
        waiting.extend(getattr(command, "commands", {}).values())
        for option in command.params:
            if option.metavar in ("URL", "ADDRESS", "PLACE") or option.name in ("files", "store", "output_file"):
                reaching |= {name.lstrip("-").replace("-", "_") for name in option.opts if name.startswith("--")}
    assert {"mirror", "store", "scheduler", "publish", "files", "output_file"} <= reaching
    assert reaching <= settings.OF_THE_USER_ALONE
