"""The SSRU against a loop in NumPy, its steps, packed rows, and translators that decode with it."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.backend import compiled
from keras_transformer.config import TransformerConfig
from keras_transformer.layers import SSRU, Decoder, DecoderBlock, record_attention, segment_mask
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.models.lora import enable_lora
from keras_transformer.models.model_ensemble import Ensemble
from keras_transformer.models.remat import enable_remat
from keras_transformer.optimizers import adam
from keras_transformer.running.search_functions import translation_function
from keras_transformer.search import Search

SHAPE = ROWS, LENGTH, WIDTH = 2, 7, 6
SOURCE = np.array([[4, 1, 3, 0, 0], [8, 9, 11, 5, 3]], "int32")
TARGET = np.array([[2, 7, 8, 4], [2, 5, 6, 3]], "int32")

numpy = ops.convert_to_numpy


@pytest.fixture
def x(rng):
    return rng.standard_normal(SHAPE).astype("float32")


@pytest.fixture
def layer(randomize):
    layer = SSRU()
    layer.build(SHAPE)
    return randomize(layer)


@pytest.fixture
def made(tiny_transformer):
    """`made(**changes)`: a random model whose decoder has no self-attention."""
    common = dict(decoder_recurrence="ssru", num_decoder_layers=2, dropout=0.0)
    return lambda **changes: tiny_transformer(**common | changes)


def logits(model, source=SOURCE, target=TARGET, **others):
    return numpy(model({"source_ids": source, "target_ids": target, **others}))


def score(logits, ids):
    """The log-probability of each row of ids, without padding."""
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    chosen = np.take_along_axis(log_probs, ids[..., None], -1)[..., 0]
    return np.where(ids == 0, 0.0, chosen).sum(-1)


def test_equals_a_loop(x, layer):
    """The formula of the class, position by position."""
    kernel, forget = numpy(layer.candidate.kernel), numpy(layer.forget.kernel)
    state, expected = np.zeros((ROWS, WIDTH)), []
    for t in range(LENGTH):
        f = 1 / (1 + np.exp(-(x[:, t] @ forget + numpy(layer.forget.bias))))
        state = f * state + (1 - f) * (x[:, t] @ kernel)
        expected.append(np.maximum(state, 0))
    output, cache = layer(x)
    np.testing.assert_allclose(numpy(output), np.stack(expected, axis=1), atol=1e-5)
    np.testing.assert_allclose(numpy(cache["state"]), state, atol=1e-5)
    assert layer.candidate.bias is None


def test_steps_of_beams_equal_one_pass(x, layer):
    whole, last = layer(x)
    _, cache = layer(x[:, :3])
    cache = {"state": ops.repeat(ops.expand_dims(cache["state"], 1), 2, axis=1)}
    for t in range(3, LENGTH):
        output, cache = layer(np.repeat(x[:, t : t + 1], 2, axis=1), cache=cache)
        for beam in range(2):
            np.testing.assert_allclose(numpy(output)[:, beam], numpy(whole)[:, t], atol=1e-6)
    np.testing.assert_allclose(numpy(cache["state"])[:, 0], numpy(last["state"]), atol=1e-6)


def test_the_state_starts_again_in_each_text_of_a_row(x, layer):
    segments = ops.convert_to_tensor(np.array([[1, 1, 2, 2, 2, 0, 0], [1] * 7], "int32"))
    packed, _ = layer(x, attention_mask=segment_mask(segments, segments))
    for row, part in ((0, slice(0, 2)), (0, slice(2, 5)), (1, slice(0, 7))):
        alone, _ = layer(x[row : row + 1, part])
        np.testing.assert_allclose(numpy(packed)[row, part], numpy(alone)[0], atol=1e-6)
    real = np.arange(LENGTH) >= np.array([[0], [3]])  # padding on the left
    padded, _ = layer(x, attention_mask=real[:, None, None])
    alone, _ = layer(x[1:, 3:])
    np.testing.assert_allclose(numpy(padded)[1, 3:], numpy(alone)[0], atol=1e-6)


@pytest.mark.once("test_every_layer.py saves each layer under each backend")
@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
def test_round_trips(x, rng, round_trips, dtype):
    round_trips(SSRU(dtype=dtype, name="ssru"), x=x)
    memory = rng.standard_normal((ROWS, 4, WIDTH)).astype("float32")
    options = dict(num_heads=2, d_ff=10, recurrence="ssru", dtype=dtype)
    round_trips(DecoderBlock(**options, name="block"), x=x, memory=memory)
    round_trips(Decoder(2, **options, norm_first=True, name="decoder"), x=x, memory=memory)


def test_later_tokens_and_padding_change_nothing(made):
    model = made()
    plain = logits(model)
    padded = logits(model, np.pad(SOURCE, ((0, 0), (0, 3))), np.pad(TARGET, ((0, 0), (0, 2))))
    np.testing.assert_allclose(padded[:, :4], plain, atol=1e-5)
    changed = TARGET.copy()
    changed[:, 2] = 9
    other = logits(model, target=changed)
    np.testing.assert_array_equal(other[:, :2], plain[:, :2])
    assert (np.abs(other - plain)[:, 2:].max(-1) > 1e-4).all()  # the state keeps it


def test_pairs_in_one_row(made):
    model = made()
    segments = np.array([[1] * 3 + [2] * 5]), np.array([[1] * 4 + [2] * 4])
    source = np.concatenate([SOURCE[:1, :3], SOURCE[1:]], axis=1)
    names = dict(zip(("source_segments", "target_segments"), segments, strict=True))
    packed = logits(model, source, TARGET.reshape(1, 8), **names)
    np.testing.assert_allclose(packed.reshape(2, 4, -1), logits(model), atol=1e-5)


def search(model, source=SOURCE, prefix=None, uniforms=None, **options):
    function = translation_function(Search(max_extra_length=2, **options), model)
    arguments = (source, np.array([6, 7], "int32"), prefix, uniforms)
    tensors = [x if x is None else ops.convert_to_tensor(x) for x in arguments]
    return map(numpy, compiled(function, model)(*tensors))


@pytest.mark.parametrize("beams", [1, 3])
def test_searches_find_what_full_passes_score(made, beams):
    model = made(norm_first=True)
    ids, scores = search(model, beam_size=beams, length_penalty=0.0)
    rows = ids.reshape(ROWS * beams, -1)
    target = np.concatenate([np.full_like(rows[:, :1], model.config.bos_id), rows[:, :-1]], axis=1)
    expected = score(logits(model, SOURCE.repeat(beams, axis=0), target), rows)
    np.testing.assert_allclose(scores.reshape(-1), expected, atol=1e-3)
    if beams == 1:  # each token is the best of its full pass
        best = logits(model, target=target)
        best[..., [model.config.pad_id, model.config.bos_id]] = -np.inf
        free = (rows != 0) & (np.cumsum(rows != 0, axis=1) < np.array([[6], [7]]))
        np.testing.assert_array_equal(best.argmax(-1)[free], rows[free])


@pytest.mark.once("steps are those of the full pass under each")
def test_forced_tokens_samples_and_ensembles(made, rng):
    model = made()
    prefix = np.array([[7, 8], [9, 0]], "int32")
    ids, scores = search(model, prefix=prefix, beam_size=2, length_penalty=0.0)
    assert (ids[0, :, :2] == [7, 8]).all() and (ids[1, :, 0] == 9).all()
    uniforms = rng.uniform(size=(ROWS, 8)).astype("float32")
    drawn, logs = search(model, uniforms=uniforms, temperature=1.0, length_penalty=0.0)
    for rows, sums in ((ids[:, 0], scores[:, 0]), (drawn[:, 0], logs[:, 0])):
        target = np.concatenate([np.full((ROWS, 1), 2), rows[:, :-1]], axis=1)
        expected = score(logits(model, target=target), rows)
        np.testing.assert_allclose(sums, expected, atol=1e-3)
    alone, _ = search(model, beam_size=3)
    both, _ = search(Ensemble([model, model]), beam_size=3)
    np.testing.assert_array_equal(both, alone)
    mixed = Ensemble([model, made(decoder_recurrence=None)])
    assert next(search(mixed, beam_size=3)).shape == alone.shape


def fitted(model, epochs=15, **inputs):
    labels = np.pad(TARGET[:, 1:], ((0, 0), (0, 1)), constant_values=3)
    model.compile(adam(3e-3), LabelSmoothedCrossentropy(0.1, model.config.pad_id))
    data = {"source_ids": SOURCE, "target_ids": TARGET, **inputs}
    return model.fit(data, labels, epochs=epochs, verbose=0).history["loss"]


def test_training_lowers_the_loss(made):
    model = made()
    before = {weight.path: numpy(weight) for weight in model.trainable_weights}
    losses = fitted(model)
    assert losses[-1] < 0.8 * losses[0]
    for weight in model.trainable_weights:
        assert np.abs(numpy(weight) - before[weight.path]).max() > 0, weight.path


@pytest.mark.once("made of parts that are tested under each backend")
def test_remat_lora_and_alignment(made):
    plain, less = made(), made()
    enable_remat(less)
    np.testing.assert_allclose(fitted(less, 3), fitted(plain, 3), rtol=1e-5)
    adapted = made()
    enable_lora(adapted, 2)
    assert any("recurrence/forget/lora" in x.path for x in adapted.trainable_weights)
    losses = fitted(adapted)
    assert losses[-1] < losses[0]
    aligned = made(guided_alignment=0.5)
    losses = fitted(aligned, alignment=np.array([[0, 1, 2, -1], [0, 1, 2, 3]], "int32"))
    assert losses[-1] < 0.8 * losses[0]
    with record_attention() as weights:
        logits(aligned)
    assert [path.split("/")[-1] for path in weights if "decoder" in path] == ["cross_attention"] * 2


def test_saved_and_loaded(made, saved_and_loaded):
    model = made()
    same = saved_and_loaded(model)
    assert same.config == model.config and same.config.decoder_recurrence == "ssru"
    np.testing.assert_allclose(logits(same), logits(model), atol=1e-6)
    model.quantize("int8")
    same = saved_and_loaded(model)
    assert same.decoder.blocks[0].recurrence.forget.quantization_mode == "int8"
    np.testing.assert_allclose(logits(same), logits(model), atol=1e-5)


def test_mixed_precision_keeps_the_state_in_float32(x):
    layer = SSRU(dtype="mixed_bfloat16")
    output, cache = layer(x)
    types = [keras.backend.standardize_dtype(y.dtype) for y in (output, cache["state"])]
    assert types == ["bfloat16", "float32"]


def test_what_cannot_be_combined():
    accepted = r"must be one of \(None, 'ssru'\), got 'gru'"
    with pytest.raises(ValueError, match=f"decoder_recurrence {accepted}"):
        TransformerConfig.tiny(9, decoder_recurrence="gru")
    with pytest.raises(ValueError, match=r"recurrence must be one of \('ssru',\) or None, got 'g"):
        Decoder(1, 2, 8, recurrence="gru")
    with pytest.raises(ValueError, match="window must be None with recurrence='ssru', got 3"):
        Decoder(1, 2, 8, recurrence="ssru", window=3)
    for name, value in dict(relative_positions=(8, 16), rotary=dict(head_dim=4)).items():
        with pytest.raises(ValueError, match="recurrence must be None with relative_positions or"):
            Decoder(1, 2, 8, recurrence="ssru", **{name: value})
