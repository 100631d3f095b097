"""Reading a configuration file into an architecture.

The format has no schema: each family of models names its dimensions in its own way. A rule of the family
(`families.py`) turns the fields into blocks; what is not understood is refused, or named in a warning.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from gpucost.architectures import config as configuration
from gpucost.architectures.config import KEYS, Fields
from gpucost.architectures.families import block_configs, family_of
from gpucost.architectures.layers import Decoder, Family, dense_width, merged, overridden, usual
from gpucost.errors import shortened
from gpucost.gate import shown
from gpucost.types import Architecture, Block

Config = Mapping[str, Any]

_MOST_LISTED = 8  # keys in a warning: one line of a terminal or two


def read_config(path: str | Path) -> Architecture:
    """Read an architecture from a config.json, or from the config.json (or params.json) of a folder."""
    from gpucost.architectures.storage import beside

    file = Path(path)
    if file.is_dir():
        files = [file / name for name in ("config.json", "params.json") if (file / name).is_file()]
        file = files[0] if files else file / "config.json"
    config = configuration.load(file)
    # A model is named after its file, else as it names itself, else after its folder. "--" is how the hub's downloads
    # write the slash between publisher and model.
    stem = file.name.removesuffix(".json").removesuffix(".config").removesuffix("config").removesuffix("params")
    stated = str(config.get("_name_or_path") or "").rstrip("/").rsplit("/", 1)[-1]
    name = stem.split("--")[-1] or stated or file.resolve().parent.name
    return beside(architecture_of(config, name, str(file)), file)


def architecture_of(config: Config, name: str, file: str = "config.json") -> Architecture:
    """Turn a configuration into an architecture; what is missing or does not fit together is an error."""
    from gpucost.architectures.storage import stored
    from gpucost.architectures.towers import with_towers

    config = configuration.translated(config, file)
    configuration.refuse_other_models(config, file)
    text, nested = configuration.text_part(config)
    kind = str(text.get("model_type") or config.get("model_type") or "").lower()
    fields = Fields(text, file, configuration.defaults_of(kind, nested))
    family = family_of(kind, configuration.class_names(config))
    if family is None:  # its keys give away the norm at least
        norm = "ln" if "layer_norm_eps" in text and "rms_norm_eps" not in text else "rms"
        family = Family(norm=norm, understood=False)
    d = Decoder(fields, family, kind)
    architecture = stored(with_towers(_assembled(d, name, file), config, text), config, text)

    # Once everything is read: what was not understood, and what was never looked at.
    warnings = []
    if not family.understood:
        described = f"model_type {shown(kind)}" if kind else "a configuration without model_type"
        warnings.append(f"{described} is not known: read by its keys as a plain decoder; check the parameters")
    unused = sorted(fields.unused())
    if unused:
        listed = ", ".join(shortened(key) for key in unused[:_MOST_LISTED])
        if len(unused) > _MOST_LISTED:
            listed += f" and {len(unused) - _MOST_LISTED} more"
        warnings.append(f"keys that were not used and may shape the model: {listed}")
    return replace(architecture, warnings=tuple(dict.fromkeys((*warnings, *d.warnings, *architecture.warnings))))


def _assembled(d: Decoder, name: str, file: str) -> Architecture:
    """Return an architecture: the blocks, which are exact, and beside them one dimension each for all layers alike.

    Physics takes the latter where layers need not be told apart.
    """
    blocks_of = block_configs if "block_configs" in d.fields else d.family.blocks
    blocks = merged(overridden(d, blocks_of or usual))
    layers = sum(block.count for block in blocks)
    f = d.fields
    longest = f.number(*KEYS["sequence"])
    # learned positions are a table as long as the longest sequence, and some rows more
    positions = 0 if d.family.positions is None else (longest + d.family.positions) * d.hidden
    embedding_width = f.number("word_embed_proj_dim")  # OPT-350m embeds narrower than its layers are
    # parameters outside the blocks and the embedding: norms, a bias of the head, what the family adds
    extra = d.norm * ((1 if d.family.final_norm else 0) + d.family.embedding_norms)
    biased = d.family.head_bias or f.flag("lm_head_bias")
    extra += d.vocab if biased and not d.tied else 0
    extra += d.family.extra(d) if d.family.extra else 0  # rules also add to `lookup` here: it is read below

    # Attention: latent where the file says so and some layer attends at all; else by how many heads share a key.
    latent_rank = f.number("kv_lora_rank")
    kv_heads = d.heads if latent_rank else d.kv_heads
    latent = bool(latent_rank and any(block.reaches for block in blocks))
    heads_per_key = 1 if latent or not kv_heads else d.heads // kv_heads
    if latent:
        attention = "mla"
    elif heads_per_key == 1:
        attention = "mha"
    else:
        attention = "mqa" if kv_heads == 1 else "gqa"
    # Windows: the largest stands for all; layers that see everything beside a window are none.
    windows = [(block.count, _window(block)) for block in blocks if _window(block)]
    mixtures = [block for block in blocks if block.experts]
    sparse = sum(block.count for block in mixtures)
    architecture = Architecture(
        name=name,
        family=d.kind,
        layers=layers,
        hidden=d.hidden,
        heads=d.heads,
        kv_heads=kv_heads,
        head_dim=f.number("qk_nope_head_dim") + f.number("qk_rope_head_dim") if latent_rank else d.head_dim,
        ffn_hidden=dense_width(d) if sparse < layers else 0,
        gated=d.family.gated,
        vocab=d.vocab,
        tied_embeddings=d.tied,
        max_sequence_tokens=longest,
        attention=attention,
        window_tokens=max((window for _, window in windows), default=0),
        window_layers=sum(count for count, _ in windows),
        linear_layers=sum(block.count for block in blocks if not block.reaches),
        norm=d.family.norm,
        qkv_bias="qkv" in d.family.bias,
        mtp_layers=f.number(*KEYS["prediction"]) if f.flag("use_mtp", default=True) else 0,
        position_parameters=positions + d.lookup,
        extra_parameters=extra,
        blocks=blocks,
        embedding_width=embedding_width if embedding_width != d.hidden else 0,
        status="given",
        notes=f"read from {file}",
    )
    if latent:
        architecture = replace(
            architecture,
            q_lora_rank=f.number("q_lora_rank"),
            kv_lora_rank=latent_rank,
            qk_nope_dim=f.number("qk_nope_head_dim"),
            qk_rope_dim=f.number("qk_rope_head_dim"),
            v_head_dim=f.number("v_head_dim"),
        )
    if not mixtures:
        return architecture
    expert_width = f.number(*KEYS["expert_ffn"]) or d.ffn
    joint = f.number(*KEYS["shared_ffn"])
    return replace(
        architecture,
        experts=f.number(*KEYS["experts"]) or mixtures[0].experts,
        experts_per_token=f.number(*KEYS["per_token"]) or round(mixtures[0].experts_per_token),
        expert_ffn_hidden=expert_width,
        expert_hidden=f.number("moe_latent_size", "routed_expert_hidden_size"),
        # a joint width is one wide shared expert
        shared_experts=(1 if joint else f.number(*KEYS["shared"])) if mixtures[0].shared else 0,
        shared_ffn_hidden=(joint or expert_width) if mixtures[0].shared else 0,
        first_dense_layers=layers - sparse,
    )


def _window(block: Block) -> int:
    """Return the window of a block whose every reach is bounded; 0 where it sees everything."""
    if not block.reaches or any(not reach.window_tokens for reach in block.reaches):
        return 0
    return max(reach.window_tokens for reach in block.reaches)
