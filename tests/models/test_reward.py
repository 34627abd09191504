"""Reward models: the score comes from the last hidden state, and is trained by pairs."""

import keras
import numpy as np
import pytest
from keras import ops

from keras_transformer.losses import RewardLoss
from keras_transformer.metrics import PreferenceAccuracy
from keras_transformer.models import RewardConfig, RewardModel
from tests.backends import cases
from tests.tiny import inputs_of, tiny

numpy = ops.convert_to_numpy


def inputs(family, rng):
    ids = rng.integers(4, 24, (6, 5)).astype("int32")
    last = np.array([4, 2, 4, 0, 1, 3], "int32")
    return inputs_of(family, ids, ids) | {"last": last}


@pytest.mark.once("made of parts that are tested under each backend")
@pytest.mark.parametrize("family", cases(["transformer", "t5", "llama"], "t5"))
def test_the_score_is_of_the_last_token(rng, family):
    base = tiny(family)
    model, given = RewardModel.on(base), inputs(family, rng)
    last = given.pop("last")
    hidden = numpy(base.hidden(given))[np.arange(6), last]
    kernel, bias = (numpy(x) for x in model.score.weights)
    np.testing.assert_allclose(numpy(model(given | {"last": last})), hidden @ kernel + bias, 1e-4)


def test_pairs_train_it_and_it_is_saved(rng, tmp_path):
    model, given = RewardModel.on(tiny("llama")), inputs("llama", rng)
    model.compile(keras.optimizers.Adam(0.02), RewardLoss(), metrics=[PreferenceAccuracy("reward")])
    history = model.fit(given, np.zeros((6, 1)), batch_size=6, epochs=15, shuffle=False, verbose=0)
    assert history.history["loss"][-1] < min(0.3, history.history["loss"][0])
    assert history.history["accuracy"][-1] == 1
    scores = numpy(model(given))[:, 0]
    assert (scores[::2] > scores[1::2]).all()
    model.save(tmp_path / "a.keras")
    again = keras.saving.load_model(tmp_path / "a.keras", compile=False)
    np.testing.assert_allclose(numpy(again(given))[:, 0], scores, rtol=1e-5, atol=1e-6)


def test_another_family_is_refused():
    with pytest.raises(ValueError, match="family must be one of .*'Transformer'.*, got 'BERT'"):
        RewardConfig("BERT", {})
