"""Hold the reader of configurations against transformers: every model of the tests built on the meta device.

python -m benchmarks.architectures            # compare with the counts in tests/architectures/published.json
python -m benchmarks.architectures --write    # and write transformers' counts into that file
python -m benchmarks.architectures defaults   # rebuild gpucost/architectures/class_defaults.json

Needs the extra `truth` (transformers, torch). Nothing is downloaded: a configuration says what to build, and the meta
device holds no weights. A correction bias of a router is a buffer there and a parameter in published weight files; it
is counted.
"""

import json
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "tests" / "architectures" / "published.json"
DEFAULTS = ROOT / "gpucost" / "architectures" / "class_defaults.json"
_MOST_OFF = 1e-3  # of a count: rounding of published figures, not a layer read wrongly
TEXT = ("text_config", "llm_config", "thinker_config")  # where wrappers keep the language model


def _transformers_count(config: dict[str, Any]) -> int | None:
    """Return the parameters of the language model that transformers builds, or None where it cannot."""
    import torch
    from transformers import AutoConfig, AutoModel, AutoModelForCausalLM

    inner = next((dict(config[key]) for key in TEXT if isinstance(config.get(key), dict)), None)
    plain = dict(inner or config)
    if inner is not None and config.get("tie_word_embeddings") is not None:
        plain["tie_word_embeddings"] = config["tie_word_embeddings"]
    plain.pop("quantization_config", None)  # packed weights would be counted as what they are packed in
    try:
        model_config = AutoConfig.for_model(plain.pop("model_type"), **plain)
        with torch.device("meta"):
            try:
                model = AutoModelForCausalLM.from_config(model_config)
                head = 0
            except ValueError:  # a language model that has no head of its own in the library
                model = AutoModel.from_config(model_config)
                head = 0 if model_config.tie_word_embeddings else model_config.vocab_size * model_config.hidden_size
    except Exception:  # whatever a library of many authors raises for what it does not know
        return None
    corrections = sum(buffer.numel() for name, buffer in model.named_buffers() if "correction" in name)
    return sum(parameter.numel() for parameter in model.parameters()) + corrections + head


def compare(write: bool) -> int:
    """Print both counts of every model; return the exit status, 5 where one is off by a thousandth or more."""
    from gpucost.architectures.reader import architecture_of
    from gpucost.physics.transformer import stack, total_parameters

    table = json.loads(TABLE.read_text("utf-8"))
    worst = 0.0
    for name, entry in table.items():
        counted = float(total_parameters(stack([architecture_of(entry["config"], name)]))[0])
        truth = _transformers_count(entry["config"]) if entry["truth"] == "transformers" else entry["parameters"]
        truth = truth or entry["parameters"]  # where the installed version does not know the model
        if not truth:
            print(f"{name:28} {counted:18,.0f}  no truth")
            continue
        worst = max(worst, abs(counted / truth - 1))
        print(f"{name:28} {counted:18,.0f} {truth:18,.0f} {counted / truth - 1:+.2e} {entry['truth']}")
        entry["parameters"] = truth
    if write:
        lines = (f"{json.dumps(name)}: {json.dumps(entry, separators=(',', ':'))}" for name, entry in table.items())
        TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    print(f"{len(table)} models; the largest difference is {worst:.2e}")
    return 0 if worst < _MOST_OFF else 5


# parts of names that say nothing of a model's shape
_NO_SHAPE = (
    "token", "dropout", "drop", "_std", "init", "eps", "rope", "_coef", "loss", "softcap", "scal", "multiplier",
    "dtype", "use_cache", "return_", "output_", "chunk_size_feed", "version", "architectures", "label", "is_",
    "norm_topk", "clip", "jitter", "summary", "time_step", "image", "video", "vision", "audio", "alpha", "beta",
    "scor", "rotary", "act_fn", "gradient", "mem_eff", "kernels", "upcast", "reorder", "residual_in", "rescale",
    "logits", "seed", "type_vocab", "problem", "theta", "swiglu", "bidirect", "cls", "sep_", "merge", "patch",
    "projector", "codebook", "classifier", "query_pre", "pretraining", "hash", "_iters", "aux", "routed_scaling",
    "topk_group", "n_group", "rel_", "log_", "bos", "eos", "pad_",
)  # fmt: skip
# wrappers of a text model of any class: the class that they hold by default
_TEXT_OF = {
    **dict.fromkeys(("llava", "llava_next", "llava_next_video", "vipllava", "idefics3", "smolvlm"), "llama"),
    **dict.fromkeys(("mistral3", "idefics2", "pixtral"), "mistral"),
    **dict.fromkeys(("internvl", "llava_onevision", "qwen2_audio"), "qwen2"),
    "paligemma": "gemma",
    "aya_vision": "cohere2",
}  # fmt: skip


def defaults() -> int:
    """Write the defaults of the language model classes of transformers, and which text class a wrapper holds."""
    import dataclasses

    from transformers.models.auto import modeling_auto as auto
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    defaults_of: dict[str, dict[str, Any]] = {}

    def is_shape(name: str, value: Any) -> bool:
        """Tell whether a default may change how many parameters a model has."""
        if name.startswith("qk_"):  # qk_rope_head_dim is a size, though other names with `rope` are none
            return isinstance(value, int)
        if not isinstance(value, (bool, int, str, list, tuple)) or value in (False, "", [], ()):
            return False
        if len(str(value)) >= 60:  # lists of labels
            return False
        return name.startswith("max_") or not any(part in name for part in _NO_SHAPE)

    def visit(kind: str, config_class: Any) -> None:
        if kind in defaults_of:
            return
        fields = {item.name: item.default for item in dataclasses.fields(config_class)}
        defaults_of[kind] = {name: value for name, value in fields.items() if is_shape(name, value)}
        for key, inner in (getattr(config_class, "sub_configs", None) or {}).items():
            text = getattr(inner, "model_type", "")
            if key in TEXT and text:
                defaults_of[kind]["_text"] = text
                visit(text, inner)

    for kind in (*auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, *auto.MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES):
        visit(kind, CONFIG_MAPPING[kind])
    for kind, text in _TEXT_OF.items():
        defaults_of.setdefault(kind, {})["_text"] = text
    lines = (
        f"{json.dumps(kind)}: {json.dumps(defaults_of[kind], separators=(',', ':'))}" for kind in sorted(defaults_of)
    )
    DEFAULTS.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(defaults() if "defaults" in sys.argv[1:] else compare("--write" in sys.argv[1:]))
