"""GPT, LLaMA, Gemma: causal, cached steps as the full pass, packed as alone, saved and loaded."""

import numpy as np
import pytest
from keras import ops

from keras_transformer import LabelSmoothedCrossentropy, Perplexity, adam
from keras_transformer.backend import compiled
from keras_transformer.data.windows import NO_LABEL, packed
from keras_transformer.models import (
    GPT,
    Gemma,
    GemmaConfig,
    GPTConfig,
    LLaMA,
    LLaMAConfig,
    enable_remat,
)
from tests.backends import cases

V = 17
SIZES = dict(d_model=8, d_ff=12, num_layers=2, num_heads=4, max_length=24, dropout=0.0)
MODELS = {
    "gpt": (GPT, GPTConfig(V, **SIZES)),
    "llama": (LLaMA, LLaMAConfig(V, **SIZES, num_kv_heads=2)),
    "relative": (
        LLaMA,
        LLaMAConfig(
            V, **SIZES, head_dim=4, window=3, window_layers=(0,), no_rotary=(1,), qkv_bias=True,
            output_bias=True, feed_forward_bias=True, qk_norm="whole", norm_input=False,
            norm_output=True, embedding_scale=3.0, residual_scale=0.5, logit_divisor=0.3,
        ),
    ),
    "gemma": (
        Gemma,
        GemmaConfig(
            V, **SIZES | dict(num_layers=3), num_kv_heads=2, head_dim=4, window=3,
            window_layers=(0, 2), local_theta=50.0, query_scale=0.7, attention_cap=1.5,
            logit_cap=3.0, qk_norm=True,
        ),
    ),
    "mixture": (
        LLaMA,
        LLaMAConfig(V, **SIZES, num_experts=16, expert_d_ff=6, dense_layers=(0,), balance_loss=0.1),
    ),
    "windowed": (LLaMA, LLaMAConfig(V, **SIZES, num_kv_heads=1, window=3, tie_output=True)),
}  # fmt: skip


@pytest.fixture(params=cases(MODELS, "gemma"))
def model(request, randomize):
    family, config = MODELS[request.param]
    return randomize(family(config), scale=2.0)


def logits(model, ids, **options):
    return ops.convert_to_numpy(model({"token_ids": np.asarray(ids, "int32"), **options}))


IDS = np.random.default_rng(0).integers(3, V, (2, 9)).astype("int32")


@pytest.mark.once("tests/layers/test_decoder.py has the causal mask under each")
def test_the_future_changes_nothing(model):
    other = IDS.copy()
    other[:, 5:] = 4
    np.testing.assert_allclose(logits(model, IDS)[:, :5], logits(model, other)[:, :5], atol=1e-5)


@pytest.mark.once("made of parts that are tested under each backend")
def test_packed_as_alone(model):
    documents = [IDS[0, :6], IDS[1, :4], IDS[0, 3:8], IDS[1, :3]]
    inputs, labels = packed(documents, 8)
    together = logits(model, inputs["token_ids"], segments=inputs["segments"])
    found = 0
    for document in documents:
        size = len(document) - 1
        alone = logits(model, np.pad(document[None, :-1], ((0, 0), (0, 8 - size))))[0, :size]
        for row in range(len(labels)):
            for number in range(1, inputs["segments"][row].max() + 1):
                here = inputs["segments"][row] == number
                if np.array_equal(labels[row, here], document[1:]):
                    np.testing.assert_allclose(together[row, here], alone, atol=1e-5)
                    found += 1
    assert found == len(documents)


@pytest.mark.parametrize("padding", cases([0, 3], 3))
def test_steps_are_the_full_pass(model, padding):
    full = logits(model, IDS)
    ids = np.concatenate([np.zeros((2, padding), "int32"), IDS[:, :4]], axis=1)
    segments = (np.arange(4 + padding) >= padding).astype("int32")[None].repeat(2, axis=0)

    def run(ids, segments, rest):
        found, state, step = model.prefill(ids, 16, 1, segments if padding else None)
        results = [found]
        for i in range(4, 9):
            found, state = step(rest[:, i - 4 : i - 3], state, i + padding)
            results.append(found[:, 0])
        return ops.stack(results, axis=1)

    tensors = map(ops.convert_to_tensor, (ids, segments, IDS[:, 4:]))
    np.testing.assert_allclose(
        ops.convert_to_numpy(compiled(run, model)(*tensors)), full[:, 3:], atol=1e-4
    )


@pytest.mark.once("test_transformer.py saves a model under each backend")
def test_saved_and_loaded(model, saved_and_loaded):
    again = saved_and_loaded(model)
    assert again.config == model.config
    np.testing.assert_allclose(logits(again, IDS), logits(model, IDS), atol=1e-6)


def test_it_learns_and_the_two_ways_to_the_loss_agree(model):
    inputs, labels = packed([IDS[0], IDS[1, :5], IDS[0, :3]], 8)
    loss = LabelSmoothedCrossentropy(0.0, NO_LABEL)
    plain = float(loss(labels, model(inputs)))
    model.compile(adam(1e-2), loss, metrics=[Perplexity(NO_LABEL)])
    before = model.evaluate(inputs, labels, verbose=0, batch_size=4)
    assert before[0] == pytest.approx(plain, rel=1e-4)
    model.fit(inputs, labels, epochs=12, batch_size=4, verbose=0)
    assert model.evaluate(inputs, labels, verbose=0, batch_size=4)[0] < 0.9 * before[0]


@pytest.mark.once("made of parts that are tested under each backend")
def test_a_cap_takes_the_way_over_logits(randomize):
    """The block by block loss knows no cap; gradients flow through it either way."""
    model = randomize(Gemma(MODELS["gemma"][1]), scale=2.0)
    model.compile(adam(1e-2), LabelSmoothedCrossentropy(0.0, NO_LABEL), metrics=[])
    with pytest.raises(ValueError, match="loss must be a LabelSmoothedCrossentropy, and the out"):
        model.loss_and_likelihood({"token_ids": IDS}, IDS)
    enable_remat(model)
    before = [ops.convert_to_numpy(weight) for weight in model.trainable_weights]
    model.fit({"token_ids": IDS}, IDS, verbose=0)
    for old, weight in zip(before, model.trainable_weights, strict=True):
        assert np.abs(ops.convert_to_numpy(weight) - old).max() > 0, weight.path
