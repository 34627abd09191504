"""Entry point of `python -m keras_transformer.cli`."""

from __future__ import annotations

from keras_transformer.cli import main

main()
