"""`python -m keras_transformer.cli`."""

from keras_transformer.cli import main

main()
