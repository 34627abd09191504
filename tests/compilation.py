"""Less work for each compilation: what tests compile runs once or twice."""

import threading

from tests.backends import BACKEND

if BACKEND == "jax":
    from jax._src.interpreters import mlir

    contexts, make_context = threading.local(), mlir.make_ir_context

    def context_of_thread():
        """One for all compilations: to make it takes a sixth of the time of a small one."""
        if not hasattr(contexts, "own"):
            contexts.own = make_context()
        return contexts.own

    mlir.make_ir_context = context_of_thread
elif BACKEND == "tensorflow":
    import tensorflow as tf

    # A fifth of a test's time is the optimization of graphs that run once or twice.
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
