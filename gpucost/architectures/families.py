"""The rules of the families: one line for what a family implies, a function where its layers are unlike others'."""

from collections.abc import Callable
from importlib import import_module
from typing import Any

from gpucost.architectures.decoder import Decoder, Family


class Rules:
    """The rules of one module, which is imported when one of them is first asked."""

    def __init__(self, module: str) -> None:
        self.module = f"gpucost.architectures.{module}"

    def __getattr__(self, name: str) -> Callable[[Decoder], Any]:
        """Return the rule of a name."""
        return lambda d: getattr(import_module(self.module), name)(d)


y, s, u, i, p = map(Rules, ("hybrids", "sparse", "unusual", "indexed", "peculiar"))

LLAMA = Family()
_GPT = Family(gated=False, norm="ln", bias="qkvo", mlp_bias=True)
_FULL_BIAS = Family(bias="qkvo", mlp_bias=True)
_QWEN_2 = Family(bias="qkv")
_QWEN_3 = Family(qk_norm="head")
_GLM_MOE = Family(qk_norm="use_qk_norm", key_bias="qkv", correction=True)
_DEEPSEEK = Family(correction=True)
_QWEN_3_5 = Family(qk_norm="head", gate="full", shared_gate=True, linear="gated_delta")
_GEMMA_2 = Family(norms=4, rhythm=2)
_GEMMA_3 = Family(norms=4, qk_norm="head", rhythm=6)
_COHERE = Family(norm="ln_w", norms=1, qk_norm="use_qk_norm:cohere")
_LLAMA_4 = Family(blocks=u.llama_4)
_ERNIE = Family(tied=True, correction=True, blocks=u.ernie)
_HUNYUAN = Family(qk_norm="use_qk_norm", blocks=u.hunyuan)
_FALCON = Family(gated=False, norm="ln", blocks=u.falcon)
_BAILING = Family(qk_norm="use_qk_norm", key_bias="qkvo")


def _plain(*names: str, **traits: Any) -> dict[str, Family]:
    return dict.fromkeys(names, Family(**traits))


FAMILIES: dict[str, Family] = {
    **_plain(
        "llama", "mistral", "mixtral", "ministral", "ministral3", "mistral4", "yi", "baichuan", "internlm2", "aquila",
        "xverse", "deepseek", "granite", "granitemoe", "granitemoeshared", "granitemoehybrid", "olmo_1124", "cwm",
        "iquestcoder", "deepseek_v2", "phi3", "phi3_v", "phi4mm", "phi4_multimodal", "arctic_dense", "helium_",
        "minicpm3", "youtu", "solar", "skywork", "telechat", "emu3_text_model", "stablelm_alpha", "mistral_text",
        "internlmxcomposer2", "step1", "lighton_ocr_text", "aria_text", "gpt_sw3_llama", "zhinao", "llava_llama",
        "llava_mistral", "granite_docling_text", "voxtral_realtime_text", "unlimited_ocr_text",
        "deepseek_ocr2_text", "deepseek_vl_v2",
    ),
    "minicpm": Family(tied=True),
    "minicpmv": Family(tied=True),
    "gemma": LLAMA,
    "llama_nemotron": LLAMA,
    "arcee": Family(gated=False),
    "exaone": Family(key_bias=""),
    "smollm3": LLAMA,
    "seed_oss": Family(key_bias="qkv"),
    "helium": Family(key_bias="qkv"),
    "internlm": Family(key_bias="qkvo"),
    "internlm3": Family(blocks=u.internlm_3),
    "glm": Family(key_bias="qkv"),
    "glm4": Family(key_bias="qkv", norms=4),
    **dict.fromkeys(("glm4v_text", "glm_ocr_text"), Family(bias="qkv", norms=4)),
    "chatglm": Family(key_bias="qkv"),
    **dict.fromkeys(("glm4_moe", "glm4v_moe_text", "solar_open"), _GLM_MOE),
    "glm4_moe_lite": _DEEPSEEK,
    **dict.fromkeys(("qwen2", "qwen", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text",
                     "qwen2_5_omni_text", "mimo", "qwen2_audio_text", "dream", "qwen2_5_omni_thinker"), _QWEN_2),
    "qwen2_moe": Family(bias="qkv", shared_gate=True),
    **dict.fromkeys(("qwen3", "qwen3_moe", "qwen3_vl_text", "qwen3_vl_moe_text", "qwen3_omni_moe_text", "mellum",
                     "hunyuan_vl_text", "sdar"), _QWEN_3),
    **dict.fromkeys(("minimax_m3_vl_text", "minimax_m3"), Family(qk_norm="head", correction=True, blocks=i.minimax_m3)),
    **dict.fromkeys(("qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "qwen3_5", "qwen3_5_moe"), _QWEN_3_5),
    "gemma2": _GEMMA_2,
    **dict.fromkeys(("gemma3", "gemma3_text"), _GEMMA_3),
    "vaultgemma": Family(),
    "t5gemma": _GEMMA_2,
    **dict.fromkeys(("gemma3n", "gemma3n_text"), Family(norms=4, qk_norm="head", rhythm=5, blocks=s.gemma_3n,
                                                        extra=s.gemma_3n_extra)),
    **dict.fromkeys(("gemma4", "gemma4_text", "gemma4_unified_text", "gemma4_unified", "diffusion_gemma_text"),
                    Family(norms=4, qk_norm="head", rhythm=6, blocks=s.gemma_4, extra=s.gemma_4_extra)),
    "recurrent_gemma": Family(linear="recurrent_unit", blocks=y.recurrent_gemma),
    "cohere": Family(norm="ln_w", norms=1, qk_norm="use_qk_norm:wide"),
    "cohere2": Family(norm="ln_w", norms=1, rhythm=4),
    "cohere2_moe": Family(norm="ln_w", norms=1, rhythm=4),
    **dict.fromkeys(("deepseek_v3", "kimi_k2", "kimi_vl", "kimi_k25"), _DEEPSEEK),
    "axk1": Family(norms=2, correction=True, blocks=s.axk_1),
    **dict.fromkeys(("deepseek_v32", "glm_moe_dsa"), Family(correction=True, blocks=s.deepseek_v32)),
    "deepseek_v4": Family(correction=True, blocks=s.deepseek_v4, extra=s.streams_extra),
    "kimi_linear": Family(correction=True, linear="kimi_delta", blocks=y.kimi_linear, extra=y.kimi_extra),
    **dict.fromkeys(("longcat_flash", "longcat_flash_ngram", "longcat_causal_lm"),
                    Family(correction=True, blocks=s.longcat, extra=s.longcat_extra)),
    "dots1": Family(qk_norm="head", correction=True),
    "minimax": Family(linear="lightning"),
    **dict.fromkeys(("minimax_text_01", "minimax_m1"), Family(linear="lightning")),
    "minimax_m2": Family(qk_norm="wide", correction=True),
    **dict.fromkeys(("mimo_v2_flash", "mimo_v2"), Family(correction=True, sinks="window", blocks=s.mimo_v2)),
    **dict.fromkeys(("step3p5", "step3p5_text"), Family(qk_norm="head", gate="head", blocks=s.step_3_5)),
    "afmoe": Family(qk_norm="head", gate="full", norms=4, correction=True, rhythm=4),
    "laguna": Family(qk_norm="head", correction=True, blocks=p.laguna),
    "flint": Family(qk_norm="head", sinks="all"),
    "kolibri1": Family(qk_norm="head", norms=4, correction=True),
    "hy_v3": Family(qk_norm="head", correction=True),
    "beam": Family(qk_norm="head", norms=4, gate="full", correction=True, per_layer=lambda d: d.heads),
    "gpt_oss": Family(bias="qkvo", sinks="all", rhythm=-2, blocks=u.gpt_oss),
    "granite_swa": Family(sinks="all"),
    "granitemoe_swa": Family(sinks="all"),
    "hyperclovax": Family(blocks=u.hyperclovax),
    "olmo": Family(norm="ln_np"),
    **dict.fromkeys(("olmo2", "flex_olmo"), Family(qk_norm="wide")),
    "olmo3": Family(qk_norm="wide", rhythm=4),
    "olmoe": Family(qk_norm="wide"),
    "olmo_hybrid": Family(qk_norm="wide", linear="gated_delta", blocks=y.olmo_hybrid),
    "exaone4": Family(qk_norm="head"),
    "exaone_moe": Family(qk_norm="head", correction=True),
    "apertus": Family(gated=False, qk_norm="head", per_layer=lambda d: 2),
    "bitnet": Family(per_layer=lambda d: d.hidden + d.ffn),
    "nanochat": Family(gated=False, norms=0, final_norm=False),
    "diffllama": Family(per_layer=lambda d: 4 * d.head_dim),
    "modernbert-decoder": Family(norm="ln_w", key_bias="qkvo", tied=True, embedding_norms=1,
                                 blocks=p.modernbert_decoder, extra=p.modernbert_extra),
    "nemotron": Family(gated=False, norm="ln"),
    "jais2": _GPT,
    "phimoe": Family(norm="ln", key_bias="qkvo"),
    "phi": Family(gated=False, norm="ln", norms=1, bias="qkvo", mlp_bias=True, head_bias=True,
                  qk_norm="qk_layernorm"),
    **dict.fromkeys(("phi-msft", "mixformer-sequential"),
                    Family(gated=False, norm="ln", norms=1, bias="qkvo", mlp_bias=True, head_bias=True)),
    **dict.fromkeys(("stablelm", "stablelm_epoch"), Family(norm="ln", key_bias="qkv", blocks=u.stablelm)),
    "orion": Family(norm="ln"),
    "starcoder2": Family(gated=False, norm="ln", mlp_bias=True, bias="qkvo"),
    "gpt2": Family(gated=False, norm="ln", bias="qkvo", mlp_bias=True, positions=0, tied=True),
    "gpt-sw3": Family(gated=False, norm="ln", bias="qkvo", mlp_bias=True, positions=0, tied=True),
    "gpt_bigcode": Family(gated=False, norm="ln", bias="qkvo", mlp_bias=True, positions=0, tied=True),
    "openai-gpt": Family(gated=False, norm="ln", bias="qkvo", mlp_bias=True, positions=0, tied=True, final_norm=False),
    "biogpt": Family(gated=False, norm="ln", bias="qkvo", mlp_bias=True, positions=2),
    "opt": Family(gated=False, norm="ln", bias="qkvo", mlp_bias=True, positions=2, blocks=u.opt, extra=u.opt_extra),
    "xglm": Family(gated=False, norm="ln", bias="qkvo", mlp_bias=True, blocks=u.xglm),
    "bloom": Family(gated=False, norm="ln", bias="qkvo", mlp_bias=True, embedding_norms=1, tied=True),
    "gpt_neox": Family(gated=False, norm="ln", bias="qkvo", mlp_bias=True),
    "gpt_neox_japanese": Family(gated=False, norm="ln", extra=lambda d: d.hidden),
    "gpt_neo": Family(gated=False, norm="ln", bias="o", mlp_bias=True, positions=0),
    **dict.fromkeys(("gptj", "codegen"), Family(gated=False, norm="ln", norms=1, mlp_bias=True, head_bias=True)),
    "persimmon": Family(gated=False, norm="ln", bias="qkvo", mlp_bias=True, qk_norm="qk_layernorm"),
    "mpt": Family(gated=False, norm="ln_w", tied=True, blocks=u.mpt, extra=u.mpt_extra),
    "jais": Family(norm="ln", bias="qkvo", mlp_bias=True, tied=True),
    "dbrx": Family(norm="ln_w", blocks=u.dbrx),
    **dict.fromkeys(("falcon", "refinedweb", "refinedwebmodel"), _FALCON),
    "falcon_h1": Family(blocks=y.falcon_h1),
    "jamba": Family(linear="mamba1"),
    "zamba": Family(blocks=y.zamba),
    "zamba2": Family(blocks=y.zamba_2),
    "nemotron_h": Family(gated=False, blocks=y.nemotron_h, norms=1),
    **dict.fromkeys(("nemotron-nas", "deci", "decilm"), Family(blocks=u.block_configs)),
    "lfm2": Family(qk_norm="head", linear="short_convolution"),
    "lfm2_moe": Family(qk_norm="head", linear="short_convolution"),
    "lfm3": Family(qk_norm="head", gate="head", norms=4, linear="short_convolution"),
    **dict.fromkeys(("ernie4_5", "ernie4_5_moe", "ernie4_5_moe_vl", "ernie4_5_vl_moe_text", "ernie4_5_vl_moe",
                     "paddleocr_vl_text"), _ERNIE),
    **dict.fromkeys(("hunyuan_v1_dense", "hunyuan_v1_moe"), Family(qk_norm="use_qk_norm", tied=True,
                                                                   blocks=u.hunyuan_v1)),
    "hunyuan": _HUNYUAN,
    **dict.fromkeys(("llama4", "llama4_text"), _LLAMA_4),
    "mllama_text_model": Family(blocks=u.mllama),
    "mllama": Family(blocks=u.mllama),
    "jetmoe": Family(blocks=u.jetmoe),
    "openelm": Family(blocks=u.openelm),
    "bailing_moe": Family(key_bias="qkvo"),
    "bailing_moe_v2": Family(qk_norm="head"),
    "bailing_hybrid": Family(correction=True, blocks=y.bailing_hybrid),
    **dict.fromkeys(("grok", "grok-1", "grok-2", "git_grok"), Family(norms=4, blocks=u.grok)),
    "arctic": Family(blocks=u.arctic),
    "chameleon": Family(blocks=u.chameleon),
    "axk2": Family(correction=True, blocks=i.axk_2),
    "hy_v4": Family(correction=True, gate="full", sinks="all", blocks=i.hy_4, extra=s.streams_extra),
    "dots3_note_text": Family(correction=True, gate="head", blocks=i.dots_3),
    "mistral_large4_text": Family(blocks=i.mistral_large_4),
    "glm5_next_text": Family(correction=True, blocks=i.glm_5_next),
    "qwen4_exp_text": Family(qk_norm="head", gate="full", shared_gate=True, linear="gated_delta", final_norm=False,
                             blocks=i.qwen_4, extra=i.qwen_4_extra),
    "zaya": Family(tied=True, blocks=p.zaya, extra=lambda d: 2 * d.hidden),
    "doge": Family(qk_norm="head", blocks=p.doge),
    "hrm_text": Family(gate="full", final_norm=False, blocks=p.hrm, extra=lambda d: d.hidden),
    "inkling_text": Family(qk_norm="head", correction=True, embedding_norms=1, blocks=p.inkling),
    "inkling2_text": Family(gate="full", correction=True, embedding_norms=1, blocks=p.inkling,
                            extra=lambda d: d.hidden),
    "muse_glimmer_text": Family(norms=4, gate="full", rhythm=4),
    "muse_spark_text": Family(norms=5, gate="full", correction=True, blocks=p.muse_spark),
    "cosmos3_edge_text": Family(gated=False),
    "molmo2_text": Family(qk_norm="use_qk_norm", extra=p.molmo_2_extra),
    "cohere_compass_text": Family(norm="ln_w", norms=1, rhythm=4, tied=True),
    "bamba": Family(blocks=p.bamba),
    "ctrl": Family(gated=False, norm="ln", bias="qkvo", mlp_bias=True, tied=True, extra=lambda d: d.vocab),
}  # fmt: skip


def family_of(kind: str, architectures: list[str]) -> Family | None:
    """Return the rule of a model type, or None where it is not known; Grok gives itself away by its class alone."""
    if any("grok" in name.lower() for name in architectures):
        return FAMILIES["grok"]
    return FAMILIES.get(kind) or FAMILIES.get(kind.removesuffix("_text"))


__all__ = ["FAMILIES", "LLAMA", "Decoder", "family_of"]
