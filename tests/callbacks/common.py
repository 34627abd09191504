"""A small model and its training, for tests of callbacks."""

import keras

from keras_transformer.config import TransformerConfig
from keras_transformer.losses import LabelSmoothedCrossentropy
from keras_transformer.models import Transformer
from keras_transformer.optimizers import WarmupSchedule, adam

CONFIG = TransformerConfig(
    16, 16, d_model=8, d_ff=16, num_encoder_layers=1, num_decoder_layers=1, num_heads=2
)


def new_model(seed=0):
    keras.utils.set_random_seed(seed)
    model = Transformer(CONFIG)
    model.compile(adam(WarmupSchedule(1e-2, 5)), LabelSmoothedCrossentropy())
    return model


def fit(model, data, epochs, *callbacks, initial_epoch=0):
    model.fit(
        *data,
        batch_size=4,
        epochs=epochs,
        initial_epoch=initial_epoch,
        shuffle=False,
        verbose=0,
        callbacks=list(callbacks),
    )
