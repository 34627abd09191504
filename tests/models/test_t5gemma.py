"""T5Gemma beside what tests/hub/families/test_t5gemma_map.py compares with `transformers`."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer import LabelSmoothedCrossentropy, Perplexity, adam
from keras_transformer.models import T5Gemma, T5GemmaConfig, enable_lora, merged
from keras_transformer.saved.folder import in_precision

SIZES = dict(
    d_model=8, d_ff=12, num_encoder_layers=2, num_decoder_layers=2, num_heads=4, num_kv_heads=2,
    head_dim=4, window=3, window_layers=(0,), encoder_window=2, encoder_window_layers=(1,),
    attention_cap=2.0, logit_cap=3.0, max_length=24,
)  # fmt: skip
CONFIG = T5GemmaConfig(19, **SIZES)
SOURCE = np.array([[5, 6, 7, 8, 4, 9, 1], [9, 4, 1, 0, 0, 0, 0]], "int32")
TARGET = np.array([[2, 7, 9, 3, 8, 6], [2, 5, 1, 0, 0, 0]], "int32")
INPUTS = {"source_ids": SOURCE, "target_ids": TARGET}
LABELS = np.array([[7, 9, 3, 8, 6, 1], [5, 1, 0, 0, 0, 0]], "int32")


@pytest.fixture(scope="module")
def model(randomize):
    return randomize(T5Gemma(CONFIG), scale=0.5)


def logits(model, inputs=INPUTS):
    return ops.convert_to_numpy(ops.cast(model(inputs), "float32"))


@pytest.mark.once("fields of a config reach the layers alike")
@pytest.mark.parametrize(
    "change",
    [
        dict(num_heads=2), dict(num_kv_heads=4), dict(head_dim=6), dict(d_ff=8),
        dict(encoder_d_model=12), dict(encoder_d_ff=8), dict(num_encoder_heads=2),
        dict(num_encoder_kv_heads=4), dict(theta=10.0), dict(window=2), dict(window_layers=None),
        dict(encoder_window=3), dict(encoder_window_layers=None), dict(query_scale=1.0),
        dict(attention_cap=0.5), dict(logit_cap=0.5), dict(epsilon=0.1),
    ],
    ids=lambda fields: next(iter(fields)),
)  # fmt: skip
def test_each_field_counts(change, assert_counts):
    assert_counts(T5Gemma, CONFIG, INPUTS, **change)


@pytest.mark.once("made of parts that are tested under each backend")
def test_saved_and_loaded(model, saved_and_loaded):
    again = saved_and_loaded(model)
    assert again.config == CONFIG
    np.testing.assert_allclose(logits(again), logits(model), atol=1e-6)


@pytest.mark.once("made of parts that are tested under each backend")
def test_pairs_in_one_row_have_the_logits_of_pairs_alone(model):
    """Rotary positions and windows depend on distances within a pair only."""
    source = np.concatenate([SOURCE[:1], SOURCE[1:, :3]], axis=1)
    target = np.concatenate([TARGET[:1], TARGET[1:, :3]], axis=1)
    segments = [np.array([[1] * first + [2] * 3], "int32") for first in (7, 6)]
    names = dict(zip(("source_segments", "target_segments"), segments, strict=True))
    packed = logits(model, {"source_ids": source, "target_ids": target} | names)
    alone = logits(model)
    np.testing.assert_allclose(packed[0, :6], alone[0], atol=1e-5)
    np.testing.assert_allclose(packed[0, 6:], alone[1, :3], atol=1e-5)


@pytest.mark.once("made of parts that are tested under each backend")
def test_steps_give_the_logits_of_a_full_pass(model):
    """Also past the window, whose cache is a ring; and those of a list of allowed ids."""
    expected = logits(model)[:1]
    source, first = (ops.convert_to_tensor(x[:1, :n]) for x, n in ((SOURCE, 7), (TARGET, 1)))
    found, state, step = model.prefill(source, first, 6)
    for i in range(5):
        np.testing.assert_allclose(ops.convert_to_numpy(found), expected[:, i], atol=1e-5)
        found, state = step(TARGET[:1, i + 1 : i + 2], state, i + 1)
        found = found[:, 0]
    assert np.abs(expected).max() <= 3.0
    listed = np.array([9, 3, -1], "int32"), np.array([[True, True, False]])
    some, _, _ = model.prefill(source, first, 6, listed=[ops.convert_to_tensor(x) for x in listed])
    np.testing.assert_allclose(ops.convert_to_numpy(some)[0, :2], expected[0, 0, [9, 3]], atol=1e-5)


@pytest.mark.once("made of parts that are tested under each backend")
@pytest.mark.parametrize("precision", ["bfloat16", "int8", "q8", "q4"])
def test_precisions(randomize, precision):
    sizes = dict(d_model=64, d_ff=64, head_dim=16)
    model = randomize(T5Gemma(T5GemmaConfig(19, **SIZES | sizes)), scale=0.2)
    expected = logits(model)
    found = logits(in_precision(model, precision, "x"))
    assert np.abs(found - expected).max() < (0.6 if precision == "q4" else 0.1)


@pytest.mark.once("made of parts that are tested under each backend")
@pytest.mark.parametrize("rank", [0, 2])
def test_trains_whole_and_by_lora(rank):
    model = T5Gemma(CONFIG)
    if rank:
        enable_lora(model, rank=rank)
    model.compile(adam(3e-2), LabelSmoothedCrossentropy(), metrics=[Perplexity()])
    losses = model.fit(INPUTS, LABELS, epochs=15, verbose=0).history["loss"]
    assert losses[-1] < 0.8 * losses[0]
    if rank:
        np.testing.assert_allclose(logits(merged(model)), logits(model), atol=1e-5)


@pytest.mark.once("configs")
def test_graphs_have_no_windows():
    model = T5Gemma(T5GemmaConfig(19, **SIZES | dict(window=None, window_layers=None)))
    model.require_whole_caches()
    with pytest.raises(ValueError, match="window must be None for a graph of a decoder step, got"):
        T5Gemma(CONFIG).require_whole_caches()


def test_equal_configs_are_equal():
    other = T5GemmaConfig(19, **SIZES, encoder_d_model=8, num_encoder_heads=4)
    assert other == CONFIG and keras.saving.serialize_keras_object(other.to_dict())
    assert other.encoder_sizes == dict(d_model=8, d_ff=12, num_heads=4, num_kv_heads=2)


@pytest.mark.parametrize(
    "change,said",
    [
        (dict(d_model=0), "d_model must be a whole number of at least 1, got 0"),
        (dict(encoder_d_ff=0), "encoder_d_ff must be a whole number of at least 1, got 0"),
        (dict(num_kv_heads=3), "num_heads must be divisible by num_kv_heads"),
        (dict(num_encoder_heads=3), "num_encoder_heads must be a multiple of the encoder's 2 key"),
        (dict(head_dim=3), "head_dim must be even for rotary positions, got 3"),
        (dict(theta=0.0), "theta must be above 0, got 0.0"),
        (dict(logit_cap=0.0), "logit_cap must be above 0 or None, got 0.0"),
        (dict(window=0), "window must be a whole number of at least 1, got 0"),
        (dict(window=None), "window must be given with window_layers, got None"),
        (dict(encoder_window=None), "encoder_window must be given with encoder_window_layers"),
        (dict(window_layers=(2,)), r"window_layers must be indices .* num_decoder_layers=2, got"),
        (dict(encoder_window_layers=()), "encoder_window_layers must be one or more blocks"),
        (dict(eos_id=19), "eos_id must be in"),
        (dict(pad_id=1), "pad_id and eos_id must differ, both are 1"),
    ],
)
def test_bad_configs(change, said):
    with pytest.raises(ValueError, match=said):
        T5GemmaConfig(19, **SIZES | change)
