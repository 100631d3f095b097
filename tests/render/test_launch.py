"""What starts an answer: the command for a shell, and the task that SkyPilot's own parser takes.

The tasks of these questions were given to `sky.Task.from_yaml` of SkyPilot 0.14.1 by hand; here their form is held to
its reference, https://docs.skypilot.co/en/latest/reference/yaml-spec.html, and their commands to the shell's parser.
"""

import subprocess

import pytest
from click.testing import CliRunner

from gpucost import estimate, inference
from gpucost.catalog import open_catalog
from gpucost.cli import cli
from gpucost.errors import UsageError
from gpucost.render.launch import launch, skypilot

yaml = pytest.importorskip("yaml")
KEYS = {"name", "num_nodes", "resources", "service", "setup", "run"}


@pytest.fixture(scope="module")
def catalog():
    return open_catalog("2026-11-10")


@pytest.fixture(scope="module")
def answers(catalog):
    run = {"model": "8b", "tokens": "100b", "catalog": catalog}
    return {
        "several nodes": estimate(**run, gpu="h100-sxm", provider="aws", gpus=16, option="on_demand").payload,
        "one node": estimate(**run, gpu="b200", gpus=8, provider="lambda").payload,
        "spot": estimate(**run, gpu="a100-80gb", provider="gcp", option="spot", gpus=8).payload,
        "replicas": inference("8b", gpu="l4", provider="gcp", requests_per_s=40, catalog=catalog).payload,
        "unknown to SkyPilot": inference("70b", precision="fp8", provider="crusoe", catalog=catalog).payload,
        "a replica over two": inference(
            "llama-3.1-405b", precision="bf16", provider="aws", gpu="h100-sxm", option="on_demand", catalog=catalog
        ).payload,
    }


@pytest.fixture(scope="module")
def tasks(answers):
    return {name: yaml.safe_load(skypilot(answer)) for name, answer in answers.items()}


@pytest.mark.slow
def test_a_task_takes_the_machines_that_the_answer_costs(answers, tasks):
    for name, task in tasks.items():
        best = answers[name]["options"][0]
        chip, _, unit = task["resources"]["accelerators"].partition(":")
        groups = task.get("service", {}).get("replicas", 1)
        assert int(unit) * task["num_nodes"] * groups == best["gpus"], name
        assert chip
        assert set(task) <= KEYS, name
        assert task["resources"]["infra"].split("/")[0] in ("aws", "gcp", "lambda", "ssh"), name


def test_a_region_a_named_machine_and_spot_are_asked_for(answers, tasks):
    assert tasks["several nodes"]["resources"]["instance_type"] == "p5.48xlarge"
    assert tasks["spot"]["resources"]["use_spot"] is True
    assert "use_spot" not in tasks["several nodes"]["resources"]
    region = answers["spot"]["options"][0]["region"]
    assert tasks["spot"]["resources"]["infra"] == f"gcp/{region}"


def test_a_seller_that_skypilot_does_not_know_is_a_pool_of_machines_of_ones_own(answers, tasks):
    assert tasks["unknown to SkyPilot"]["resources"]["infra"] == "ssh"
    assert "SkyPilot does not know crusoe" in skypilot(answers["unknown to SkyPilot"])


def test_several_nodes_meet_at_the_first(answers, tasks):
    run = tasks["several nodes"]["run"]
    assert "--nnodes 2 --nproc-per-node 8" in run
    assert "--rdzv-backend c10d" in run
    assert "--rdzv-endpoint $FIRST_HOST:29500" in run
    assert "SKYPILOT_NODE_IPS" in run
    assert "--rdzv" not in tasks["one node"]["run"]
    assert "# FIRST_HOST" in launch(answers["several nodes"])


def test_a_service_has_its_replicas_and_says_when_it_is_ready(answers, tasks):
    best = answers["replicas"]["options"][0]
    service = tasks["replicas"]["service"]
    assert service["replicas"] == best["instances"] > 1
    assert service["readiness_probe"]["path"] == "/v1/models"
    assert tasks["replicas"]["resources"]["ports"] == 8000


def test_replicas_inside_one_machine_are_ranks_of_one_server(answers):
    best = answers["unknown to SkyPilot"]["options"][0]
    text = launch(answers["unknown to SkyPilot"])
    unit = best["gpus"] // best["instances"]
    assert unit > best["layout"]["gpus"]
    assert f"-tp {best['layout']['tensor']} -dp {unit // best['layout']['gpus']}" in text
    assert f"--max-num-seqs {best['batch']}" in text


def test_a_replica_over_two_machines_has_a_head_and_a_worker(answers, tasks):
    layout = answers["a replica over two"]["options"][0]["layout"]
    assert layout["gpus"] == 16
    run = tasks["a replica over two"]["run"]
    assert f"-tp {layout['tensor']} -pp {layout['pipeline']}" in run
    assert run.count("--nnodes 2 --node-rank $NODE_RANK --master-addr $FIRST_HOST") == 2
    assert run.count("--headless") == run.count("--port") == 1


def test_every_command_is_one_that_a_shell_can_read(answers, tasks):
    for name, task in tasks.items():
        for script in (task["run"], task["setup"], launch(answers[name])):
            done = subprocess.run(["bash", "-n"], input=script, text=True, capture_output=True, check=False)
            assert done.returncode == 0, (name, done.stderr)


def test_the_file_that_is_named_holds_the_task(tmp_path):
    target = tmp_path / "run.yaml"
    asked = ["estimate", "--model", "8b", "--tokens", "100b", "--gpu", "h100-sxm", "--as-of", "2026-11-20", "--launch"]
    assert CliRunner().invoke(cli, [*asked, "-o", str(target)]).exit_code == 0
    assert yaml.safe_load(target.read_text())["name"] == "train-8b"
    refused = CliRunner().invoke(cli, [*asked[:-1], "-o", str(target)])
    assert refused.exit_code == 2


def test_what_skypilot_has_no_name_for_is_refused(catalog):
    answer = estimate("8b", "100b", gpu="mi355x", catalog=catalog).payload
    with pytest.raises(UsageError, match="SkyPilot has no name for mi355x"):
        skypilot(answer)
    with pytest.raises(UsageError, match="--launch works"):
        skypilot({"kind": "tco"})


@pytest.mark.parametrize("form", ["json", "csv", "md"])
def test_a_script_is_not_written_in_another_format(form):
    asked = ["estimate", "--model", "8b", "--tokens", "100b", "--gpu", "h100-sxm", "--launch", "--format", form]
    done = CliRunner().invoke(cli, asked)
    assert done.exit_code == 2
    assert f"--launch writes a script, not {form}" in done.stderr
