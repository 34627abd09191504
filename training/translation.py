"""Train a translator from a recipe: the same flow as `keras-transformer train`.

`python -m training.translation --help` lists the options.
"""

from __future__ import annotations

import logging

from keras_transformer.cli.train import train
from keras_transformer.training.runs import main

__all__ = ["train"]

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    main(train)
