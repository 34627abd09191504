"""Functions whose code depends on the backend, for the other packages.

A function that works only on certain backends says so in its docstring.
"""

from keras_transformer.backend.accelerators import constant, count_gpus, zeros
from keras_transformer.backend.ahead import packages
from keras_transformer.backend.block_linear import (
    block_linear,
    block_rows,
    levels_in_memory,
    levels_of,
    levels_shape,
)
from keras_transformer.backend.cache import (
    attend_cache,
    cache_places,
    caches_grow,
    fixed_caches,
    last_positions,
    minimum,
    new_cache,
    write_cache,
)
from keras_transformer.backend.chunked import Pattern
from keras_transformer.backend.compilation import (
    BACKEND,
    COMPILES_EACH_SHAPE,
    IS_EAGER,
    compiled,
    decided_portability,
    in_training_step,
    is_portable,
    keep_compilations,
    portable,
    random_state,
    set_random_state,
    training_step,
    without_gradients,
)
from keras_transformer.backend.data_parallel import (
    first_part,
    model_axis,
    num_replicas,
    replica_number,
    replica_sum,
    replica_sums,
    with_rows,
)
from keras_transformer.backend.decoding import at, best_tokens, forbid, gather, put, row_loop
from keras_transformer.backend.dot_product_attention import (
    attention,
    attention_weights,
    mask_bias,
    masked_by,
)
from keras_transformer.backend.dropout import dropout
from keras_transformer.backend.gradients import gradients, pure_gradients
from keras_transformer.backend.graphs import (
    RECORDS_SEARCHES,
    SEARCHES_BY_SHAPE,
    recorded_search,
)
from keras_transformer.backend.linear import has_int8_linear, int8_linear, linear, lookup
from keras_transformer.backend.loss import (
    projected_cross_entropy,
    projected_r_drop,
    smoothed_cross_entropy,
)
from keras_transformer.backend.normalization import layer_norm, rms_norm
from keras_transformer.backend.optimizer import adam_update, has_adam_update
from keras_transformer.backend.precision import is_strict, usable_precision
from keras_transformer.backend.process_group import (
    assign_slices,
    copy_to_processes,
    differ_by_process,
    join_processes,
    leave_processes,
    slices_of,
    summed,
)
from keras_transformer.backend.recurrence import linear_recurrence
from keras_transformer.backend.rematerialization import rematerialized
from keras_transformer.backend.rounding import stochastically_rounded
from keras_transformer.backend.rows import (
    copy_row,
    is_by_row,
    most_filled,
    put_rows,
    swap_rows,
    take_rows,
)
from keras_transformer.backend.workers import by_workers, num_workers
