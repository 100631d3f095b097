"""What starts an answer: the command for a shell."""

import subprocess

import pytest
from click.testing import CliRunner

from gpucost import estimate, inference
from gpucost.catalog import open_catalog
from gpucost.cli import cli
from gpucost.errors import UsageError
from gpucost.render.launch import launch


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
        "several in a machine": inference("70b", precision="fp8", provider="crusoe", catalog=catalog).payload,
        "a replica over two": inference(
            "llama-3.1-405b", precision="bf16", provider="aws", gpu="h100-sxm", option="on_demand", catalog=catalog
        ).payload,
    }


def test_several_nodes_meet_at_the_first(answers):
    run = launch(answers["several nodes"])
    assert "--nnodes 2 --nproc-per-node 8" in run
    assert "--rdzv-backend c10d" in run
    assert "--rdzv-endpoint $FIRST_HOST:29500" in run
    assert "--rdzv" not in launch(answers["one node"])
    assert "# FIRST_HOST" in run


def test_replicas_inside_one_machine_are_ranks_of_one_server(answers):
    best = answers["several in a machine"]["options"][0]
    text = launch(answers["several in a machine"])
    unit = best["gpus"] // best["instances"]
    assert unit > best["layout"]["gpus"]
    assert f"-tp {best['layout']['tensor']} -dp {unit // best['layout']['gpus']}" in text
    assert f"--max-num-seqs {best['batch']}" in text


def test_a_replica_over_two_machines_has_a_head_and_a_worker(answers):
    layout = answers["a replica over two"]["options"][0]["layout"]
    assert layout["gpus"] == 16
    run = launch(answers["a replica over two"])
    assert f"-tp {layout['tensor']} -pp {layout['pipeline']}" in run
    assert run.count("--nnodes 2 --node-rank $NODE_RANK --master-addr $FIRST_HOST") == 2
    assert run.count("--headless") == run.count("--port") == 1


def test_every_command_is_one_that_a_shell_can_read(answers):
    for name, answer in answers.items():
        done = subprocess.run(["bash", "-n"], input=launch(answer), text=True, capture_output=True, check=False)
        assert done.returncode == 0, (name, done.stderr)


def test_what_neither_trains_nor_serves_is_not_started():
    with pytest.raises(UsageError, match="--launch works"):
        launch({"kind": "tco"})


@pytest.mark.parametrize("form", ["json", "csv", "md"])
def test_a_script_is_not_written_in_another_format(form):
    asked = ["estimate", "--model", "8b", "--tokens", "100b", "--gpu", "h100-sxm", "--launch", "--format", form]
    done = CliRunner().invoke(cli, asked)
    assert done.exit_code == 2
    assert f"--launch writes a script, not {form}" in done.stderr
