"""Linear attention against its quadratic form, the softmax that it approximates, and its steps."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.backend import compiled
from keras_transformer.config import TransformerConfig
from keras_transformer.data.windows import NO_LABEL
from keras_transformer.layers import (
    Decoder,
    Encoder,
    MultiHeadAttention,
    PositionalEmbedding,
    record_attention,
)
from keras_transformer.layers import linear_attention as linear
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.models import GPT, EncoderDecoder, GPTConfig, LLaMA, LLaMAConfig
from keras_transformer.models.encoder_decoder import Parts
from keras_transformer.optimizers import adam
from keras_transformer.running.search_functions import generation_function, translation_function
from keras_transformer.search import Generation, Search
from tests.backends import cases

KERNELS = ["elu", "performer"]
WIDTH, HEADS, H = 12, 2, 6

numpy = ops.convert_to_numpy


def phi(kernel, x, directions, of_queries=False):
    """The maps of the papers, in NumPy."""
    if kernel == "elu":
        return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))
    x = x / x.shape[-1] ** 0.25
    logits = x @ directions - (x**2).sum(-1, keepdims=True) / 2
    return np.exp(logits - logits.max(-1, keepdims=True) * of_queries) + 1e-6


def made(cross=False, **options):
    layer = MultiHeadAttention(HEADS, cross, use_bias=False, **options)
    layer.build((None, None, WIDTH))
    return layer


@pytest.fixture(params=cases(KERNELS, "performer"))
def kernel(request):
    return request.param


@pytest.mark.parametrize("case", ["self", "causal", "cross", "packed"])
def test_equals_the_quadratic_form(rng, kernel, case, monkeypatch):
    """Numerator and denominator by a matrix of weights, for several chunks and a rest."""
    monkeypatch.setattr(linear, "CHUNK", 4)
    layer = made(case == "cross", kernel=kernel, causal=case in ("causal", "packed"))
    x, memory = (rng.standard_normal((2, n, WIDTH)).astype("float32") for n in (11, 7))
    source = memory if case == "cross" else x
    mask = np.arange(source.shape[1]) < np.array([source.shape[1], 5])[:, None]
    mask = mask[:, None, None]
    if case == "packed":
        segments = np.arange(11) < np.array([6, 4])[:, None]
        mask = (segments[:, :, None] == segments[:, None])[:, None]
    options = dict(memory=memory) if case == "cross" else {}
    with record_attention() as recorded:
        layer(x, attention_mask=mask, **options)
    attended, cache = layer(x, attention_mask=mask, **options)

    plain = made(case == "cross", causal=False)
    plain.set_weights([numpy(w) for w in layer.weights if "directions" not in w.path])
    directions = None if kernel == "elu" else numpy(layer.directions)
    _, heads = plain(source, memory=source) if case == "cross" else plain(x)
    key, value = numpy(heads["key"]), numpy(heads["value"])
    if case == "cross":
        query = (x @ numpy(layer.query.kernel)).reshape(2, 11, HEADS, H).transpose(0, 2, 1, 3)
    else:
        fused = (x @ numpy(layer.query_key_value.kernel)).reshape(2, 11, HEADS, 3, H)
        query = fused[:, :, :, 0].transpose(0, 2, 1, 3)
    weights = phi(kernel, query, directions, True) @ phi(kernel, key, directions).swapaxes(2, 3)
    allowed = mask & np.tri(11, dtype=bool) if case in ("causal", "packed") else mask
    weights = np.where(allowed, weights, 0.0)
    weights /= weights.sum(-1, keepdims=True)
    joined = (weights @ value).transpose(0, 2, 1, 3).reshape(2, 11, WIDTH)
    expected = joined @ numpy(layer.output_projection.kernel)
    np.testing.assert_allclose(numpy(attended), expected, atol=1e-5)
    np.testing.assert_allclose(numpy(recorded[layer.path]), weights, atol=1e-5)
    shape = (2, HEADS, linear.num_features(kernel, H), H + 1)
    assert tuple(cache["state"].shape) == shape


def test_random_features_approximate_the_softmax(rng):
    """The mean over many directions is exp(q k / sqrt(H)) (Choromanski et al. 2021, lemma 1)."""
    keras.utils.set_random_seed(1)
    directions = linear.random_directions((16, 4000))
    query, key = (0.4 * rng.standard_normal((1, 1, 9, 16)).astype("float32") for _ in range(2))
    weights = linear.linear_weights(
        linear.features("performer", ops.convert_to_tensor(query), directions, of_queries=True),
        linear.features("performer", ops.convert_to_tensor(key), directions),
    )
    products = np.exp(query @ key.swapaxes(2, 3) / 16**0.5)
    softmax = products / products.sum(-1, keepdims=True)
    np.testing.assert_allclose(numpy(weights), softmax, atol=0.02)


def test_directions_are_orthogonal_by_blocks():
    found = numpy(linear.random_directions((H, 2 * H + 2)))
    for block in (found[:, :H], found[:, H : 2 * H], found[:, 2 * H :]):
        products = block.T @ block
        np.testing.assert_allclose(products - np.diag(np.diag(products)), 0, atol=1e-4)
    assert found.shape == (H, 14) and np.std(np.linalg.norm(found, axis=0)) > 0.1


V = 17
SIZES = dict(d_model=WIDTH, d_ff=16, num_layers=2, num_heads=HEADS, max_length=24, dropout=0.0)
MODELS = {
    "elu": lambda: GPT(GPTConfig(V, **SIZES, kernel="elu")),
    "performer": lambda: LLaMA(LLaMAConfig(V, **SIZES, num_kv_heads=1, kernel="performer")),
}
IDS = np.random.default_rng(0).integers(3, V, (2, 9)).astype("int32")


def logits(model, ids):
    return numpy(model({"token_ids": ops.convert_to_tensor(ids)}))


@pytest.mark.parametrize("padding", cases([0, 3], 3))
def test_steps_are_the_full_pass(kernel, padding, randomize):
    """With a state of constant size, whatever the length."""
    model = randomize(MODELS[kernel](), scale=2.0)
    full = logits(model, IDS)
    ids = np.concatenate([np.zeros((2, padding), "int32"), IDS[:, :4]], axis=1)
    segments = (np.arange(4 + padding) >= padding).astype("int32")[None].repeat(2, axis=0)

    def run(ids, segments, rest):
        found, state, step = model.prefill(ids, 16, 1, segments if padding else None)
        results = [found]
        for i in range(5):
            found, state = step(rest[:, i : i + 1], state, i + 4 + padding)
            results.append(found[:, 0])
        sizes = [ops.size(x) for x in keras.tree.flatten(state["caches"])]
        return ops.stack(results, axis=1), ops.stack(sizes)

    tensors = map(ops.convert_to_tensor, (ids, segments, IDS[:, 4:]))
    found, sizes = compiled(run, model)(*tensors)
    np.testing.assert_allclose(numpy(found), full[:, 3:], atol=1e-4)
    state = 2 * HEADS * linear.num_features(kernel, H) * (H + 1)
    assert numpy(sizes).tolist() == [state] * 2


@pytest.mark.once("steps are those of the full pass under each")
def test_beams_find_what_full_passes_score(kernel, randomize):
    model = randomize(MODELS[kernel](), scale=2.0)
    search = Generation(beam_size=3, max_new_tokens=6, length_penalty=0.0)
    tensors = map(ops.convert_to_tensor, (IDS[:, :3], np.array([6, 6], "int32")))
    ids, scores = map(numpy, compiled(generation_function(search, model), model)(*tensors))
    texts = np.concatenate([IDS[:, :3].repeat(3, axis=0), ids.reshape(6, -1)], axis=1)
    expected = score(logits(model, np.maximum(texts, 0))[:, 2:], texts[:, 3:])
    np.testing.assert_allclose(scores.reshape(6), expected, atol=1e-3)


def score(logits, ids):
    """The log-probability of each row of tokens: where they are negative there is none."""
    log_probs = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    found = np.take_along_axis(log_probs[:, : ids.shape[1]], np.maximum(ids, 0)[..., None], -1)
    return np.where(ids < 0, 0.0, found[..., 0]).sum(-1)


@pytest.mark.once("made of parts that are tested under each backend")
def test_cached_cross_attention_and_its_beams(rng, kernel, randomize):
    decoder = Decoder(2, HEADS, 16, kernel=kernel)
    x, memory = (rng.standard_normal((2, n, WIDTH)).astype("float32") for n in (4, 7))
    mask = (np.arange(7) < np.array([7, 5])[:, None])[:, None, None]
    decoder.build(x.shape, memory.shape)
    randomize(decoder)
    whole, _ = decoder(x, memory=memory, cross_attention_mask=mask)
    _, caches = decoder(x[:, :3], memory=memory, cross_attention_mask=mask)
    for cache in caches:
        cache["self"] = {"state": ops.expand_dims(cache["self"]["state"], 1)}
    step, _ = decoder(x[:, 3:], cache=caches, index=3)
    np.testing.assert_allclose(numpy(step)[:, 0], numpy(whole)[:, 3], atol=1e-4)


@pytest.mark.once("made of parts that are tested under each backend")
def test_saved_trained_and_encoded(kernel, randomize, saved_and_loaded, rng):
    model = randomize(MODELS[kernel]())
    np.testing.assert_allclose(logits(saved_and_loaded(model), IDS), logits(model, IDS), atol=1e-6)
    model.compile(adam(1e-2), LabelSmoothedCrossentropy(0.0, NO_LABEL))
    fixed = [numpy(x) for x in model.non_trainable_weights]
    labels = np.roll(IDS, -1, axis=1)
    losses = model.fit({"token_ids": IDS}, labels, epochs=15, verbose=0).history["loss"]
    assert losses[-1] < 0.9 * losses[0]
    for before, weight in zip(fixed, model.non_trainable_weights, strict=True):
        if "directions" in weight.path:
            np.testing.assert_array_equal(numpy(weight), before)
    encoder = Encoder(2, HEADS, 16, kernel=kernel)
    x = rng.standard_normal((2, 5, WIDTH)).astype("float32")
    mask = (np.arange(5) < np.array([5, 3])[:, None])[:, None, None]
    found, changed = encoder(x, attention_mask=mask), x.copy()
    changed[1, 3:] = 9.0
    again = encoder(changed, attention_mask=mask)
    np.testing.assert_allclose(numpy(found)[1, :3], numpy(again)[1, :3], atol=1e-5)


@pytest.mark.parametrize(
    "options,message",
    [
        (dict(kernel="cosine"), r"kernel must be one of \('elu', 'performer'\) or None, got 'cos"),
        (dict(kernel="elu", window=3), "window must be None with kernel='elu', got 3"),
        (dict(kernel="elu", soft_cap=3.0), "soft_cap must be None with kernel='elu', got 3.0"),
        (
            dict(kernel="elu", query_scale=1.0),
            "query_scale must be None with kernel='elu', got 1.0",
        ),
        (dict(kernel="elu", global_tokens=1), "global_tokens must be 0 with a kernel, got 1"),
    ],
)
def test_what_cannot_be_combined(options, message):
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(HEADS, **options)


def test_biases_and_windows_of_models_are_refused(kernel):
    with pytest.raises(ValueError, match="relative_positions must be None with kernel="):
        Encoder(1, HEADS, 16, kernel=kernel, relative_positions=(8, 16))
    with pytest.raises(ValueError, match="window must be None with "):
        LLaMAConfig(V, **SIZES, kernel=kernel, window=3)
    layer, x = made(kernel=kernel), np.zeros((1, 3, WIDTH), "float32")
    with pytest.raises(ValueError, match="bias must be None with a kernel"):
        layer(x, bias=np.zeros((1, 1, 3, 3), "float32"))


@pytest.mark.once("steps and beams of its layers are computed under each")
def test_a_translator_of_linear_attention(kernel, randomize):
    """Beams of a decoder with cross-attention score what full passes score."""
    sizes = dict(num_heads=HEADS, d_ff=16, kernel=kernel)
    embedding = PositionalEmbedding(V, WIDTH, max_length=24, name="embedding")
    parts = Parts(
        0, embedding, embedding, Encoder(1, **sizes), Decoder(2, **sizes), embedding.tokens
    )
    config = TransformerConfig(V, V, WIDTH, 16, 1, 2, HEADS)
    model = randomize(EncoderDecoder(config, keras.config.dtype_policy(), parts), scale=2.0)
    source = np.where(np.arange(9) < np.array([[9], [6]]), IDS, 0)
    search = Search(beam_size=3, length_penalty=0.0, max_extra_length=1)
    tensors = map(ops.convert_to_tensor, (source, np.array([6, 6], "int32")))
    ids, scores = map(numpy, compiled(translation_function(search, model), model)(*tensors))
    found = ids.reshape(6, -1)
    target = np.concatenate([np.full((6, 1), config.bos_id), found[:, :-1]], axis=1)
    inputs = {"source_ids": source.repeat(3, axis=0), "target_ids": target}
    expected = score(numpy(model(inputs)), np.where(found == 0, -1, found))
    np.testing.assert_allclose(scores.reshape(6), expected, atol=1e-3)
