"""The default strategy of TensorFlow; `tests/distribution/test_mirrored.py` trains with it."""

import tensorflow as tf

from keras_transformer.backend.tensorflow import strategy


def test_mirror_sets_the_default():
    name = strategy.devices()[0]
    made = strategy.mirror([name])
    try:
        assert tf.distribute.get_strategy() is made
        assert made.num_replicas_in_sync == 1 and strategy.mirror([name]) is made
    finally:
        tf.distribute.experimental_set_strategy(None)
    assert not tf.distribute.has_strategy()
