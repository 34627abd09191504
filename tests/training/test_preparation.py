"""What a run begins with."""

import pytest

from keras_transformer.models import Transformer
from keras_transformer.training.preparation import begin, read_text
from keras_transformer.training.recipe import TranslationRecipe

OPTIONS = dict(vocab_size=400, model=dict(d_model=16, d_ff=32, num_heads=2), train_size=200)
FILES = dict(train=None, validation=None, test=None)


def test_a_corpus_a_tokenizer_and_sizes():
    options = TranslationRecipe(**OPTIONS)
    corpus, pairs = read_text(options, None, FILES)
    assert corpus.name == "grammar" and 0 < len(pairs) <= 200
    beginning = begin(options, corpus, pairs, None)
    assert beginning.start is None and beginning.family is Transformer
    assert beginning.config.d_model == 16 and beginning.languages == ("en", "de")
    assert beginning.config.source_vocab_size == beginning.tokenizer.source_vocab_size
    again = begin(options, corpus, pairs, None)
    assert again.tokenizer.fingerprint() == beginning.tokenizer.fingerprint()


def test_a_side_that_is_missing():
    options = TranslationRecipe(corpus="files")
    with pytest.raises(ValueError, match="--train is required"):
        read_text(options, None, FILES)
