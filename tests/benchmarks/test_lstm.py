"""The LSTM with attention: by hand, and the same through a search, alone and in a batch."""

import keras
import numpy as np
import pytest
from keras import ops

from benchmarks.lstm import AttentionalLSTM, LSTMConfig
from keras_transformer import LabelSmoothedCrossentropy, Perplexity, adam
from keras_transformer.decoding import beam_search
from keras_transformer.search import Search

V, E, H = 11, 6, 8
SOURCE = np.array([[4, 5, 6, 7, 3], [8, 9, 3, 0, 0]], "int32")
TARGET = np.array([[2, 9, 8, 7, 6, 5], [2, 4, 4, 5, 10, 9]], "int32")


@pytest.fixture(scope="module")
def model(randomize):
    keras.utils.set_random_seed(0)
    sizes = dict(d_embedding=E, units=H, dropout=0.0, max_length=16)
    return randomize(AttentionalLSTM(LSTMConfig(V, V, **sizes)))


def logits(model, source, target):
    return ops.convert_to_numpy(model({"source_ids": source, "target_ids": target}))


@pytest.mark.once("a peer of a benchmark")
def test_by_hand(model):
    """Each sentence in NumPy, token by token."""
    weights = {w.path: ops.convert_to_numpy(w) for w in model.weights}
    found = logits(model, SOURCE, TARGET)

    def ending(name):
        return next(x for path, x in weights.items() if path.endswith(name))

    def dense(x, name, bias=True):
        return x @ ending(f"{name}/kernel") + (ending(f"{name}/bias") if bias else 0)

    def lstm(xs, name, h=None):
        """Hochreiter and Schmidhuber 1997, with a forget gate."""
        kernel, recurrent = (ending(f"{name}/lstm_cell/{x}kernel") for x in ("", "recurrent_"))
        bias, width, hs = ending(f"{name}/lstm_cell/bias"), len(recurrent), []
        h = np.zeros(width) if h is None else h
        c = np.zeros(width)
        for x in xs:
            i, f, g, o = np.split(x @ kernel + h @ recurrent + bias, 4)
            i, f, o = (1 / (1 + np.exp(-gate)) for gate in (i, f, o))
            c = f * c + i * np.tanh(g)
            h = o * np.tanh(c)
            hs.append(h)
        return np.array(hs)

    table = ending("embeddings")
    for row, source in enumerate(SOURCE):
        xs = table[source[source != 0]] * np.sqrt(E)
        both = [lstm(xs, "encoder/rightward"), lstm(xs[::-1], "encoder/leftward")[::-1]]
        memory = lstm(np.concatenate(both, 1), "encoder/upper")
        low, up = np.split(np.tanh(dense(memory.mean(0), "decoder/first")), 2)
        hs = lstm(table[TARGET[row]] * np.sqrt(E), "decoder/lower", low)
        scores = np.exp(dense(hs, "decoder/score", bias=False) @ memory.T)
        context = scores / scores.sum(1, keepdims=True) @ memory
        hs = lstm(np.concatenate([hs, context], 1), "decoder/upper", up)
        out = np.tanh(dense(np.concatenate([hs, context], 1), "decoder/output"))
        np.testing.assert_allclose(found[row], out @ table.T, atol=1e-4)


def test_steps_equal_the_full_pass_and_beams_keep_their_states(model):
    full = logits(model, SOURCE, TARGET)
    # Beam 1 holds the target, beam 0 another one; they swap slots at each position.
    found, state, step = model.prefill(SOURCE, TARGET[:, :1], 8, beam_size=2)
    np.testing.assert_allclose(ops.convert_to_numpy(found), full[:, 0], atol=1e-5)
    other = np.where(TARGET == 4, 5, 4).astype("int32")
    ancestors = np.full((2, 2, 8), -1, "int32")
    ancestors[:, :, 0] = 0
    for i in range(1, 6):
        own = i % 2
        tokens = np.stack([other[:, i], other[:, i]], axis=1)
        tokens[:, own] = TARGET[:, i]
        ancestors = ancestors[:, ::-1].copy()
        ancestors[:, :, i] = [0, 1]
        found, state = step(tokens, state, i, ancestors)
        np.testing.assert_allclose(ops.convert_to_numpy(found)[:, own], full[:, i], atol=1e-5)


@pytest.mark.once("the step above and, in tests/decoding, the search run under each backend")
def test_beam_search_finds_what_the_model_scores(model):
    rows, length = len(SOURCE), 5
    found, state, step = model.prefill(SOURCE, TARGET[:, :1], length + 1, beam_size=3)
    search = Search(beam_size=3, length_penalty=0.0)
    limits = ops.full((rows,), length, dtype="int32")
    options = dict(eos_ids=(3,), length=length, max_lengths_B=limits)
    ids, scores = map(ops.convert_to_numpy, beam_search(step, found, state, search, **options))
    for row in range(rows):
        best = ids[row, 0][: list(ids[row, 0]).index(3) + 1]
        target = np.concatenate([[2], best[:-1]])[None].astype("int32")
        log_p = logits(model, SOURCE[row : row + 1], target)[0]
        log_p -= np.log(np.exp(log_p).sum(-1, keepdims=True))
        assert scores[row, 0] == pytest.approx(log_p[range(len(best)), best].sum(), abs=1e-4)


@pytest.mark.once("tests/models trains models of this class under each backend")
def test_trains(model):
    model.compile(adam(5e-2), LabelSmoothedCrossentropy(0.0), metrics=[Perplexity()])
    inputs = {"source_ids": SOURCE, "target_ids": TARGET}
    labels = np.roll(TARGET, -1, axis=1)
    history = model.fit(inputs, labels, epochs=15, verbose=0).history["loss"]
    assert history[-1] < 0.7 * history[0]
