"""The one room that knows which backend runs.

Everything else is written on `keras.ops`. Each function here has a plain meaning that holds on
every backend, and a faster way to it on one of them.
"""

from keras_transformer.ops.arithmetic import (
    adam_update,
    attention,
    attention_weights,
    dropout,
    has_int8_linear,
    int8_linear,
    layer_norm,
    linear,
    lookup,
    mask_bias,
    projected_cross_entropy,
    rms_norm,
    smoothed_cross_entropy,
)
from keras_transformer.ops.runtime import (
    BACKEND,
    COMPILES_EACH_SHAPE,
    IS_EAGER,
    compiled,
    in_training_step,
    is_portable,
    keep_compilations,
    portable,
    random_state,
    reuse_memory,
    set_random_state,
    training_step,
)
from keras_transformer.ops.search import (
    attend_cache,
    best_tokens,
    cache_places,
    gather,
    new_cache,
    row_loop,
    write_cache,
)

__all__ = [
    "BACKEND",
    "COMPILES_EACH_SHAPE",
    "IS_EAGER",
    "adam_update",
    "attend_cache",
    "attention",
    "attention_weights",
    "best_tokens",
    "cache_places",
    "compiled",
    "dropout",
    "gather",
    "has_int8_linear",
    "in_training_step",
    "int8_linear",
    "is_portable",
    "keep_compilations",
    "layer_norm",
    "linear",
    "lookup",
    "mask_bias",
    "new_cache",
    "portable",
    "projected_cross_entropy",
    "random_state",
    "reuse_memory",
    "rms_norm",
    "row_loop",
    "set_random_state",
    "smoothed_cross_entropy",
    "training_step",
    "write_cache",
]
