"""Small translators for which CTranslate2 and our own engine compute the same."""

import numpy as np
import pytest

from keras_transformer.inference.translator import Translator
from tests.inference.small_translator import made_tokenizer, make

RARE = -40.0  # added to the logits of tokens that are never taken


@pytest.fixture(scope="session")
def made_folder(tmp_path_factory):
    """`made_folder(seed)`: the folder of a small translator.

    Padding and BOS have no probability, as in a trained model. CTranslate2 takes them out before
    the softmax and our search after it, so that a model which gives them much differs.
    """
    tokenizer = made_tokenizer()

    def make_one(seed):
        folder = tmp_path_factory.mktemp("translator") / "saved"
        translator = make(tokenizer, seed, output_bias=True)
        (bias,) = (x for x in translator.model.variables if x.path.endswith("output_bias/bias"))
        values = np.zeros(bias.shape, "float32")
        values[[tokenizer.pad_id, tokenizer.bos_id]] = RARE
        bias.assign(values)
        translator.save(folder)
        return folder

    return make_one


@pytest.fixture(scope="session")
def folder(made_folder):
    return made_folder(5)  # some translations end, some are cut


@pytest.fixture(scope="session")
def ours(folder):
    return Translator.load(folder)


@pytest.fixture(scope="session")
def theirs(folder):
    return Translator.load(folder, engine="ctranslate2")
