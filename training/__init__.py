"""Training scripts: one per task, `demo` and `tatoeba`; `recipes` links to the built-in recipes."""

import keras_transformer  # noqa: F401  (chooses the backend before Keras is imported)
