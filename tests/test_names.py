"""Names of other programs in place of ours: each error says which of ours was meant."""

import copy
import dataclasses
import pickle

import keras
import pytest

from keras_transformer import layers
from keras_transformer.config import Config, TransformerConfig
from keras_transformer.layers.block_options import Options
from keras_transformer.models import BERTConfig, GPTConfig, LLaMAConfig, T5Config
from keras_transformer.names import THEIRS, advice
from keras_transformer.search import TRANSLATE, Search

pytestmark = pytest.mark.once("names")


def below(kind):
    yield kind
    for other in kind.__subclasses__():
        yield from below(other)


def test_each_name_of_the_table_is_one_of_ours():
    dataclasses_ = [*below(Config), *below(Options), *below(Search)]
    ours = {field.name for kind in dataclasses_ for field in dataclasses.fields(kind)}
    ours |= {"causal", "scale", "theta", "rotary"}  # arguments of layers
    assert {name for names in THEIRS.values() for name in names} <= ours


CONFIGS = [
    (BERTConfig, "num_head", "'num_heads'"),
    (BERTConfig, "intermediate_dim", "'d_ff'"),
    (BERTConfig, "type_vocab_size", "'num_types'"),
    (GPTConfig, "n_embd", "'d_model'"),
    (LLaMAConfig, "num_key_value_heads", "'num_kv_heads'"),
    (LLaMAConfig, "rope_theta", "'theta'"),
    (TransformerConfig, "num_layers", "'num_encoder_layers' and 'num_decoder_layers'"),
    (TransformerConfig, "vocab_size", "'source_vocab_size' and 'target_vocab_size'"),
    (TransformerConfig, "encoder_normalize_before", "'norm_first'"),
    (TransformerConfig, "dim_feedforward", "'d_ff'"),
    (T5Config, "d_kv", "'head_dim'"),
]


@pytest.mark.parametrize(("kind", "name", "meant"), CONFIGS)
def test_configs(kind, name, meant):
    message = rf"\['{name}'\], did you mean {meant}\?; accepted are \["
    with pytest.raises(TypeError, match=f"{kind.__name__} has no argument {message}"):
        kind(**{name: 2})
    with pytest.raises(ValueError, match=f"unknown config fields {message}"):
        kind.from_dict({name: 2})


LAYERS = [
    (layers.EncoderBlock, "num_head", "'num_heads'"),
    (layers.EncoderBlock, "intermediate_dim", "'d_ff'"),
    (layers.DecoderBlock, "layer_norm_epsilon", "'epsilon'"),
    (layers.Encoder, "num_hidden_layers", "'num_layers'"),
    (layers.Decoder, "nhead", "'num_heads'"),
    (layers.Decoder, "crossattention", "'cross_attention'"),
    (layers.FeedForward, "intermediate_size", "'d_ff'"),
    (layers.MultiHeadAttention, "key_dim", "'head_dim'"),
    (layers.AddNorm, "normalize_first", "'norm_first'"),
    (layers.PositionalEmbedding, "embedding_dim", "'d_model'"),
    (layers.PositionalEmbedding, "vocabulary_size", "'vocab_size'"),
    (layers.Rotary, "rope_max_wavelength", "'theta'"),
    (layers.RelativeBias, "relative_attention_num_buckets", "'num_buckets'"),
]


@pytest.mark.parametrize(("kind", "name", "meant"), LAYERS)
def test_layers(kind, name, meant):
    message = rf"{kind.__name__} has no argument \['{name}'\], did you mean {meant}\?; accepted are"
    with pytest.raises(TypeError, match=message):
        kind(**{name: 2})


def test_several_names_and_one_that_is_like_none():
    accepted = "; accepted are ['d_ff', 'num_heads']"
    meant = ", did you mean 'num_heads' and 'd_ff'?"
    assert advice(["nhead", "d_fff"], ["d_ff", "num_heads"]) == meant + accepted
    assert advice(["colour"], ["d_ff", "num_heads"]) == accepted


def test_searches():
    with pytest.raises(
        TypeError, match="num_beams is not an option here, did you mean 'beam_size'"
    ):
        Search.of({"num_beams": 2}, TRANSLATE)


class Own(layers.EncoderBlock):
    """A user's subclass, which reads a keyword argument of its own."""

    def __init__(self, *arguments, **options):
        self.colour = options.pop("colour")
        super().__init__(*arguments, **options)


def test_a_users_own_layer_has_arguments_of_its_own():
    assert Own(2, 8, colour="red", name="own").colour == "red"
    with pytest.raises(ValueError, match="Unrecognized keyword arguments"):  # Keras's own
        Own(2, 8, colour="red", nhead=2)


def test_configs_are_copied_and_pickled():
    config = BERTConfig(24, d_model=8, num_heads=2, num_layers=1)
    assert copy.deepcopy(config) == pickle.loads(pickle.dumps(config)) == config
    layer = layers.EncoderBlock(2, 8, name="block", trainable=False, dtype="mixed_bfloat16")
    assert keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(layer))
