"""The tiny learned metrics of `tests/hub/comet`."""

import functools
from pathlib import Path

from keras_transformer.hub.comet import read_metric
from keras_transformer.tasks.learned_metric import LearnedMetric
from keras_transformer.text.text_tokenizer import TextTokenizer

HERE = Path(__file__).parents[1] / "hub" / "comet"


@functools.cache
def small_metric(name: str) -> LearnedMetric:
    """Make the metric of a folder, such as "regression"."""
    encoder = HERE / "encoder"
    return LearnedMetric(read_metric(HERE / name, encoder, "float32"), TextTokenizer.read(encoder))
