"""Binary models: a file that Marian wrote, our own, and broken ones."""

import struct
from pathlib import Path

import numpy as np
import pytest

from keras_transformer.hub.marian.binary import BinaryFile, read_binary, write_binary
from keras_transformer.hub.marian.outgoing import arrays_of, restored
from tests.hub.marian.test_outgoing import LEGACY, config_of, random_weights

pytestmark = pytest.mark.once("files: no tensor is read")

# Of `python -m pymarian convert --gemm-type intgemm8`, from the arrays below.
INTGEMM8 = Path(__file__).with_name("data") / "intgemm8.bin"
SIZES = dict(d_model=16, d_ff=16, num_encoder_layers=1, num_decoder_layers=1)
SIZES |= dict(source_vocab_size=8, target_vocab_size=8)
ROUNDED = "decoder_l1_ffn_W2"


@pytest.fixture(scope="module")
def arrays():
    config = config_of(**SIZES, **LEGACY)
    return arrays_of(config, random_weights(config, legacy=True))


def test_a_file_of_marian(arrays):
    with pytest.warns(UserWarning, match="16 matrices of .*intgemm8.bin have 8 or 16 bits"):
        read = read_binary(INTGEMM8)
    assert set(arrays) - set(read) == {"special:keras_transformer"}
    assert b"type: transformer" in bytes(read["special:model.yml"])
    for name, value in read.items():
        if name.startswith("special:"):
            continue
        bound = np.abs(arrays[name]).max() / 253 if name.split("_")[-1][0] == "W" else 0
        bound = 0 if name == "Wemb" else bound
        assert value.dtype == "float32" and value.shape == arrays[name].shape
        assert np.abs(value - arrays[name]).max() <= bound, name


def test_back(arrays, tmp_path):
    path = tmp_path / "model.bin"
    write_binary(path, {**arrays, "half": np.ones((2, 3), "float16")})
    read = read_binary(path)
    assert read.pop("half").dtype == "float16"
    assert read.keys() == arrays.keys()
    for name, value in read.items():
        np.testing.assert_array_equal(value[: len(arrays[name])], arrays[name])
    config, _ = restored(read)
    assert config == config_of(**SIZES, **LEGACY)


def test_our_rounding_is_that_of_marian(arrays, tmp_path):
    path = tmp_path / "model.bin"
    write_binary(path, arrays, [ROUNDED])
    with pytest.warns(UserWarning, match="1 matrices"):
        ours = read_binary(path)
    with pytest.warns(UserWarning, match="16 matrices"):
        theirs = read_binary(INTGEMM8)
    np.testing.assert_array_equal(ours[ROUNDED], theirs[ROUNDED])


def test_8_bit_matrices_count_in_full(tmp_path):
    """The limits on a model's sizes count elements, of which 8-bit files hold one a byte."""
    path, table = tmp_path / "model.bin", np.ones((64, 512), "float32")
    options = np.frombuffer(b"type: transformer\0", "int8")
    write_binary(path, {"Wemb": table, "special:model.yml": options}, ["Wemb"])
    with pytest.warns(UserWarning, match="1 matrices"):
        file = BinaryFile(path)
    assert file.most_elements >= table.size > file.size // 2


def test_types_and_names_of_bergamot(tmp_path):
    """Its fork has another number for 8 bits, tables in 8 bits as they are, and "alphas"."""
    path, table = tmp_path / "model.bin", np.arange(-6, 6, dtype="float32").reshape(4, 3)
    arrays = {"Wemb": table, "x_W1": table, "x_W1_QuantMultA": np.ones((1, 1), "float32")}
    write_binary(path, arrays, ["x_W1"])
    content = path.read_bytes().replace(struct.pack("<Q", 0x10001), struct.pack("<Q", 0x4101))
    levels = np.rint(table * np.float32(127 / 6)).astype("int8").tobytes()
    rounded = levels + struct.pack("<f", 127 / 6)
    content = content.replace(
        struct.pack("<4Q", 5, 0x404, 2, 256), struct.pack("<4Q", 5, 0x4101, 2, 256)
    )
    content = content.replace(table.tobytes(), rounded.ljust(table.nbytes, b"\0"))
    path.write_bytes(content)
    with pytest.warns(UserWarning, match="2 matrices"):
        read = read_binary(path)
    assert read.keys() == {"Wemb", "x_W1"}
    for value in read.values():
        np.testing.assert_allclose(value, table, atol=6 / 253)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda x: x[:9], "is not a whole binary model of Marian: it is truncated"),
        (lambda x: x[:300], "is not a whole binary model of Marian: it is truncated"),
        (lambda x: x[:-1], "is not a whole binary model of Marian: it is truncated"),
        (lambda x: b"", "it is truncated"),
        (lambda x: b"PK\x03\x04" + x, "is not a binary model of Marian of version 1: it begins"),
        (lambda x: x.replace(b"Wemb", b"W\xff\xfeb", 1), "is damaged: a name is not text"),
        (lambda x: x[:8] + struct.pack("<Q", 1 << 60) + x[16:], "it is truncated"),
        (
            lambda x: x.replace(struct.pack("<Q", 0x10001), struct.pack("<Q", 0x11001), 1),
            "has the type 0x11001, which is not supported: it is for one kind of processor",
        ),
        (
            lambda x: x.replace(struct.pack("<Q", 0x10001), struct.pack("<Q", 0x77), 1),
            "has the type 0x77, which is not supported$",
        ),
        (
            lambda x: x.replace(struct.pack("<2i", 16, 16), struct.pack("<2i", 16, 99), 1),
            "is damaged: .* of shape .16, 99. needs",
        ),
    ],
)
def test_bad_files(change, message, tmp_path):
    path = tmp_path / "strange.bin"
    path.write_bytes(change(INTGEMM8.read_bytes()))
    with pytest.raises(ValueError, match=message) as caught:
        read_binary(path)
    assert "strange.bin" in str(caught.value)


def test_numbers_that_are_not_finite(tmp_path):
    write_binary(tmp_path / "model.bin", {"x": np.array([np.nan], "float32")})
    with pytest.raises(ValueError, match="x in .*model.bin holds 1 numbers that are NaN"):
        read_binary(tmp_path / "model.bin")
