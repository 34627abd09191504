"""A program: trains tiny models on 8 virtual devices, and on one, and prints the differences."""

import json
import sys

import keras
import numpy as np

import keras_transformer as kt  # chooses the backend, so it comes before keras
from keras_transformer.config import TransformerConfig
from keras_transformer.distribution import distribute
from keras_transformer.models import (
    BERT,
    T5,
    BERTConfig,
    LLaMA,
    LLaMAConfig,
    T5Config,
    Transformer,
)

SIZES = dict(d_model=16, d_ff=32, num_heads=4, dropout=0.0)
STACK, STACKS = dict(num_layers=1), dict(num_encoder_layers=1, num_decoder_layers=1)
FAMILIES = {
    "transformer": lambda: Transformer(TransformerConfig(24, 24, **SIZES, **STACKS)),
    "t5": lambda: T5(T5Config(24, head_dim=4, **SIZES, **STACKS)),
    "llama": lambda: LLaMA(LLaMAConfig(24, num_kv_heads=2, **SIZES, **STACK)),
    "bert": lambda: BERT(BERTConfig(24, **SIZES, **STACK)),
}


def train(family, layout):
    """The losses of 20 steps, the final weights, and how many values the first device holds."""
    keras.distribution.set_distribution(None)
    if layout is not None:
        distribute(**layout)
    keras.utils.set_random_seed(1)
    model = FAMILIES[family]()
    # Not Adam: where a gradient is nothing but rounding it makes full steps of it.
    sgd = keras.optimizers.SGD(0.1, momentum=0.9)
    model.compile(sgd, kt.LabelSmoothedCrossentropy(), metrics=[kt.Perplexity()])
    ids = np.random.default_rng(0).integers(4, 24, (16, 12)).astype("int32")
    labels = ids[:, ::-1].copy()
    labels[::3, 8:] = 0  # so that devices hold different numbers of tokens
    inputs = {"token_ids": ids}
    if family in ("transformer", "t5"):
        inputs = {"source_ids": ids, "target_ids": np.roll(labels, 1, 1)}
    losses = []
    record = keras.callbacks.LambdaCallback(
        on_epoch_end=lambda _, logs: losses.append(logs["loss"])
    )
    model.fit(inputs, labels, batch_size=16, epochs=20, verbose=0, callbacks=[record])
    held = sum(x.value.addressable_shards[0].data.size for x in model.weights)
    return np.array(losses), model.get_weights(), held


found = []
for family, *layouts in json.loads(sys.argv[1]):
    losses, weights, held = train(family, None)
    for layout in layouts:
        own_losses, own_weights, own_held = train(family, layout)
        found.append(
            dict(
                losses=float(np.abs(own_losses - losses).max()),
                weights=max(
                    float(np.abs(x - y).max()) for x, y in zip(weights, own_weights, strict=True)
                ),
                learnt=float(losses[0] - losses[-1]),
                held=own_held / held,
            )
        )
print(json.dumps(found))
