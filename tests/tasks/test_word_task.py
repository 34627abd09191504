"""Words of texts, as taggers and regressors of words find them."""

import numpy as np
import pytest

from keras_transformer.tasks.word_task import RESIDUE, WORD

pytestmark = pytest.mark.once("no tensor: tests of the taggers and regressors compute")


def test_words():
    assert WORD.findall("Ann's e-mail, @ann #x (or not)!") == [
        *("Ann's", "e-mail", ",", "@ann", "#x", "(", "or", "not", ")", "!"),
    ]
    assert RESIDUE.findall("AC D") == ["A", "C", "D"]
    assert np.size(WORD.findall("")) == 0
