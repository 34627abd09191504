"""Training scripts: one per task, `demo` and `tatoeba`; `recipes` links to the package's."""

import keras_transformer  # noqa: F401  (chooses the backend before Keras is imported)
