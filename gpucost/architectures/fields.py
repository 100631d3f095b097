"""A configuration read key by key: every value is checked as it is taken, and what was never taken is known."""

from collections.abc import Iterator, Mapping
from typing import Any

from gpucost.errors import DataError
from gpucost.gate import shown

LARGEST = 10**15  # no dimension or count of a model is as large
MOST_LAYERS = 4096


def _words(text: str) -> tuple[str, ...]:
    return tuple(text.split())


# parts of keys that look as if they shaped a model, and of those that shape nothing; "^" and "$" are its ends
_STRUCTURAL = _words(
    """
    layer hidden head expert intermediate ffn rank window hybrid pattern share compress index latent kv_ _kv
    conv state ngram moe mlp embed block num_ ^n_ dim$ _dim_ _dims_ width _size$ mixer types$ residual
    bottleneck adapter gate
    """
)
_HARMLESS = _words(
    """
    token dropout drop_ pdrop drop$ _std initializer init_ _init norm_eps eps$ rope rotary theta _coef loss
    softcap _cap scale scaling multiplier factor dtype cache_impl use_cache attn_implementation pretraining
    version architectures auto_map chunk_size_feed max_position max_length max_window _act$ activation label$
    labels$ label2id id2label kernel$ kernels$ output_ return_ gradient checkpoint fp32 bf16 prefix pad_ clip
    jitter seq_aux norm_topk topk_group n_group score scoring aux temperature summary prun quant _name task_
    classifier tp_ ep_ _tp swiglu flash sdpa mscale yarn alibi position time_step timestep _iters mem_eff
    mlp_type image video vision audio visual speech mm_ projector select_ diversity beam sample length_penalty
    repetition bad_words top_k$ top_p$ cross_attention finetuning problem_type is_ torchscript reorder upcast
    full_attn attn_type_id transform unk_ sep_ bos_ eos_ model_type use_mamba bidirectional hash seed
    num_logits_to_keep query_pre_attn nextn mtp max_seq seq_len sequence_length n_positions n_ctx moe_renorm
    expert_group expert_sel combination_strat safe_gate norm_before num_kv_heads elementwise use_parallel
    shared_expert_overlap use_attention_gate block_size routed_ router_ route_ capacity no_repeat
    exponential_decay causal ignore dim_model_base number_of_conv_states
    """
)


def _has(key: str, signs: tuple[str, ...]) -> bool:
    return any(sign in f"^{key}$" for sign in signs)


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
        given = (known.get(name) for known in self._known(names) for name in names)
        return next((value for value in given if value is not None), None)

    def _known(self, names: tuple[str, ...]) -> tuple[Mapping[str, Any], ...]:
        """Return where to look: a key that the file sets, be it to null, leaves no room for the class's default."""
        self.taken.update(names)
        said = any(name in self.values for name in names)
        return (self.values,) if said else (self.values, self.defaults)

    def fail(self, problem: str) -> DataError:
        """Return the error that says what is wrong with this file."""
        return DataError(problem, file=self.file)

    def maybe(self, *names: str) -> int | None:
        """Return the first of the named keys that is set, as a whole number."""
        for known in self._known(names):
            for name in names:
                value = known.get(name)
                if isinstance(value, list) and value and all(item == value[0] for item in value):
                    value = value[0]
                if value is not None and not isinstance(value, list):
                    return self.whole(name, value)
        return None

    def number(self, *names: str, default: int = 0) -> int:
        """Return the first of the named keys that is set, as a whole number, else the default."""
        found = self.maybe(*names)
        return default if found is None else found

    def whole(self, name: str, value: Any) -> int:
        """Check one value: a whole number of zero or more and of sane size."""
        plain = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not plain or not 0 <= value <= LARGEST or value != int(value):
            raise self.fail(f"{name} must be a whole number of zero or more, found {shown(value)}")
        return int(value)

    def ratio(self, name: str, default: float) -> float:
        """Return a key that holds a number of zero or more, whole or not."""
        value = self.raw(name)
        if value is None:
            return default
        plain = isinstance(value, (int, float)) and not isinstance(value, bool)
        if not plain or not 0 <= value <= LARGEST:
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
                return [int(item) if isinstance(item, bool) else self.whole(name, item or 0)
                        for item in self._bounded(name, value)]  # fmt: skip
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
            if name in self.taken or value in (None, False, 0, "", [], {}) or isinstance(value, float):
                continue
            if not name.startswith("_") and _has(name, _STRUCTURAL) and not _has(name, _HARMLESS):
                yield name
