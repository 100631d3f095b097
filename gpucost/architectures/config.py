"""A configuration read key by key: every value is checked as it is taken; which part describes the language model."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from gpucost.errors import DataError
from gpucost.gate import beside, lists_beside, read_json, shown

_LARGEST = 10**15  # no dimension or count of a model is as large
MOST_LAYERS = 4096


# What configurations call each dimension, the first that a file has, and the parts of words that their keys are looked
# through for: keys.csv, a row for each name. Its lists are
#
# layers:         how many layers there are
# hidden:         width of the residual stream
# heads:          query heads
# kv_heads:       heads of keys and values
# head_dim:       dimension of a head
# ffn:            width of a dense feed-forward
# vocab:          rows of the embedding
# sequence:       longest sequence
# window:         tokens of a window or a chunk
# prediction:     layers of multi-token prediction
# experts:        routed experts
# per_token:      experts that a token visits
# expert_ffn:     width of an expert
# shared:         shared experts
# shared_ffn:     width of the shared experts
# each_shared_ffn: those of them that are not of all shared experts together
# first_dense:    leading layers without a mixture
# step:           one layer in so many is a mixture
# dense_ffn:      width of the dense layers of a mixture
# bias:           biases of attention
# kinds:          lists of the kinds of layers
# rhythms:        what such a list makes idle
# linear:         words for a layer that does not attend
# text:           parts that describe a language model
# nested:         parts whose keys count as those of the whole
# dimensions:     what makes a model, never assumed for a configuration that is not nested
# structural:     parts of keys that look as if they shaped a model; ^ and $ are the ends
# harmless:       parts of keys that shape nothing
# kept_wide:      lists of what a quantisation leaves in the wide format
KEYS = lists_beside(__file__, "keys")


def _has(key: str, signs: tuple[str, ...]) -> bool:
    return any(sign in f"^{key}$" for sign in signs)


def load(file: Path) -> dict[str, Any]:
    """Read a file that should hold one JSON object of moderate size; Infinity is a word there, which no number is."""
    config = read_json(file, constant=str)
    if not isinstance(config, dict):
        raise DataError("is not a JSON object. Name a model's config.json.", file=str(file))
    return config


def layer_of(text: str) -> int:
    """Return the number of the layer that a text names, −1 where it names none.

    >>> layer_of("02"), layer_of("x"), layer_of("9" * 5000)
    (2, -1, -1)
    """
    return int(text) if text.isdecimal() and len(text) < 9 else -1


class Fields:
    """The keys of one configuration, or of a part of it, and which of them were taken."""

    def __init__(self, values: Mapping[str, Any], file: str, defaults: Mapping[str, Any] | None = None) -> None:
        self.values, self.file, self.defaults = values, file, defaults or {}
        self.taken: set[str] = set()

    def __contains__(self, name: str) -> bool:
        return self.raw(name) is not None

    def raw(self, *names: str) -> Any:
        """Return the first of the named keys that the file sets, else that its class sets by default, else None."""
        for source in self._sources(names):
            for name in names:
                value = source.get(name)
                if value is not None:
                    return value
        return None

    def _sources(self, names: tuple[str, ...]) -> tuple[Mapping[str, Any], ...]:
        """Note names as taken, and return where to look for them.

        A key that the file sets, be it to null, leaves no room for the class's default.
        """
        self.taken.update(names)
        is_set = any(name in self.values for name in names)
        return (self.values,) if is_set else (self.values, self.defaults)

    def fail(self, problem: str) -> DataError:
        """Return the error that says what is wrong with this file."""
        return DataError(problem, file=self.file)

    def maybe(self, *names: str) -> int | None:
        """Return the first of the named keys that is set, as a whole number."""
        for source in self._sources(names):
            for name in names:
                value = source.get(name)
                if isinstance(value, list) and value and all(item == value[0] for item in value):
                    value = value[0]  # the same for every layer
                if value is not None and not isinstance(value, list):
                    return self.whole(name, value)
        return None

    def number(self, *names: str, default: int = 0) -> int:
        """Return the first of the named keys that is set, as a whole number, else the default."""
        value = self.maybe(*names)
        return default if value is None else value

    def whole(self, name: str, value: Any) -> int:
        """Check one value: a whole number of zero or more and of sane size."""
        # a bool is an int to Python, and 4096.0 a whole number to whoever wrote the file
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not 0 <= value <= _LARGEST or value != int(value):
            raise self.fail(f"{name} must be a whole number of zero or more, found {shown(value)}")
        return int(value)

    def ratio(self, name: str, default: float) -> float:
        """Return a key that holds a number of zero or more, whole or not."""
        value = self.raw(name)
        if value is None:
            return default
        is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not is_number or not 0 <= value <= _LARGEST:
            raise self.fail(f"{name} must be a number of zero or more, found {shown(value)}")
        return float(value)

    def flag(self, *names: str, default: bool = False) -> bool:
        """Return the first of the named keys that is set, as a yes or no."""
        value = self.raw(*names)
        if value is None:
            return default
        if not isinstance(value, (bool, int)):
            raise self.fail(f"{' or '.join(names)} must be true or false, found {shown(value)}")
        return bool(value)

    def word(self, name: str) -> str:
        """Return a key that holds a word, in lower case; empty where it holds none."""
        value = self.raw(name)
        return value.lower() if isinstance(value, str) else ""

    def words(self, *names: str) -> list[str] | None:
        """Return the first of the named keys that is a list of words, in lower case."""
        for name in names:
            value = self.raw(name)
            if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
                return [item.lower() for item in self._bounded(name, value)]
        return None

    def numbers(self, *names: str) -> list[int] | None:
        """Return the first of the named keys that is a list of whole numbers; a missing entry counts as zero."""
        for name in names:
            value = self.raw(name)
            if isinstance(value, list) and value and all(isinstance(item, (int, float, type(None))) for item in value):
                return [
                    int(item) if isinstance(item, bool) else self.whole(name, item or 0)
                    for item in self._bounded(name, value)
                ]
        return None

    def _bounded(self, name: str, value: list[Any]) -> list[Any]:
        if len(value) > MOST_LAYERS:
            raise self.fail(f"{name} lists {len(value)} items; no model has as many")
        return value

    def part(self, name: str) -> "Fields | None":
        """Return a nested part; its keys are recorded under its name."""
        value = self.raw(name)
        return Fields(value, self.file) if isinstance(value, Mapping) and value else None

    def unused(self) -> Iterator[str]:
        """Yield the keys that look as if they shaped the model and were never taken."""
        for name, value in self.values.items():
            # what is off, empty or a fraction (rates, scales) shapes nothing
            if name in self.taken or value in (None, False, 0, "", [], {}):
                continue
            if isinstance(value, float) and not value.is_integer():
                continue
            if not name.startswith("_") and _has(name, KEYS["structural"]) and not _has(name, KEYS["harmless"]):
                yield name


# --- What a configuration leaves unsaid.
#
# The library that writes configurations leaves out what equals the default of the class: nearly everything of a
# nested language model, and tied embeddings even of a plain one. `class_defaults.json` holds those defaults of the
# classes of Hugging Face's transformers, by model type; `benchmarks/architectures.py defaults` rebuilds it. The
# dimensions that make a model (layers, width, heads, vocabulary) are never assumed for a configuration that is not
# nested.


@cache
def class_defaults() -> dict[str, dict[str, Any]]:
    """Return the defaults of every known class by its model type."""
    defaults: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("class_defaults.json").read_text("utf-8"))
    return defaults


def defaults_of(kind: str, nested: bool) -> Mapping[str, Any]:
    """Return the defaults of a class: all of them for a nested configuration, the traits only for a plain one.

    >>> defaults_of("gemma", nested=False)["tie_word_embeddings"], defaults_of("llama", nested=True)["hidden_size"]
    (True, 4096)
    """
    traits = class_defaults().get(kind, {})
    return traits if nested else {key: value for key, value in traits.items() if key not in KEYS["dimensions"]}


# --- Which part of a configuration describes the language model, and what is no language model at all.

Config = Mapping[str, Any]

# why a model type of refused.csv is refused
_REFUSALS = {
    "no_attention": "has no attention; only transformers and their hybrids are understood",
    "encoder": "is an encoder, not a decoder-only language model",
    "two_stacks": "is an encoder with a decoder, no decoder-only language model",
    "no_language_model": "is no language model",
    "uncounted": "has layers that gpucost does not count",
}


def _refused_types() -> dict[str, str]:
    """Return the model types that are refused, each with its key of `_REFUSALS`."""
    return dict(beside(__file__, "refused")[1:])  # below the heading


def refusal_of(name: str) -> str:
    """Return why a model is refused whose name holds a refused model type; nothing where it holds none.

    >>> refusal_of("flan-t5-xxl")
    't5 is an encoder with a decoder, no decoder-only language model'
    """
    refused = _refused_types()
    words = (word for word in re.split(r"[-_/ .]+", name.lower()) if word in refused)
    return next((f"{word} {_REFUSALS[refused[word]]}" for word in words), "")


def class_names(config: Config) -> list[str]:
    """Return the classes that a configuration names as those of its model."""
    names = config.get("architectures")
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []


def refuse_other_models(config: Config, file: str) -> None:
    """Refuse what is no decoder-only language model, by what it is."""
    kind = str(config.get("model_type") or "").lower()
    if "_class_name" in config or "_diffusers_version" in config:
        class_name = str(config.get("_class_name") or "a part of a diffusion pipeline")
        raise DataError(f"describes {class_name[:60]}, part of a diffusion model, not a language model", file=file)
    refused_as = _refused_types().get(kind)
    # what calls itself an encoder with a decoder is refused, also where its type is not listed
    if config.get("is_encoder_decoder") is True and refused_as not in ("no_attention", "encoder"):
        refused_as = "two_stacks"
    if refused_as:
        raise DataError(f"model type {kind!r} {_REFUSALS[refused_as]}", file=file)
    # LLaDA and Dream write text by filling masks, with a decoder's layers
    masked = next((name for name in class_names(config) if name.endswith("ForMaskedLM")), None)
    if masked and not kind.startswith(("llada", "dream")):
        raise DataError(f"is a {masked[:60]}: an encoder, not a decoder-only language model", file=file)
    adapted = config.get("peft_type")
    if adapted:
        raise DataError(f"is an adapter ({str(adapted)[:20]}); name the config.json of its base model", file=file)


def text_part(config: Config) -> tuple[dict[str, Any], bool]:
    """Return the part that describes the language model, and whether it was nested in another.

    Tied embeddings stated outside win over those inside, as in the library that wrote the file.
    """
    part, nested = dict(config), False
    tied = config.get("tie_word_embeddings")
    for _ in range(3):  # omni models nest a thinker, and in it the text model
        inner = next((part[key] for key in KEYS["text"] if isinstance(part.get(key), dict) and part[key]), None)
        if inner is None:
            break
        # two keys stand outside of some; the part itself wins over them
        outer = {key: part[key] for key in ("vocab_size", "quantization_config") if part.get(key) is not None}
        nested = True
        # where the part has no model type, the library's class of the whole says of which its text model is
        wrapper = str(part.get("model_type") or "").lower()
        kind = class_defaults().get(wrapper, {}).get("_text") or wrapper
        part = {**outer, "model_type": kind, **inner}
        tied = tied if tied is not None else inner.get("tie_word_embeddings")
    if tied is not None:
        part["tie_word_embeddings"] = tied
    for key in KEYS["nested"]:  # such a part is laid under the keys beside it
        if isinstance(part.get(key), dict):
            part = {**part[key], **part}
    return part, nested


# --- The publishers' own formats: params.json of Llama and of Mistral, in the words of config.json.


def translated(config: Mapping[str, Any], file: str) -> Mapping[str, Any]:
    """Return a configuration in the words of config.json; any other is returned as it is.

    >>> llama = {"dim": 4096, "n_layers": 32, "n_heads": 32, "multiple_of": 256, "vocab_size": 32000}
    >>> translated(llama, "params.json")["intermediate_size"]
    11008
    """
    if "dim" not in config or "n_layers" not in config or "n_heads" not in config or "model_type" in config:
        return config
    if "hidden_dim" in config:  # Mistral's
        renamed, moe = _renamed(config), config.get("moe")
        renamed["model_type"] = "mistral"
        if isinstance(moe, Mapping):
            renamed |= _renamed(moe, "moe")
            renamed["model_type"] = "deepseek_v3" if "kv_lora_rank" in renamed else "mixtral"
        for theirs, ours in (("quantization", "quantization_config"), ("vision_encoder", "vision_config")):
            if config.get(theirs) is not None:
                renamed[ours] = config[theirs]
        return {"tie_word_embeddings": False, "torch_dtype": "bfloat16", **renamed}

    # Llama's: the feed-forward is two thirds of four times the width, scaled, and rounded up to a multiple (llama,
    # model.py). Llama 3.2 1B and 3B, the only ones narrower than 3,500, tie their embeddings, which the file leaves
    # out.
    f = Fields(config, file)
    width, step = f.number("dim"), f.number("multiple_of", default=256) or 256
    inner = int(2 * 4 * width / 3)
    inner = int(f.ratio("ffn_dim_multiplier", 1.0) * inner)
    vocab = config.get("vocab_size")
    if vocab in (None, -1):
        raise DataError("has vocab_size -1 (left to the tokenizer); set it, such as 32000 for Llama 2", file=file)
    longest = {"max_position_embeddings": config["max_seq_len"]} if "max_seq_len" in config else {}
    return {
        "model_type": "llama",
        "hidden_size": width,
        "num_hidden_layers": config["n_layers"],
        "num_attention_heads": config["n_heads"],
        "num_key_value_heads": config.get("n_kv_heads") or config["n_heads"],
        "intermediate_size": -(-inner // step) * step,
        "vocab_size": vocab,
        "tie_word_embeddings": width < 3500,
        "torch_dtype": "bfloat16",
        **longest,
    }


def _renamed(config: Mapping[str, Any], part: str = "") -> dict[str, Any]:
    """Return the keys of Mistral's format, or of a part of it, under the names of config.json (originals.csv)."""
    names = [(theirs, ours) for name, theirs, ours in beside(__file__, "originals")[1:] if name == part]
    return {ours: config[theirs] for theirs, ours in names if config.get(theirs) is not None}
