"""Configs of converted models: what their files tell, and what is refused."""

import ctranslate2.specs as specs
import numpy as np
import pytest

from keras_transformer.hub.ctranslate2_configs import _ACTIVATIONS, config_of, kind_of
from keras_transformer.hub.ctranslate2_file import ConvertedFile
from keras_transformer.layers.embedding import sinusoids

pytestmark = pytest.mark.once("reads files")
PIECES = ["<pad>", "</s>", "<unk>", "<s>", "a"]
FACTS = dict(decoder_start_token="<s>", eos_token="</s>", layer_norm_epsilon=None)


def written(path, change=lambda spec: None, **options):
    """Write a TransformerSpec of random weights, after a change of it; return the file."""
    options = dict(pre_norm=True) | options
    spec = specs.TransformerSpec.from_config((1, 2), 2, **options)
    rng = np.random.default_rng(0)

    def fill(part, name, value):
        end = name.rpartition("/")[2]
        if value is None:
            shape = {"weight": (4, 4), "relative_attention_max_distance": ()}.get(end, (4,))
            shape = (5, 4) if "embeddings" in name or "projection" in name else shape
            shape = (8, 2) if end == "relative_attention_bias" else shape
            setattr(
                part, end, rng.standard_normal(shape).astype("float32") if shape else np.int32(9)
            )

    spec._visit(fill)
    for side in (spec.encoder, spec.decoder):
        if hasattr(side, "position_encodings"):
            side.position_encodings.encodings = sinusoids(7, 4, "sinusoidal_halves")
    spec.encoder.embeddings[0].weight = spec.decoder.projection.weight = (
        spec.decoder.embeddings.weight
    )
    change(spec)
    for part in (spec, spec.encoder, spec.decoder):
        specs.model_spec.LayerSpec.validate(part)
    spec._alias_variables()
    spec._serialize(str(path / "model.bin"))
    return ConvertedFile(path / "model.bin")


def config(file, source=PIECES, target=PIECES, **facts):
    return config_of(file, FACTS | facts, dict(source=source, target=target))


def test_a_transformer(tmp_path):
    file = written(tmp_path)
    ours = config(file, layer_norm_epsilon=1e-3)
    assert kind_of(file) == "bart"
    assert (ours.num_encoder_layers, ours.num_decoder_layers, ours.num_heads) == (1, 2, 2)
    assert (ours.positions, ours.max_length) == ("sinusoidal_halves", 7)
    assert (ours.pad_id, ours.eos_id, ours.bos_id, ours.epsilon) == (0, 1, 3, 1e-3)
    assert ours.scale_embeddings and ours.share_embeddings and ours.tie_output and ours.norm_first
    assert not ours.output_bias and ours.activation == "relu"


def scaled(value):
    def change(spec):
        spec.encoder.scale_embeddings = spec.decoder.scale_embeddings = value

    return change


def test_scales_of_embeddings(tmp_path):
    for value, expected in ((False, False), (1.0, False), (2.0, True), (True, True)):
        assert config(written(tmp_path, scaled(value))).scale_embeddings is expected
    with pytest.raises(ValueError, match="scale_embeddings must be 1 or 2.0, got 3.0"):
        config(written(tmp_path, scaled(3.0)))


def test_offset_and_learned_positions(tmp_path):
    def change(spec):
        table = sinusoids(9, 4, "sinusoidal_tensor2tensor")[2:].astype("float16")
        spec.encoder.position_encodings.encodings = table
        spec.decoder.position_encodings.encodings = table.copy()

    ours = config(written(tmp_path, change))
    assert (ours.positions, ours.position_offset) == ("sinusoidal_tensor2tensor", 2)

    def change(spec):
        spec.decoder.position_encodings.encodings = np.ones((7, 4), "float32")

    ours = config(written(tmp_path, change))
    assert ours.positions == "learned" and not ours.share_embeddings  # two tables of positions

    def change(spec):
        spec.decoder.position_encodings.encodings = np.ones((6, 4), "float32")

    with pytest.raises(ValueError, match="positions of the decoder must be 7, as in the encoder"):
        config(written(tmp_path, change))


def without_positions(spec):
    spec.encoder.position_encodings.encodings = specs.model_spec.OPTIONAL


def activated(spec):
    spec.encoder.activation = spec.decoder.activation = np.int8(4)


def unequal(spec):
    spec.decoder.pre_norm = False


@pytest.mark.parametrize(
    "change, problem",
    [
        (without_positions, "lacks encoder/position_encodings/encodings: .* not supported"),
        (activated, "activation in .* must be one of RELU, GELU.*, got 'GELUSigmoid'"),
        (unequal, "decoder/pre_norm in .* must be 1, as in the encoder, got 0"),
    ],
)
def test_what_is_refused(change, problem, tmp_path):
    with pytest.raises(ValueError, match=problem):
        config(written(tmp_path, change))


def test_pieces_that_are_needed(tmp_path):
    file = written(tmp_path)
    with pytest.raises(ValueError, match="decoder_start_token must be a piece .*, got None"):
        config(file, decoder_start_token=None)
    with pytest.raises(ValueError, match="eos_token must be a piece with one id in both"):
        config(file, source=["<pad>", "b", "</s>", "c", "d"])


def test_a_t5(tmp_path):
    options = dict(relative_attention_bias=True, rms_norm=True, ffn_glu=True)

    def change(spec):
        for side in (spec.encoder, spec.decoder):
            for layer in side.layer:
                table = side.layer[0].self_attention.relative_attention_bias
                layer.self_attention.relative_attention_bias = table
                layer.self_attention.queries_scale = 1.0
                if hasattr(layer, "attention"):
                    layer.attention.queries_scale = 1.0

    file = written(tmp_path, change, **options)
    ours = config(file, decoder_start_token="<pad>")
    assert kind_of(file) == "t5" and ours.gated and not ours.positions_by_layer
    assert (ours.num_buckets, ours.max_distance, ours.head_dim) == (8, 9, 2)
    assert not ours.scale_output and ours.tie_output

    def change_more(spec):
        change(spec)
        spec.decoder.layer[0].attention.queries_scale = 2.0

    with pytest.raises(ValueError, match="queries_scale in .* must be one number, equal in all"):
        config(written(tmp_path, change_more, **options))

    def change_bias(spec):
        change(spec)
        spec.decoder.projection.bias = np.arange(5, dtype="float32")

    with pytest.raises(ValueError, match="decoder/projection/bias must be zeros, except for"):
        config(written(tmp_path, change_bias, **options))


def test_activations_are_those_of_ctranslate2():
    known = {int(x): x.name for x in specs.common_spec.Activation}
    assert {known[i] for i in _ACTIVATIONS} == {"RELU", "GELUTanh", "SWISH", "GELU"}
