"""Keras without the optional packages that it imports, as in commands: it loads twice as fast."""

import sys

import keras_transformer  # noqa: F401, it chooses the backend before Keras does
from keras_transformer.system.startup import WithoutExtras

if WithoutExtras not in map(type, sys.meta_path):
    sys.meta_path.insert(0, WithoutExtras())
