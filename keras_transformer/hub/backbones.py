"""KerasHub's backbones as data: maps from their fields and weights to ours."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from keras_transformer.hub.families.family import only
from keras_transformer.models import BERT, ESM, GPT, LLaMA, Speech, ViT
from keras_transformer.models.configured import ConfiguredModel

FIELDS = {  # KerasHub's name -> ours
    "vocabulary_size": "vocab_size",
    "hidden_dim": "d_model",
    "intermediate_dim": "d_ff",
    "mlp_dim": "d_ff",
    "num_layers": "num_layers",
    "num_heads": "num_heads",
    "num_query_heads": "num_heads",
    "num_key_value_heads": "num_kv_heads",
    "head_dim": "head_dim",
    "dropout": "dropout",
    "dropout_rate": "dropout",
    "layer_norm_epsilon": "epsilon",
    "layer_norm_eps": "epsilon",
    "max_sequence_length": "max_length",
    "max_decoder_sequence_length": "max_length",
    "max_encoder_sequence_length": "max_frames",
    "embedding_dim": "d_embedding",
    "num_segments": "num_types",
    "num_mels": "num_mels",
    "rope_max_wavelength": "theta",
    "max_wavelength": "theta",
    "sliding_window": "window",
    "pad_token_id": "pad_id",
}


@dataclass(frozen=True)
class Backbone:
    """Import rules for one class of backbones.

    Args:
        model: Our model class.
        layers: Map from our layers, or single weights, to the backbone's; several are fused
            (`layers.head_groups`). `*` stands for the number of a block.
        fields: Fields of our config that the backbone's class implies.
        computed: Function from the backbone's config and weight paths to further fields of ours.
        accepted: Fields of the backbone's config that must have the given value.
        absent: Endings of weight paths that the backbone may lack; our weights are zeros then.
        new: Beginnings of our weight paths without a counterpart; these weights are zeros.
        first_block: Number of the backbone's first block.
    """

    model: type[ConfiguredModel]
    layers: Mapping[str, str | tuple[str, ...]]
    fields: Mapping[str, Any] = field(default_factory=dict)
    computed: Callable[[Mapping[str, Any], Iterable[str]], dict[str, Any]] = lambda *_: {}
    accepted: Mapping[str, Any] = field(default_factory=dict)
    absent: tuple[str, ...] = ()
    new: tuple[str, ...] = ()
    first_block: int = 0


def _attention(ours: str, theirs: str, cross: bool = False) -> dict[str, Any]:
    query, key, value = (f"{theirs}/{name}" for name in ("query", "key", "value"))
    output = {f"{ours}/output": f"{theirs}/attention_output"}
    if cross:
        return output | {f"{ours}/query": query, f"{ours}/key_value": (key, value)}
    return output | {f"{ours}/query_key_value": (query, key, value)}


def _block(
    ours: str, theirs: str, attention: str, name: str, norm: str = "layer_norm"
) -> dict[str, Any]:
    """Map a block like KerasHub's `TransformerEncoder` or `TransformerDecoder`."""
    return {
        **_attention(f"{ours}/{name}", f"{theirs}/{attention}"),
        f"{ours}/{name}_norm/norm": f"{theirs}/self_attention_{norm}",
        f"{ours}/feed_forward/hidden": f"{theirs}/feedforward_intermediate_dense",
        f"{ours}/feed_forward/output": f"{theirs}/feedforward_output_dense",
        f"{ours}/feed_forward_norm/norm": f"{theirs}/feedforward_{norm}",
    }


BLOCK = "transformer_layer_*"
GPT2_LAYERS = {
    "embedding/tokens": "token_embedding",
    "embedding/positions": "position_embedding",
    **_block("decoder/block_*", BLOCK, "self_attention", "self_attention"),
    "decoder/norm": "layer_norm",
}
LLAMA_LAYERS = {
    "embedding/tokens": "token_embedding",
    **_block("decoder/block_*", BLOCK, "self_attention", "self_attention", "layernorm"),
    "decoder/block_*/feed_forward/hidden": f"{BLOCK}/feedforward_gate_dense",
    "decoder/block_*/feed_forward/gate": f"{BLOCK}/feedforward_intermediate_dense",
    "decoder/norm": "sequence_output_layernorm",
    "output/kernel": "token_embedding/reverse_embeddings",
}
BERT_LAYERS = {
    "embedding/tokens": "token_embedding",
    "embedding/positions": "position_embedding",
    "embedding/types": "segment_embedding",
    "embedding/norm": "embeddings_layer_norm",
    **_block("encoder/block_*", BLOCK, "self_attention_layer", "attention"),
    "pooler": "pooled_dense",
}
ROBERTA_LAYERS = BERT_LAYERS | {
    "embedding/tokens": "embeddings/token_embedding",
    "embedding/positions": "embeddings/position_embedding",
}
ALBERT_LAYERS = BERT_LAYERS | {
    "projection": "embedding_projection",
    **_block("encoder/block_*", "group_*_inner_layer_0", "self_attention_layer", "attention"),
}
ESM_LAYERS: dict[str, str | tuple[str, ...]] = {
    "embedding/tokens": "token_embedding",
    "encoder/block_*/attention/query_key_value": tuple(
        f"{BLOCK}/attention_layer/{name}_dense_layer" for name in "qkv"
    ),
    "encoder/block_*/attention/output": f"{BLOCK}/attention_layer/o_dense_layer",
    "encoder/block_*/attention_norm/norm": f"{BLOCK}/attention_norm",
    "encoder/block_*/feed_forward/hidden": f"{BLOCK}/feedforward_intermediate_dense",
    "encoder/block_*/feed_forward/output": f"{BLOCK}/feedforward_output_dense",
    "encoder/block_*/feed_forward_norm/norm": f"{BLOCK}/ffn_norm",
    "encoder/norm": "output_layer_norm",
}
PATCHES, VIT_BLOCK = "vit_patching_and_embedding", "vit_encoder/transformer_block_*"
VIT_LAYERS = {
    "embedding/patches": f"{PATCHES}/patch_embedding",
    "embedding/class_token": f"{PATCHES}/class_token",
    "embedding/positions": f"{PATCHES}/position_embedding/embeddings",
    **_attention("encoder/block_*/attention", f"{VIT_BLOCK}/mha"),
    "encoder/block_*/attention_norm/norm": f"{VIT_BLOCK}/ln_1",
    "encoder/block_*/feed_forward/hidden": f"{VIT_BLOCK}/mlp/dense_1",
    "encoder/block_*/feed_forward/output": f"{VIT_BLOCK}/mlp/dense_2",
    "encoder/block_*/feed_forward_norm/norm": f"{VIT_BLOCK}/ln_2",
    "encoder/norm": "vit_encoder/ln",
}
SPEECH_DEPTHS = ("num_encoder_layers", "num_decoder_layers")
ENCODER, DECODER = "transformer_encoder_layer_*", "transformer_decoder_layer_*"
WHISPER_LAYERS = {
    "source_embedding/convolution_0": "encoder_token_embedding_conv_layer_1",
    "source_embedding/convolution_1": "encoder_token_embedding_conv_layer_2",
    "source_embedding/positions": "encoder_position_embedding/embeddings",
    "target_embedding/tokens": "decoder_token_and_position_embedding/token_embedding",
    "target_embedding/positions": "decoder_token_and_position_embedding/position_embedding",
    **_block("encoder/block_*", ENCODER, "self_attention_layer", "attention"),
    "encoder/norm": "encoder_layer_norm",
    **_block("decoder/block_*", DECODER, "self_attention", "self_attention"),
    **_attention("decoder/block_*/cross_attention", f"{DECODER}/cross_attention", cross=True),
    "decoder/block_*/cross_attention_norm/norm": f"{DECODER}/cross_attention_layer_norm",
    "decoder/norm": "decoder_layer_norm",
}


def _rotary(config, paths):
    """Return the rotary scaling and the output tying of a LLaMA or Mistral."""
    only(config, rope_position_scaling_factor=1.0)  # KerasHub (0.32) ignores other values
    factor = config.get("rope_scaling_factor", 1.0)
    scaling = {"rope_type": "linear", "factor": factor} if factor != 1.0 else None
    if config.get("rope_frequency_adjustment_factor"):
        scaling = {
            "rope_type": "llama3",
            "factor": config["rope_frequency_adjustment_factor"],
            "low_freq_factor": config["rope_low_freq_factor"],
            "high_freq_factor": config["rope_high_freq_factor"],
            "original_max_position_embeddings": config["rope_pretraining_sequence_length"],
        }
    return {"scaling": scaling, "tie_output": "token_embedding/reverse_embeddings" not in paths}


def _images(config, paths):
    height, width, channels = config["image_shape"]
    sides = set(config["patch_size"])
    if len(sides) > 1:
        raise ValueError(f"patch_size must be one number, got {config['patch_size']}")
    sizes = dict(image_size=(height, width), patch_size=sides.pop(), num_channels=channels)
    return sizes | {"qkv_bias": config["use_mha_bias"]}


ROBERTA = Backbone(
    BERT,
    ROBERTA_LAYERS,
    dict(head="hidden", num_types=1, pad_id=1, epsilon=1e-5),
    absent=("segment_embedding/embeddings",),
)
LLAMA = Backbone(LLaMA, LLAMA_LAYERS, computed=_rotary)
BACKBONES = {
    "GPT2Backbone": Backbone(GPT, GPT2_LAYERS),
    "LlamaBackbone": LLAMA,
    "Llama3Backbone": LLAMA,
    "MistralBackbone": LLAMA,
    "BertBackbone": Backbone(BERT, BERT_LAYERS, dict(head="pooled", activation="gelu_tanh")),
    "RobertaBackbone": ROBERTA,
    "XLMRobertaBackbone": ROBERTA,
    "AlbertBackbone": Backbone(
        BERT,
        ALBERT_LAYERS,
        dict(head="pooled", activation="gelu_tanh"),
        computed=lambda config, _: {"shared_blocks": config["num_groups"]},
        accepted=dict(num_inner_repetitions=1),
    ),
    "ESMBackbone": Backbone(
        ESM,
        ESM_LAYERS,
        dict(head="hidden", token_dropout=False),
        accepted=dict(
            activation="gelu",
            use_bias=True,
            use_pre_layer_norm=False,
            position_embedding_type="rotary",
        ),
    ),
    "ViTBackbone": Backbone(
        ViT,
        VIT_LAYERS,
        computed=_images,
        accepted=dict(use_class_token=True),
        absent=("/bias",),
        new=("head/",),
        first_block=1,
    ),
    "WhisperBackbone": Backbone(
        Speech,
        WHISPER_LAYERS,
        computed=lambda config, _: dict.fromkeys(SPEECH_DEPTHS, config["num_layers"]),
        absent=("/key/bias",),
    ),
}
