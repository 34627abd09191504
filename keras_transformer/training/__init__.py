"""The training flows that `keras-transformer train` runs, and the recipes of translators."""
