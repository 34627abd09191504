"""Model files of Marian: broken and foreign ones name the file; pickles are never loaded."""

import numpy as np
import pytest

from keras_transformer.hub.marian.npz import ModelFile
from tests.hub.marian.models import changed, copied

pytestmark = pytest.mark.once("reads files")


@pytest.fixture
def path(tmp_path):
    return copied("tied_all", tmp_path)


def test_arrays_and_options(path):
    file = ModelFile(path)
    assert file.options["dim-emb"] == 32 and "Wemb" in file.names
    assert file.read("Wemb").shape == (240, 32)


def test_a_truncated_file(path):
    path.write_bytes(path.read_bytes()[:-1000])
    with pytest.raises(ValueError, match=r"tied_all.npz is not a complete npz file"):
        ModelFile(path)


def test_a_damaged_array(path):
    content = bytearray(path.read_bytes())
    place = content.find(b"Wemb") + 200
    content[place : place + 50] = bytes(50)
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"Wemb in .*tied_all.npz cannot be read"):
        ModelFile(path).read("Wemb")


def test_a_foreign_file(path):
    changed(path, **{"special:model.yml": None})
    with pytest.raises(ValueError, match=r"tied_all.npz is not a model of Marian: it has no"):
        ModelFile(path)


def test_a_missing_file(path):
    with pytest.raises(FileNotFoundError, match=r"there is no file .*other.npz"):
        ModelFile(path.with_name("other.npz"))


def test_pickled_arrays_are_never_loaded(path):
    changed(path, Wemb=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match=r"Wemb in .*tied_all.npz cannot be read: Object arrays"):
        ModelFile(path).read("Wemb")
    path.write_bytes(b"\x80\x04}.")
    with pytest.raises(ValueError, match=r"tied_all.npz is not a complete npz file"):
        ModelFile(path)


def test_other_numbers_than_floats(path):
    changed(path, Wemb=np.ones((240, 32), "int8"))
    with pytest.raises(ValueError, match=r"Wemb in .*tied_all.npz must hold floats, got int8"):
        ModelFile(path).read("Wemb")
    changed(path, Wemb=np.full((240, 32), np.nan, "float32"))
    with pytest.raises(ValueError, match=r"Wemb in .*tied_all.npz holds 7680 numbers"):
        ModelFile(path).read("Wemb")
