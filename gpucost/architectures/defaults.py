"""What a configuration leaves unsaid.

The library that writes configurations leaves out what equals the default of the class: nearly everything of a nested
language model, and tied embeddings even of a plain one. `class_defaults.json` holds those defaults of the classes of
Hugging Face's transformers, by model type; `benchmarks/architectures.py defaults` rebuilds it. The dimensions that
make a model (layers, width, heads, vocabulary) are never assumed for a configuration that is not nested.
"""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from gpucost.architectures.fields import KEYS


@cache
def class_defaults() -> dict[str, dict[str, Any]]:
    """Return the defaults of every known class by its model type."""
    found: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("class_defaults.json").read_text("utf-8"))
    return found


def defaults_of(kind: str, nested: bool) -> Mapping[str, Any]:
    """Return the defaults of a class: all of them for a nested configuration, the traits only for a plain one.

    >>> defaults_of("gemma", nested=False)["tie_word_embeddings"], defaults_of("llama", nested=True)["hidden_size"]
    (True, 4096)
    """
    known = class_defaults().get(kind, {})
    return known if nested else {key: value for key, value in known.items() if key not in KEYS["dimensions"]}
