"""Rounding on example texts: outputs change less than if each weight is rounded by itself."""

import numpy as np
import pytest

from tests.export import translators

keras = pytest.importorskip("keras")
if keras.backend.backend() != "tensorflow":
    pytest.skip("only the export on TensorFlow rounds", allow_module_level=True)

from keras_transformer.export import litert_rounding as rounding  # noqa: E402
from keras_transformer.export.litert_int8 import levels  # noqa: E402
from keras_transformer.translate.translator import Translator  # noqa: E402


def test_the_error_of_outputs_is_smaller(rng):
    matrix = rng.normal(size=(7, 20)).astype("float32")
    inputs = rng.normal(size=(300, 4)) @ rng.normal(size=(4, 20)) + 0.1 * rng.normal(size=(300, 20))
    by_itself, scales = levels(matrix)
    by_itself = by_itself * scales[:, None]
    rounded = rounding.rounded(matrix, inputs.T @ inputs)
    np.testing.assert_allclose(
        rounded / scales[:, None], np.rint(rounded / scales[:, None]), atol=1e-3
    )
    errors = [np.square(inputs @ (x - matrix).T).mean() for x in (rounded, by_itself)]
    assert errors[0] < errors[1] / 3
    again, same = levels(rounded)
    np.testing.assert_allclose(again * same[:, None], rounded, atol=1e-5)


def test_the_kernels_of_a_translator_are_rounded(randomize, tmp_path):
    folder = translators.save_translator(randomize, tmp_path / "saved", shared=True)
    translator = Translator.load(folder)
    before = {x.path: np.array(x) for x in translator.model.weights}
    rounding.calibrate(translator, ["the old man", "a dog"])
    changed = {x.path for x in translator.model.weights if (np.array(x) != before[x.path]).any()}
    assert changed == {x for x in before if x.endswith("/kernel")}
