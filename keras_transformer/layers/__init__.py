"""The Transformer's parts as Keras layers with plain arguments, for any functional model."""

from keras_transformer.layers.attention import MultiHeadAttention, dot_product_attention
from keras_transformer.layers.audio_frontend import AudioEmbedding, FramePrenet
from keras_transformer.layers.decoder import Decoder, DecoderBlock
from keras_transformer.layers.disentangled import DisentangledAttention, DisentangledEncoder
from keras_transformer.layers.embedding import PositionalEmbedding, sinusoids
from keras_transformer.layers.encoder import Encoder, EncoderBlock
from keras_transformer.layers.feed_forward import FeedForward
from keras_transformer.layers.masks import (
    causal_mask,
    length_mask,
    padding_mask,
    segment_lengths,
    segment_mask,
    segment_positions,
)
from keras_transformer.layers.mixture_of_experts import MixtureOfExperts
from keras_transformer.layers.patches import PatchEmbedding, resized_positions
from keras_transformer.layers.recording import record_attention
from keras_transformer.layers.relative_bias import RelativeBias
from keras_transformer.layers.residual import AddNorm
from keras_transformer.layers.rotary import Rotary, rotate
from keras_transformer.layers.ssru import SSRU

__all__ = [
    "SSRU",
    "AddNorm",
    "AudioEmbedding",
    "Decoder",
    "DecoderBlock",
    "DisentangledAttention",
    "DisentangledEncoder",
    "Encoder",
    "EncoderBlock",
    "FeedForward",
    "FramePrenet",
    "MixtureOfExperts",
    "MultiHeadAttention",
    "PatchEmbedding",
    "PositionalEmbedding",
    "RelativeBias",
    "Rotary",
    "causal_mask",
    "dot_product_attention",
    "length_mask",
    "padding_mask",
    "record_attention",
    "resized_positions",
    "rotate",
    "segment_lengths",
    "segment_mask",
    "segment_positions",
    "sinusoids",
]
