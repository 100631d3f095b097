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
_SMALLEST_CHANGE = 0.002  # of a parameter or a width: what moved less is not listed


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
    from gpucost.physics.calibration import as_csv

    # what fits nothing: of the options typed beside it none may be ignored without a word
    if undo or listed:
        flag, also = ("--undo", {"kind", "machine", "software"}) if undo else ("--list", set())
        heeded = {flag[2:], "listed", "format_", "fields", "output_file", *also}
        if typed := _typed(lambda name: name not in heeded):
            raise click.UsageError(f"{flag} fits nothing, so it does not use {typed}: leave it out.")
    if undo:
        if machine is not None or log["software"] is not None:
            path, catalog = _place("training"), open_catalog()
            without = fits.without(catalog, machine) if machine else fits.without_stack(catalog, log["software"])
            _write(path, as_csv(without))
            say(f"{path} holds no run of {machine or log['software']} any more.")
            return
        # one bench made the calibrations of both kinds, so both go where none is named
        kinds = [kind] if spoke("kind") is ParameterSource.COMMANDLINE else list(FILES)
        is_undone = False
        for path in map(_place, kinds):
            before = path.with_suffix(".csv.bak")
            if before.exists():
                before.replace(path)
                say(f"{path} holds the calibration before the last one again.")
            elif path.exists():
                path.unlink()
                say(f"{path} is gone; the shipped calibration holds.")
            else:
                continue
            is_undone = True
        if not is_undone:
            say(f"there is no calibration of your own in {_place(kinds[0]).parent}.")
        return
    if estimate and kind != "training":
        raise click.UsageError("--estimate applies to training: leave it out with --kind serving.")
    if not (listed or log["from_log"]):
        # a bench is held to --gpu; everything else of a log describes the run that it is of
        benches = any(file.lower().endswith(".json") for file in (*files, measurements or ""))
        if typed := _typed(lambda name: name in _OF_A_LOG and not (benches and name == "gpu")):
            raise click.UsageError(f"{typed}: only with --from-log, the log of the run.")
        if not files and not measurements:
            raise click.UsageError("nothing to fit: name a bench, a file of your own runs, or a log with --from-log.")
    catalog = open_catalog()
    if listed:
        out.rows(fits.stacks_of(catalog), "calibrate stacks", catalog, title="Software of your own")
        return
    stack = _own_stack(kind, log)
    paths = [*files, *([] if measurements is None else [measurements])]
    bench_paths = [] if log["from_log"] else [path for path in paths if path.lower().endswith(".json")]
    both = bool(bench_paths) and spoke("kind") is not ParameterSource.COMMANDLINE  # a bench speaks of both
    runs_by_kind: dict[str, list[dict[str, Any]]] = {}
    for of in list(FILES) if both else [kind]:
        rows = _own_rows(catalog, of, paths if of == kind else bench_paths, log)
        if machine:
            rows = [{**row, "id": f"{machine}: {row.get('id') or number}"} for number, row in enumerate(rows, 1)]
        if rows or of == kind:
            runs_by_kind[of] = rows
    # lay one's own runs over the current calibrations, show what that changes, and keep it where asked
    changes: list[dict[str, Any]] = []
    hints: list[str] = []
    runs_used = 0
    for of, runs in runs_by_kind.items():
        stack_of_kind = stack if of == "training" else ""
        read = fits.read_own(catalog, of, runs, stack_of_kind)
        calibration, rows = fits.fit_read(catalog, of, read, stack_of_kind)
        if save:
            _write(_place(of), as_csv(rows))
        if len(runs_by_kind) == 1 and _as_table(out, rows):
            return
        hints += _first("left out: ", [f"{shown(entry['id'])}: {entry['reason']}" for entry in read.skipped])
        kin = [(row.id, note) for row in read.rows for note in row.notes if " taken as " in note]
        hints += _first("", [f"{shown(name)}: {note}" for name, note in kin])
        runs_used += len(read.rows)
        if estimate and of == "training":
            changes += _changes_of_estimate(catalog, estimate, calibration)
        changes += fits.changes(catalog, of, rows, _SMALLEST_CHANGE)
    hints += [] if save else ["Nothing is kept yet: --save lays this over the shipped calibration."]
    title = f"What {f'{runs_used} of your own runs change' if runs_used > 1 else 'your run changes'}"
    if len(runs_by_kind) > 1:
        title += ", in training and in serving"
    out.rows(changes, "calibrate changes", catalog, hints, title)


def _typed(of: Callable[[str], bool]) -> str:
    """Return the options of a kind that stand on the command line."""
    options = [option for option in click.get_current_context().command.params if option.name and of(option.name)]
    return ", ".join(option.opts[0] for option in options if spoke(str(option.name)) is ParameterSource.COMMANDLINE)


def _as_table(out: Output, rows: list[dict[str, Any]]) -> bool:
    """Write a calibration as the CSV that commands read, where CSV was asked for."""
    from gpucost.physics.calibration import as_csv
    from gpucost.render.table_csv import safe_text

    if out.format != "csv" or out.fields:
        return False
    out.text(as_csv([{key: safe_text(value) for key, value in row.items()} for row in rows]))
    return True


def _own_stack(kind: str, log: dict[str, Any]) -> str:
    """Return the class of one's own that is asked for; the name of a stack of others, which a log is of, is none."""
    from gpucost.arguments.kinds import OWN_NAME
    from gpucost.physics.software import software_class
    from gpucost.workloads.training import SOFTWARE

    name = str(log["software"] or "").strip().lower()
    if not name or kind != "training":
        if name and not log["from_log"]:
            raise click.UsageError("--software names classes of training stacks; an engine is named with --from-log.")
        return ""
    is_shipped = name in SOFTWARE or software_class(name) != "unknown"
    if is_shipped and log["from_log"]:
        return ""
    if is_shipped:
        raise click.UsageError(f"--software: {name!r} is the name of a shipped class or stack. Take another.")
    if not OWN_NAME.fullmatch(name):
        # the name becomes a value of --software, and a key of the calibration
        rule = "small letters, digits, dots and hyphens, a letter first, at most 40"
        raise click.UsageError(f"--software: {shown(log['software'])} is not a valid class name: use {rule}.")
    log["software"] = None  # the runs are of this class, not of a stack that the fit would look up
    return name


def _first(prefix: str, reasons: Sequence[str]) -> list[str]:
    """Return the first of some reasons as sentences, and how many more there are."""
    more = len(reasons) - _MOST_REASONS
    return [f"{prefix}{reason}." for reason in reasons[:_MOST_REASONS]] + [f"{prefix}{more:,} more."] * (more > 0)


_MOST_REASONS = 5  # of runs that are left out, or taken as something else
# The figures of a saved estimate that are shown before and after, and the ends of their ranges.
_FIGURES = {
    "cost_usd": "USD, the first option",
    "cost_low_usd": "USD, its low end",
    "cost_high_usd": "USD, its high end",
    "days": "days",
    "tokens_per_s_per_gpu": "tokens per second and GPU",
}
_ENDS = {
    "cost_usd": ("cost_low_usd", "cost_high_usd"),
    "days": ("days_low", "days_high"),
    "tokens_per_s_per_gpu": ("tokens_per_s_per_gpu_low", "tokens_per_s_per_gpu_high"),
}


def _changes_of_estimate(catalog: "Catalog", path: str, calibration: "Calibration") -> list[dict[str, Any]]:
    """Return how the figures of a saved estimate move from the current calibration to another one, a row each."""
    from gpucost.answers.saved import read_estimate, reading
    from gpucost.ask.estimate import rerun
    from gpucost.catalog.calibrations import training_calibration

    def width(option: Mapping[str, Any], name: str) -> float:
        # of a range: the logarithm of its high end ÷ its low end; 0 where it has none
        low, high = (float(option[end]) for end in _ENDS.get(name, (name, name)))
        return math.log(high / low) if low > 0 else 0.0

    saved = read_estimate(path)
    with reading(path):
        calibrations = (training_calibration(catalog), calibration)
        firsts: list[Mapping[str, Any]] = [rerun(saved, efficiencies)["options"][0] for efficiencies in calibrations]
        old, new = firsts
        # the first option may be another cluster after than before
        clusters = ", then ".join(dict.fromkeys(f"{option['gpus']} × {option['gpu']}" for option in (old, new)))
        rows = []
        for name, meaning in _FIGURES.items():
            before, after, width_before = float(old[name]), float(new[name]), width(old, name)
            rows.append(
                {
                    "name": name,
                    "before": before,
                    "after": after,
                    "change_fraction": after / before - 1 if before else None,
                    "narrower_fraction": 1 - width(new, name) / width_before if width_before else None,
                    "meaning": f"{meaning} ({clusters})",
                }
            )
    return rows


def _own_rows(catalog: "Catalog", kind: str, files: list[str], log: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the user's own runs as rows of measurements."""
    from gpucost.bench import file as from_bench
    from gpucost.bench.file import read_bench
    from gpucost.bench.verdict import accelerator_of
    from gpucost.calibration import serving
    from gpucost.calibration.load_results import TestedServer, is_result, read_results, sentence_of, serving_row
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
    if not log["from_log"]:
        return rows
    if kind != "serving" or not is_result(log["from_log"]):
        return [*rows, _log_row(log, kind)]
    # the load tests of a result, as runs of serving
    if typed := _typed(lambda name: name in _STATED_BY_RESULTS):
        raise click.UsageError(f"{typed}: the result of a load test says it itself. Leave it out.")
    # the file states its load and its figures; what it is of may be missing
    degrees = {name: log[name] for name in ("model", "gpu", "gpus", "tensor", "precision")}
    tests = read_results(log["from_log"], TestedServer(**degrees, engine=log["software"]))
    for test in tests:
        say(sentence_of(test))
    return [*rows, *(serving_row(test) for test in tests)]


_ENGINES = ("vllm", "sglang")  # whose own logs say the speed again and again
_DEGREES = {"tensor": "tp", "pipeline": "pp"}
_SPLITS = (*_DEGREES, "context")  # what parts one copy of the model over GPUs
# An option -> its column in models/measurements/training.csv.
_LAYOUT_COLUMNS = {
    "gpus": "n_gpus",
    "sequence": "seq_len",
    "global_batch": "global_batch",
    "micro_batch": "micro_batch",
    **_DEGREES,
    "context": "cp",
    "expert": "ep",
    "sharding": "zero_stage",
    "recompute": "activation_recompute",
}
_STATED_BY_RESULTS = {"prompt_tokens", "output_tokens", "concurrency"}
_OF_A_LOG = {"model", "gpu", *_LAYOUT_COLUMNS, *_STATED_BY_RESULTS, "precision"}


def _log_row(log: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return the run that a log tells of."""
    from gpucost.bench.logs import lines_of, read_log, training_speed

    read = read_log(lines_of(log["from_log"]), log["from_log"])
    serves = read.format.phase == "serving"

    def value_of(value: Any) -> Any:
        return value if value is None or isinstance(value, str) else int(value)

    # a batch may grow in a run: what the log says of it first counts
    stated_layout = {**read.layout, "global_batch": read.stated("global_batch") or 0}
    log_layout = {name: value_of(stated_layout.get(name)) for name in _LAYOUT_COLUMNS}
    # what is typed holds; what is not, the log says
    from_layout = [name for name in _LAYOUT_COLUMNS if log[name] is None and name in read.layout]
    for name, value in log_layout.items():
        if log[name] is not None and value and log[name] != value:
            say(f"--{name.replace('_', '-')} {log[name]} holds, though {log['from_log']} says {value}.")
    log |= {name: log_layout[name] for name in from_layout}
    if serves and not log["gpus"] and log["tensor"]:
        log["gpus"] = log["tensor"] * (log["pipeline"] or 1)
    log["gpus"] = log["gpus"] or None
    missing = [f"--{name}" for name in ("model", "gpu", "gpus") if not log[name]]
    if missing:
        raise click.UsageError(f"--from-log needs a description of the run: give {', '.join(missing)}.")
    if read.format.phase != kind:
        raise click.UsageError(f"{log['from_log']} is a log of {read.format.phase}: give --kind {read.format.phase}.")
    layout_text = ", ".join(
        f"{name.replace('_', ' ')} {log[name]}" for name in from_layout if not serves or name in _DEGREES
    )
    say(f"{log['from_log']} is of {read.format.name}{f' and says {layout_text}' if layout_text else ''}.")
    # what every run of a log is known by; the day of its last line dates software that names no version
    path = Path(log["from_log"])
    day = date.fromtimestamp(path.stat().st_mtime).isoformat()
    identity = {"id": path.name, "source_name": "your log", "as_of": day, "core": 1, "n_gpus": log["gpus"]}
    identity |= {"model": log["model"], "gpu": log["gpu"]}
    if serves:
        return identity | _columns_of_service(log, read)
    if log["gpus"] % (degrees := math.prod(log[name] or 1 for name in _SPLITS)):
        product = " × ".join(f"{name} {log[name] or 1}" for name in _SPLITS)
        raise click.UsageError(f"{product} is {degrees}, and {log['gpus']} GPUs are not a multiple of it.")
    if not log["global_batch"] and log["sequence"] and (step_tokens := read.stated("tokens_per_step")):
        log["global_batch"] = round(step_tokens / log["sequence"])
    batch = log["global_batch"] or read.stated("global_batch")
    speed = training_speed(read, gpus=log["gpus"], sequence_tokens=log["sequence"], global_batch=log["global_batch"])
    say(f"{speed:,.5g} tokens per second and GPU, the median of {len(read.readings):,} lines without the warm-up.")
    return {
        **identity,
        **{column: log[name] for name, column in _LAYOUT_COLUMNS.items()},
        "framework": log["software"] or read.format.name,
        "global_batch": batch,
        "measured_tokens_per_s_per_gpu": speed,
    }


def _columns_of_service(log: dict[str, Any], read: "Log") -> dict[str, Any]:
    """Return the replica that a serving log tells of, in the columns of models/measurements/serving.csv."""
    # what is not typed follows from the totals of the log: tokens ÷ requests
    requests = read.last("requests")
    for name in ("prompt_tokens", "output_tokens"):
        total = read.last(name)
        log[name] = log[name] or (round(total / requests) if total and requests else None)
    missing = [f"--{name.replace('_', '-')}" for name in ("prompt_tokens", "output_tokens") if not log[name]]
    if missing:
        raise click.UsageError(f"a serving log needs the lengths of requests: give {', '.join(missing)}.")
    # a server's own log says its speed again and again: its usual one; of several benchmarks in one file the newest
    take = read.usual if read.format.name in _ENGINES else read.last
    speed, tpot_s = take("output_tokens_per_s"), take("tpot_s") or take("itl_s")
    if speed:
        say(f"{speed:,.5g} output tokens per second of the replica.")
    return {
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

    # the book is where a person's own prices and calibrations lie
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
    # one step back is kept: `--undo` takes it
    if path.exists():
        write_text(path.with_suffix(".csv.bak"), path.read_text("utf-8"))
    write_text(path, text)
    say(f"kept in {path}; `gpucost calibrate --undo` removes it.")
