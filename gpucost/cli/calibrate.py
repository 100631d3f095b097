"""`gpucost calibrate`: fit the efficiencies to one's own measurements, on top of the shipped ones."""

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from gpucost.cli.help import GroupedCommand
from gpucost.cli.messages import say
from gpucost.cli.options import Output, output_options, spoke
from gpucost.gate import shown
from gpucost.units import MS_PER_S

if TYPE_CHECKING:
    from gpucost.bench.logs import Log
    from gpucost.catalog import Catalog
    from gpucost.physics.calibration import Calibration

FILES = {"training": "calibration.csv", "serving": "serving_calibration.csv"}
SMALLEST_CHANGE = 0.002


@click.command(name="calibrate", cls=GroupedCommand)
@click.argument("files", type=click.Path(exists=True, dir_okay=False), nargs=-1, required=False)
@click.option(
    "--kind", type=click.Choice(["training", "serving"]), default="training", show_default=True, help="What is fitted."
)
@click.option(
    "--measurements",
    type=click.Path(dir_okay=False),
    metavar="FILE",
    help="Your own runs, in the columns of models/measurements/training.csv or serving.csv; the same as naming FILE.",
)
@click.option(
    "--from-log",
    type=click.Path(exists=True, dir_okay=False),
    metavar="LOG",
    help="The log of a training job or of a server, or the result of a load test (JSON or JSONL of vLLM, SGLang, "
    "GenAI-Perf, AIPerf, guidellm or inference-perf).",
)
@click.option("--model", metavar="NAME", help="With --from-log: the model.")
@click.option("--gpu", metavar="NAME", help="With --from-log: the accelerator.")
@click.option(
    "--gpus",
    type=click.IntRange(1),
    help="With --from-log: number of GPUs. This and the options below are read from the log where it states them.",
)
@click.option("--sequence", type=click.IntRange(1), help="With --from-log: tokens per sequence.")
@click.option("--global-batch", type=click.IntRange(1), help="With --from-log: sequences per step.")
@click.option("--micro-batch", type=click.IntRange(1), help="With --from-log: sequences per GPU and micro-step.")
@click.option("--tensor", type=click.IntRange(1), help="With --from-log: tensor-parallel degree.")
@click.option("--pipeline", type=click.IntRange(1), help="With --from-log: pipeline stages.")
@click.option("--context", type=click.IntRange(1), help="With --from-log: context-parallel degree.")
@click.option("--expert", type=click.IntRange(1), help="With --from-log: expert-parallel degree.")
@click.option(
    "--sharding",
    type=click.IntRange(0, 3),
    help="With --from-log: 0 none, 1 optimizer, 2 and gradients, 3 and weights (FSDP).",
)
@click.option(
    "--recompute", type=click.Choice(["none", "selective", "full"]), help="With --from-log: activations to recompute."
)
@click.option(
    "--software",
    metavar="NAME",
    help="Your own software class, such as my-stack; with --from-log also the stack, such as torchtitan.",
)
@click.option("--prompt-tokens", type=click.IntRange(1), help="With --from-log of serving: mean prompt of a request.")
@click.option("--output-tokens", type=click.IntRange(1), help="With --from-log of serving: mean output of a request.")
@click.option("--concurrency", type=click.IntRange(1), help="With --from-log of serving: requests at once.")
@click.option("--precision", default="bf16", metavar="NAME", help="With --from-log of serving: format of the weights.")
@click.option("--machine", metavar="NAME", help="Machine of the runs; calibrations of several machines are kept apart.")
@click.option(
    "--estimate",
    type=click.Path(exists=True, dir_okay=False),
    metavar="FILE",
    help="Show how a saved estimate changes.",
)
@click.option("--save", is_flag=True, help="Save the result in your book; every command then uses it.")
@click.option(
    "--undo", is_flag=True, help="Remove the calibration from your book; with --machine or --software, only theirs."
)
@click.option("--list", "listed", is_flag=True, help="List your own software classes.")
@output_options
def command(
    out: Output,
    files: tuple[str, ...],
    kind: str,
    measurements: str | None,
    machine: str | None,
    estimate: str | None,
    save: bool,
    undo: bool,
    listed: bool,
    **log: Any,
) -> None:
    """Fit the efficiencies of training or serving to measurements.

    FILES are benches (`gpucost bench`), or your own runs as CSV. They are laid over the shipped calibration, which
    they correct near what was run and as far as they say: one run a little, twenty much. Without --save the change is
    only shown.

    \b
    gpucost calibrate bench.json
    gpucost calibrate bench.json runs.csv --save --machine node7
    gpucost calibrate runs.csv --estimate saved.json
    gpucost calibrate --from-log train.log --model llama-3-8b --gpu h100-sxm \\
        --gpus 8 --sequence 8192 --save
    gpucost calibrate --kind serving --from-log vllm.log --model 70b \\
        --gpu h100-sxm --gpus 4 --prompt-tokens 1000 --output-tokens 250 --save
    gpucost calibrate --kind serving --from-log profile_export_aiperf.json \\
        --gpu h100-sxm --save
    gpucost calibrate runs.csv --software my-stack --save
    gpucost estimate --model 8b --tokens 100b --software my-stack
    gpucost calibrate --undo
    """
    from gpucost.calibration import fits
    from gpucost.catalog import open_catalog

    if undo or listed:
        _alone(*(("--undo", "kind", "machine", "software") if undo else ("--list",)))
    if undo:
        if machine is not None or log["software"] is not None:
            say(_without(machine, log["software"]))
            return
        asked = [kind] if spoke("kind") is ParameterSource.COMMANDLINE else list(FILES)
        for sentence in _undone(asked):
            say(sentence)
        return
    if estimate and kind != "training":
        raise click.UsageError("--estimate applies to training: leave it out with --kind serving.")
    if not (listed or log["from_log"]):
        _refuse_idle(files, measurements)
    catalog = open_catalog()
    if listed:
        out.rows(fits.stacks_of(catalog), "calibrate stacks", catalog, title="Software of your own")
        return
    stack = _stack(kind, log)
    named = [*files, *([] if measurements is None else [measurements])]
    benches = [] if log["from_log"] else [file for file in named if file.lower().endswith(".json")]
    both = bool(benches) and spoke("kind") is not ParameterSource.COMMANDLINE  # a bench speaks of both
    runs_by_kind: dict[str, list[dict[str, Any]]] = {}
    for of in list(FILES) if both else [kind]:
        rows = _own_rows(catalog, of, named if of == kind else benches, log)
        if machine:
            rows = [{**row, "id": f"{machine}: {row.get('id') or number}"} for number, row in enumerate(rows, 1)]
        if rows or of == kind:
            runs_by_kind[of] = rows
    _show_own(out, catalog, runs_by_kind, stack, estimate, save)


def _alone(flag: str, *also: str) -> None:
    """Refuse what was typed beside an option that fits nothing, but for what it takes and how it is written."""
    taken = {flag[2:], "listed", "format_", "fields", "output_file", *also}
    if typed := _typed(lambda name: name not in taken):
        raise click.UsageError(f"{flag} fits nothing, so it does not use {typed}: leave it out.")


def _refuse_idle(files: tuple[str, ...], measurements: str | None) -> None:
    """Refuse what was typed of a log where there is none, and of runs of one's own where no file holds any."""
    benches = any(file.lower().endswith(".json") for file in (*files, measurements or ""))  # a bench is held to --gpu
    if typed := _typed(lambda name: name in OF_A_LOG and not (benches and name == "gpu")):
        raise click.UsageError(f"{typed}: only with --from-log, the log of the run.")
    if not files and not measurements:
        raise click.UsageError("nothing to fit: name a bench, a file of your own runs, or a log with --from-log.")


def _typed(of: Callable[[str], bool]) -> str:
    """Return the options of a kind that stand on the command line."""
    named = [option for option in click.get_current_context().command.params if option.name and of(option.name)]
    return ", ".join(option.opts[0] for option in named if spoke(str(option.name)) is ParameterSource.COMMANDLINE)


def _as_table(out: Output, rows: list[dict[str, Any]]) -> bool:
    """Write a calibration as the CSV that commands read, where CSV was asked for."""
    from gpucost.physics.calibration import as_csv
    from gpucost.render.table_csv import safe_text

    if out.format != "csv" or out.fields:
        return False
    out.text(as_csv([{key: safe_text(value) for key, value in row.items()} for row in rows]))
    return True


def _show_own(
    out: Output,
    catalog: "Catalog",
    runs_by_kind: Mapping[str, list[dict[str, Any]]],
    stack: str,
    estimate: str | None,
    save: bool,
) -> None:
    """Lay one's own runs over the current calibrations; show what that changes, keep it where asked.

    A bench speaks of training and of serving at once.
    """
    from gpucost.calibration import fits
    from gpucost.physics.calibration import as_csv

    moved: list[dict[str, Any]] = []
    hint: list[str] = []
    used = 0
    for kind, runs in runs_by_kind.items():
        of_stack = stack if kind == "training" else ""
        read = fits.read_own(catalog, kind, runs, of_stack)
        calibration, rows = fits.fit_read(catalog, kind, read, of_stack)
        if save:
            _write(_place(kind), as_csv(rows))
        if len(runs_by_kind) == 1 and _as_table(out, rows):
            return
        hint += _first("left out: ", [f"{shown(entry['id'])}: {entry['reason']}" for entry in read.skipped])
        taken = [(row.id, note) for row in read.rows for note in row.notes if " taken as " in note]
        hint += _first("", [f"{shown(name)}: {note}" for name, note in taken])
        used += len(read.rows)
        if estimate and kind == "training":
            moved += _effect(catalog, estimate, calibration)
        moved += fits.changes(catalog, kind, rows, SMALLEST_CHANGE)
    hint += [] if save else ["Nothing is kept yet: --save lays this over the shipped calibration."]
    title = f"What {f'{used} of your own runs change' if used > 1 else 'your run changes'}"
    if len(runs_by_kind) > 1:
        title += ", in training and in serving"
    out.rows(moved, "calibrate changes", catalog, hint, title)


def _stack(kind: str, log: dict[str, Any]) -> str:
    """Return the class of one's own that is asked for; the name of a stack of others, which a log is of, is none."""
    from gpucost.arguments.kinds import OWN_NAME
    from gpucost.physics.software import software_class
    from gpucost.workloads.training import SOFTWARE

    name = str(log["software"] or "").strip().lower()
    if not name or kind != "training":
        if name and not log["from_log"]:
            raise click.UsageError("--software names classes of training stacks; an engine is named with --from-log.")
        return ""
    taken = name in SOFTWARE or software_class(name) != "unknown"
    if taken and log["from_log"]:
        return ""
    if taken:
        raise click.UsageError(f"--software: {name!r} is the name of a shipped class or stack. Take another.")
    if not OWN_NAME.fullmatch(name):
        rule = "small letters, digits, dots and hyphens, a letter first, at most 40"
        raise click.UsageError(f"--software: {shown(log['software'])} is not a valid class name: use {rule}.")
    log["software"] = None
    return name


def _first(prefix: str, reasons: Sequence[str]) -> list[str]:
    """Return the first of some reasons as sentences, and how many more there are."""
    more = len(reasons) - MOST_SKIPPED
    return [f"{prefix}{reason}." for reason in reasons[:MOST_SKIPPED]] + [f"{prefix}{more:,} more."] * (more > 0)


def _without(machine: str | None, stack: str | None) -> str:
    """Take a named machine's runs, or a class of one's own, out of the book."""
    from gpucost.calibration import fits
    from gpucost.catalog import open_catalog
    from gpucost.physics.calibration import as_csv

    path, catalog = _place("training"), open_catalog()
    left = fits.without(catalog, machine) if machine else fits.without_stack(catalog, str(stack))
    _write(path, as_csv(left))
    return f"{path} holds no run of {machine or stack} any more."


MOST_SKIPPED = 5  # runs that are left out, or taken as something, of which the reason is told
FIGURES = {
    "cost_usd": "USD, the first option",
    "cost_low_usd": "USD, its low end",
    "cost_high_usd": "USD, its high end",
    "days": "days",
    "tokens_per_s_per_gpu": "tokens per second and GPU",
}
ENDS = {
    "cost_usd": ("cost_low_usd", "cost_high_usd"),
    "days": ("days_low", "days_high"),
    "tokens_per_s_per_gpu": ("tokens_per_s_per_gpu_low", "tokens_per_s_per_gpu_high"),
}


def _effect(catalog: "Catalog", path: str, calibration: "Calibration") -> list[dict[str, Any]]:
    """Return a saved estimate's figures under the current calibration and under another one."""
    from gpucost.answers.saved import read_estimate, reading
    from gpucost.ask.estimate import rerun
    from gpucost.catalog.calibrations import training_calibration

    saved = read_estimate(path)
    both = (training_calibration(catalog), calibration)
    with reading(path):
        sides: list[Mapping[str, Any]] = [rerun(saved, one)["options"][0] for one in both]
        return _moved(sides)


def _moved(sides: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return how the figures of an option moved, a row each."""
    where = ", then ".join(dict.fromkeys(f"{side['gpus']} × {side['gpu']}" for side in sides))
    rows = []
    for name, meaning in FIGURES.items():
        before, after = (float(side[name]) for side in sides)
        moved = after / before - 1 if before else None
        change = {"name": name, "before": before, "after": after, "change_fraction": moved}
        wide, now = (_width(side, name) for side in sides)
        narrower = 1 - now / wide if wide else None
        rows.append({**change, "narrower_fraction": narrower, "meaning": f"{meaning} ({where})"})
    return rows


def _width(option: Mapping[str, Any], name: str) -> float:
    """Return how wide the range of a figure is: the logarithm of its high end ÷ its low end; 0 where it has none."""
    low, high = (float(option[end]) for end in ENDS.get(name, (name, name)))
    return math.log(high / low) if low > 0 else 0.0


def _own_rows(catalog: "Catalog", kind: str, files: list[str], log: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the user's own runs as rows of measurements."""
    from gpucost.bench import file as from_bench
    from gpucost.bench.file import read_bench
    from gpucost.bench.verdict import accelerator_of
    from gpucost.calibration import serving
    from gpucost.calibration.load_results import is_result
    from gpucost.calibration.measurements import read_file

    rows: list[dict[str, Any]] = []
    for file in files:
        if not file.lower().endswith(".json"):
            rows += [dict(row) for row in read_file(file)]
            continue
        bench = read_bench(file)
        chip = accelerator_of(catalog, str(bench["machine"]["device"]))
        if chip is None:
            raise click.UsageError(f"{file}: no accelerator on record is called {bench['machine']['device']}.")
        if log["gpu"] and (stated_chip := catalog.accelerator(log["gpu"])).id != chip.id:
            raise click.UsageError(f"{file} is a bench of {chip.id}, not of {stated_chip.id}: leave --gpu out.")
        if kind == "training":
            rows += from_bench.training_rows(bench, chip.id)
        else:
            rows += serving.own_steps(from_bench.serving_steps(bench, chip.id))
    if log["from_log"]:
        rows += _result_rows(log) if kind == "serving" and is_result(log["from_log"]) else [_log_row(log, kind)]
    return rows


def _result_rows(log: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the load tests of a result, as runs of serving."""
    from gpucost.calibration.load_results import TestedServer, read_results, sentence_of, serving_row

    if typed := _typed(lambda name: name in STATED_BY_RESULTS):
        raise click.UsageError(f"{typed}: the result of a load test says it itself. Leave it out.")
    path = log["from_log"]
    degrees = {name: log[name] for name in ("model", "gpu", "gpus", "tensor", "precision")}
    tests = read_results(path, TestedServer(**degrees, engine=log["software"]))
    for test in tests:
        say(sentence_of(test))
    return [serving_row(test) for test in tests]


ENGINES = ("vllm", "sglang")  # whose own logs say the speed again and again
DEGREES = {"tensor": "tp", "pipeline": "pp"}
SPLITS = (*DEGREES, "context")  # what parts one copy of the model over GPUs
LAYOUT_COLUMNS = {
    "gpus": "n_gpus",
    "sequence": "seq_len",
    "global_batch": "global_batch",
    "micro_batch": "micro_batch",
    **DEGREES,
    "context": "cp",
    "expert": "ep",
    "sharding": "zero_stage",
    "recompute": "activation_recompute",
}
STATED_BY_RESULTS = {"prompt_tokens", "output_tokens", "concurrency"}
OF_A_LOG = {"model", "gpu", *LAYOUT_COLUMNS, "prompt_tokens", "output_tokens", "concurrency", "precision"}


def _log_row(log: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return the run that a log tells of."""
    from gpucost.bench.logs import lines_of, read_log, training_speed

    read = read_log(lines_of(log["from_log"]), log["from_log"])
    serves = read.format.phase == "serving"
    from_layout = [name for name in LAYOUT_COLUMNS if log[name] is None and name in read.layout]
    log_layout = {
        **read.layout,
        "global_batch": read.stated("global_batch") or 0,
    }  # a batch grows: its lines come first
    for name in LAYOUT_COLUMNS:
        in_log = value if isinstance(value := log_layout.get(name), str) else value and int(value)
        if log[name] is not None and in_log and log[name] != in_log:
            say(f"--{name.replace('_', '-')} {log[name]} holds, though {log['from_log']} says {in_log}.")
    log |= {name: value if isinstance(value := log_layout[name], str) else int(value) for name in from_layout}
    if serves and not log["gpus"] and log["tensor"]:
        log["gpus"] = log["tensor"] * (log["pipeline"] or 1)
    log["gpus"] = log["gpus"] or None
    missing = [f"--{name}" for name in ("model", "gpu", "gpus") if not log[name]]
    if missing:
        raise click.UsageError(f"--from-log needs a description of the run: give {', '.join(missing)}.")
    if read.format.phase != kind:
        raise click.UsageError(f"{log['from_log']} is a log of {read.format.phase}: give --kind {read.format.phase}.")
    layout_text = ", ".join(
        f"{name.replace('_', ' ')} {log[name]}" for name in from_layout if not serves or name in DEGREES
    )
    say(f"{log['from_log']} is of {read.format.name}{f' and says {layout_text}' if layout_text else ''}.")
    if serves:
        return _served_row(log, read)
    if log["gpus"] % (degrees := math.prod(log[name] or 1 for name in SPLITS)):
        product = " × ".join(f"{name} {log[name] or 1}" for name in SPLITS)
        raise click.UsageError(f"{product} is {degrees}, and {log['gpus']} GPUs are not a multiple of it.")
    if not log["global_batch"] and log["sequence"] and (step_tokens := read.stated("tokens_per_step")):
        log["global_batch"] = round(step_tokens / log["sequence"])
    batch = log["global_batch"] or read.stated("global_batch")
    speed = training_speed(read, gpus=log["gpus"], sequence_tokens=log["sequence"], global_batch=log["global_batch"])
    say(f"{speed:,.5g} tokens per second and GPU, the median of {len(read.readings):,} lines without the warm-up.")
    return (
        _of_log(log)
        | {column: log[name] for name, column in LAYOUT_COLUMNS.items()}
        | {
            "framework": log["software"] or read.format.name,
            "global_batch": batch,
            "measured_tokens_per_s_per_gpu": speed,
        }
    )


def _of_log(log: dict[str, Any]) -> dict[str, Any]:
    """Return what every run of a log is known by; the day of its last line dates software that names no version."""
    path = Path(log["from_log"])
    day = date.fromtimestamp(path.stat().st_mtime).isoformat()
    identity = {"id": path.name, "source_name": "your log", "as_of": day, "core": 1, "n_gpus": log["gpus"]}
    return {**identity, "model": log["model"], "gpu": log["gpu"]}


def _served_row(log: dict[str, Any], read: "Log") -> dict[str, Any]:
    """Return the replica that a serving log tells of, in the columns of models/measurements/serving.csv."""
    requests = read.last("requests")
    for name in ("prompt_tokens", "output_tokens"):
        total = read.last(name)
        log[name] = log[name] or (round(total / requests) if total and requests else None)
    missing = [f"--{name.replace('_', '-')}" for name in ("prompt_tokens", "output_tokens") if not log[name]]
    if missing:
        raise click.UsageError(f"a serving log needs the lengths of requests: give {', '.join(missing)}.")
    take = read.usual if read.format.name in ENGINES else read.last  # the newest of several benchmarks, whole
    speed, tpot_s = take("output_tokens_per_s"), take("tpot_s") or take("itl_s")
    if speed:
        say(f"{speed:,.5g} output tokens per second of the replica.")
    return _of_log(log) | {
        "tp": log["gpus"],
        "engine": log["software"] or read.format.name.split("-")[0],
        "weight_precision": log["precision"],
        "scenario": "serving",
        "isl": log["prompt_tokens"],
        "osl": log["output_tokens"],
        "batch_or_concurrency": log["concurrency"] or take("concurrency"),
        "measured_output_tokens_per_s": speed,
        "tpot_ms": None if tpot_s is None else tpot_s * MS_PER_S,
    }


def _place(kind: str) -> Path:
    """Return the file of the user's own book that holds a calibration."""
    from gpucost.catalog.settings import book_folder

    folder = book_folder()
    if folder is None:
        raise click.UsageError("there is no home folder for a price book. Name one with GPUCOST_BOOK.")
    if folder.is_file():
        raise click.UsageError(f"your book {folder} is a single file: make it a folder to keep a calibration in it.")
    return folder / FILES[kind]


def _write(path: Path, text: str) -> None:
    """Keep a calibration; the one before it stays beside it as .bak."""
    from gpucost.store.files import write_text

    path.parent.mkdir(parents=True, exist_ok=True)
    if path.exists():
        write_text(path.with_suffix(".csv.bak"), path.read_text("utf-8"))
    write_text(path, text)
    say(f"kept in {path}; `gpucost calibrate --undo` removes it.")


def _undone(kinds: Sequence[str]) -> list[str]:
    """Take back the last calibration of each kind, as one bench made them; say what holds now."""
    told = []
    for path in map(_place, kinds):
        before = path.with_suffix(".csv.bak")
        if before.exists():
            before.replace(path)
            told.append(f"{path} holds the calibration before the last one again.")
        elif path.exists():
            path.unlink()
            told.append(f"{path} is gone; the shipped calibration holds.")
    return told or [f"there is no calibration of your own in {_place(kinds[0]).parent}."]
