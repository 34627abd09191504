"""Rows that are removed from a loop in a TensorFlow graph."""

import numpy as np
import tensorflow as tf

from keras_transformer.backend.tensorflow.decoding import row_loop


def test_only_unfinished_rows_are_computed():
    ends = np.array([2, 2, 2, 3, 5, 9, 9, 9, 9, 9, 9, 9], "int32")
    computed = tf.Variable([], shape=[None], dtype=tf.int32)

    def turn(i, done_B, found, alive):
        computed.assign(tf.concat([computed, tf.shape(done_B)], 0))
        found = {"steps_B1": found["steps_B1"] + tf.cast(~done_B, tf.int32)[:, None]}
        return done_B | (i >= alive["ends"]), found, alive

    @tf.function
    def find(ends):
        found = {"steps_B1": tf.zeros((tf.shape(ends)[0], 1), tf.int32)}
        return row_loop(turn, 20, tf.zeros_like(ends, tf.bool), found, {"ends": ends})

    np.testing.assert_array_equal(find(tf.constant(ends))["steps_B1"][:, 0], ends)
    # 8 of 9 rows are less than nine tenths, and 7 of 8.
    assert computed.numpy().tolist() == [12, 12, 9, 8, 8, 7, 7, 7, 7]
