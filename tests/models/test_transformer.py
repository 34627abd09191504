"""The whole model: PyTorch's, exact parameter counts, invariants, steps, saving, other backends."""

import itertools

import hypothesis
import hypothesis.strategies as st
import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.config import TransformerConfig
from keras_transformer.layers import record_attention, sinusoids
from keras_transformer.losses import LabelSmoothedCrossentropy, alignment_loss
from keras_transformer.models import Transformer, enable_remat
from keras_transformer.optimizers import adam
from tests.backends import cases

SOURCE = np.array([[4, 1, 3, 0], [8, 9, 11, 3]], "int32")
TARGET = np.array([[2, 7, 8, 4, 1], [2, 5, 6, 3, 0]], "int32")
VARIANTS = {
    "paper": {},
    "pre-norm": dict(norm_first=True, activation="gelu"),
    "untied": dict(tie_output=False, share_embeddings=False, target_vocab_size=12),
    "learned": dict(positions="learned", share_embeddings=False),
}


def numpy(x):
    return ops.convert_to_numpy(ops.cast(x, "float32"))


def logits(model, source=SOURCE, target=TARGET):
    return numpy(model({"source_ids": source, "target_ids": target}))


@pytest.fixture(scope="module")
def models(tiny_transformer):
    return {name: tiny_transformer(**changes) for name, changes in VARIANTS.items()}


@pytest.mark.parametrize("norm_first", [False, True])
def test_equals_pytorchs(tiny_transformer, from_torch, shake, norm_first):
    torch = pytest.importorskip("torch")
    model = tiny_transformer(norm_first=norm_first)
    theirs = torch.nn.Transformer(
        6, 2, 1, 2, 10, 0.0, layer_norm_eps=1e-6, batch_first=True, norm_first=norm_first
    )
    if not norm_first:  # the paper's stacks have no norm of their own
        theirs.encoder.norm = theirs.decoder.norm = None
    shake(theirs)
    from_torch(model.encoder, theirs.encoder)
    from_torch(model.decoder, theirs.decoder)

    table = numpy(model.target_embedding.tokens.embeddings)
    embedded = [
        torch.from_numpy(table[ids] * np.float32(6**0.5) + sinusoids(ids.shape[1], 6))
        for ids in (SOURCE, TARGET)
    ]
    padding = torch.from_numpy(SOURCE == 0)
    with torch.no_grad():
        output = theirs(
            *embedded,
            tgt_mask=torch.from_numpy(~np.tri(TARGET.shape[1], dtype=bool)),
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
    np.testing.assert_allclose(logits(model), output.numpy() @ table.T, atol=1e-4)


def count(config):
    """Parameters by Table 3's sizes: a matrix and a bias a projection, two vectors a norm."""
    d, f = config.d_model, config.d_ff
    attention, feed_forward, norm = 4 * (d * d + d), d * f + f + f * d + d, 2 * d
    encoder = config.num_encoder_layers * (attention + feed_forward + 2 * norm)
    decoder = config.num_decoder_layers * (2 * attention + feed_forward + 3 * norm)
    own_table = 0 if config.share_embeddings else config.source_vocab_size * d
    own_output = 0 if config.tie_output else config.target_vocab_size * d
    tables = 1 if config.share_embeddings else 2
    positions = tables * config.max_length * d if config.positions == "learned" else 0
    return (
        encoder
        + decoder
        + (2 * norm if config.norm_first else 0)
        + config.target_vocab_size * d
        + own_table
        + own_output
        + positions
    )


@pytest.mark.parametrize("variant", VARIANTS)
def test_parameters_of_each_variant(models, variant):
    assert models[variant].count_params() == count(models[variant].config)


@pytest.mark.once("made of parts that are tested under each backend")
@pytest.mark.parametrize(
    "preset,millions,exact", [("base", 65, 63_082_496), ("big", 213, 214_245_376)]
)
def test_parameters_of_table_3(monkeypatch, preset, millions, exact):
    # Zeros: random numbers by the hundred million take their time.
    for initializer in (keras.initializers.VarianceScaling, keras.initializers.RandomNormal):
        monkeypatch.setattr(
            initializer, "__call__", lambda self, shape, dtype=None: ops.zeros(shape, dtype)
        )
    config = getattr(TransformerConfig, preset)(37_000)
    assert count(config) == exact and abs(exact / 1e6 - millions) < 0.03 * millions
    assert Transformer(config, dtype="bfloat16").count_params() == exact


@pytest.mark.once("made of parts that are tested under each backend")
@pytest.mark.parametrize("variant", cases(["paper", "pre-norm"], "pre-norm"))
@hypothesis.settings(max_examples=10)
@hypothesis.given(place=st.integers(1, TARGET.shape[1] - 1), seed=st.integers(0, 2**32 - 1))
def test_no_future_token_changes_a_past_logit(models, variant, place, seed):
    other = TARGET.copy()
    new = np.random.default_rng(seed).integers(0, 13, other[:, place:].shape)
    other[:, place:] = new
    before, after = logits(models[variant]), logits(models[variant], target=other)
    np.testing.assert_array_equal(before[:, :place], after[:, :place])
    changed = (TARGET[:, place] != other[:, place]) & (TARGET[:, place] != 0)
    assert (np.abs(before - after)[changed, place].max(-1) > 0).all()


@pytest.mark.parametrize("variant", cases(["paper", "pre-norm", "learned"], "paper"))
def test_padding_changes_nothing(models, variant):
    wider_source, wider_target = (np.pad(ids, ((0, 0), (0, 3))) for ids in (SOURCE, TARGET))
    wider = logits(models[variant], wider_source, wider_target)
    np.testing.assert_allclose(wider[:, : TARGET.shape[1]], logits(models[variant]), atol=1e-4)


@pytest.mark.parametrize("variant", cases(["paper", "pre-norm"], "paper"))
def test_batch_mates_change_nothing(models, variant):
    together = logits(models[variant])
    length = int((SOURCE[0] != 0).sum())  # without the padding that its mate brought
    alone = logits(models[variant], SOURCE[:1, :length], TARGET[:1])
    np.testing.assert_allclose(alone[0], together[0], atol=1e-4)


def test_a_source_of_padding_alone_stays_finite(models):
    assert np.isfinite(logits(models["paper"], source=0 * SOURCE)).all()


@pytest.mark.parametrize(
    "variant,first",
    cases([*((name, 1) for name in VARIANTS), ("paper", 3)], ("learned", 1), ("paper", 3)),
)
def test_prefill_and_steps_equal_the_full_pass(models, variant, first):
    model, length = models[variant], TARGET.shape[1]
    whole = logits(model)
    next_logits, state, step = model.prefill(SOURCE, TARGET[:, :first], length)
    for position in range(first, length):
        np.testing.assert_allclose(numpy(next_logits), whole[:, position - 1], atol=1e-4)
        next_logits, state = step(TARGET[:, position : position + 1], state, position)
        next_logits = next_logits[:, 0]
    np.testing.assert_allclose(numpy(next_logits), whole[:, -1], atol=1e-4)


@pytest.mark.once("made of parts that are tested under each backend")
def test_beams_of_a_step_equal_rows_of_their_own(models):
    """Two steps of three beams; in the second each goes on from a beam that is not itself."""
    model, beams, length = models["paper"], 3, 5
    tokens = np.array([[[4, 5, 6], [7, 8, 9]], [[9, 4, 4], [11, 1, 10]]], "int32")
    parents = np.array([[1, 2, 0], [2, 2, 1]], "int32")
    _, state, step = model.prefill(SOURCE, TARGET[:, :2], length, beams)
    ancestors = np.full((2, beams, length), -1, "int32")
    ancestors[:, :, :2] = 0
    ancestors[:, :, 2] = np.arange(beams)
    first, state = step(tokens[0], state, 2, ancestors)
    ancestors = np.take_along_axis(ancestors, parents[:, :, None], axis=1)
    ancestors[:, :, 3] = np.arange(beams)
    second, _ = step(tokens[1], state, 3, ancestors)
    rows = np.repeat(np.arange(2), beams)
    firsts = [tokens[0], np.take_along_axis(tokens[0], parents, axis=1)]
    targets = np.concatenate([TARGET[rows, :2], firsts[0].reshape(-1, 1)], axis=1)
    expected = logits(model, SOURCE[rows], targets)[:, -1].reshape(2, beams, -1)
    np.testing.assert_allclose(numpy(first), expected, atol=1e-4)
    targets = [TARGET[rows, :2], firsts[1].reshape(-1, 1), tokens[1].reshape(-1, 1)]
    expected = logits(model, SOURCE[rows], np.concatenate(targets, axis=1))[:, -1]
    np.testing.assert_allclose(numpy(second), expected.reshape(2, beams, -1), atol=1e-4)


def test_recorded_attention(models, saved_and_loaded):
    model = models["paper"]
    paths = ["encoder/block_0/attention"]
    for block in ("decoder/block_0", "decoder/block_1"):
        paths += [f"{block}/self_attention", f"{block}/cross_attention"]
    for each in (model, saved_and_loaded(model)):
        with record_attention() as weights:
            recorded = logits(each)
        assert sorted(weights) == sorted(paths)
        np.testing.assert_allclose(recorded, logits(each), atol=1e-5)  # by another kernel
        for path, value in weights.items():
            value = numpy(value)
            np.testing.assert_allclose(value.sum(-1), 1, atol=1e-5)
            if not path.endswith("self_attention"):
                assert (value[0, ..., SOURCE[0] == 0] == 0).all()
            else:
                assert (np.triu(value, 1) == 0).all()


@pytest.mark.parametrize(
    "variant,dtype",
    cases(
        [*itertools.product(VARIANTS, ["float32", "mixed_bfloat16"])],
        ("learned", "float32"),
        ("paper", "mixed_bfloat16"),
    ),
)
def test_round_trips(models, tiny_transformer, saved_and_loaded, variant, dtype):
    model = models[variant]
    if dtype != "float32":
        model = tiny_transformer(dtype=dtype, **VARIANTS[variant])
    loaded = saved_and_loaded(model)
    assert isinstance(loaded, Transformer) and loaded.config == model.config
    assert loaded.encoder.dtype_policy.name == loaded.encoder.blocks[0].attention.dtype_policy.name
    assert loaded.encoder.dtype_policy.name == dtype
    assert keras.backend.standardize_dtype(loaded.weights[0].dtype) == "float32"
    np.testing.assert_allclose(logits(loaded), logits(model), atol=1e-6)
    next_logits, _, _ = loaded.prefill(SOURCE, TARGET[:, :1], 3)
    np.testing.assert_allclose(numpy(next_logits), logits(model)[:, 0], atol=0.1)


def test_the_global_dtype_policy_is_taken(tiny_transformer, saved_and_loaded):
    keras.config.set_dtype_policy("mixed_bfloat16")
    try:
        model = tiny_transformer()
    finally:
        keras.config.set_dtype_policy("float32")
    assert model.decoder.compute_dtype == "bfloat16"
    assert saved_and_loaded(model).decoder.compute_dtype == "bfloat16"


def test_bfloat16_is_near_float32(models, tiny_transformer):
    half = logits(tiny_transformer(dtype="mixed_bfloat16"))
    whole = logits(models["paper"])
    assert np.abs(half - whole).mean() < 0.05 * np.abs(whole).mean()


def test_trains(tiny_transformer):
    model = tiny_transformer(scale=1.0, dropout=0.0, num_decoder_layers=1)
    model.compile(
        keras.optimizers.Adam(1e-2), keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    )
    inputs = {"source_ids": SOURCE, "target_ids": TARGET}
    labels = np.roll(TARGET, -1, axis=1)
    history = model.fit(inputs, labels, epochs=8, batch_size=2, verbose=0).history["loss"]
    assert history[-1] < 0.8 * history[0]


def test_which_embeddings_are_shared(tiny_transformer):
    def embeddings(**options):
        weights = tiny_transformer(**options).weights
        return {w.path for w in weights if w.path.split("/")[0].endswith("_embedding")}

    table, learned = "target_embedding/tokens/embeddings", "target_embedding/positions/embeddings"
    assert embeddings() == {table}
    assert embeddings(positions="learned") == {table, learned}
    own = {f"{x}_embedding/norm/{y}" for x in ("source", "target") for y in ("gamma", "beta")}
    own |= {learned, learned.replace("target", "source"), table}
    assert embeddings(positions="learned", norm_embeddings=True) == own


SOURCE_IDS = np.array([[5, 6, 7, 3], [8, 9, 3, 0]], "int32")
LABELS = np.array([[10, 11, 3, 0], [12, 10, 11, 3]], "int32")
TARGET_IDS = np.array([[2, 10, 11, 3], [2, 12, 10, 11]], "int32")
ALIGNMENT = np.array([[1, 0, 3, -1], [-1, 0, 1, 2]], "int32")


@pytest.mark.once("made of parts that are tested under each backend")
def test_a_head_learns_an_alignment(tiny_transformer):
    model = tiny_transformer(guided_alignment=0.5, dropout=0.0, num_decoder_layers=1)
    model.compile(adam(0.03), LabelSmoothedCrossentropy())
    inputs = {"source_ids": SOURCE_IDS, "target_ids": TARGET_IDS}
    aligned = {**inputs, "alignment": ALIGNMENT}

    def added():
        with record_attention() as weights:
            model(inputs)
        own = weights[model.decoder.aligning.path][:, 0]
        return float(ops.convert_to_numpy(alignment_loss(own, ALIGNMENT, TARGET_IDS != 0)))

    plain, _ = model.loss_and_likelihood(inputs, LABELS)
    guided, _ = model.loss_and_likelihood(aligned, LABELS)
    before = added()
    guided, plain = (float(ops.convert_to_numpy(x)) for x in (guided, plain))
    assert guided - plain == pytest.approx(0.5 * before, abs=1e-4)
    model.fit(aligned, LABELS, batch_size=2, epochs=60, verbose=0)
    assert added() < before / 4
    # Logits are the same with an alignment, and the graph without one is unchanged.
    with_one, without = (ops.convert_to_numpy(model(x)) for x in (aligned, inputs))
    np.testing.assert_allclose(with_one, without, atol=1e-5)


def test_an_alignment_needs_its_weight(tiny_transformer):
    inputs = {"source_ids": SOURCE_IDS, "target_ids": TARGET_IDS, "alignment": ALIGNMENT}
    with pytest.raises(ValueError, match="guided_alignment must be above 0 for an alignment"):
        tiny_transformer()(inputs)
    model = tiny_transformer(guided_alignment=0.5)
    enable_remat(model)
    with pytest.raises(ValueError, match="guided_alignment must be 0 with remat, got 0.5"):
        model(inputs)
