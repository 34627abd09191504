"""The container: what the package `gguf` reads, and damaged files."""

import struct
import sys

import gguf
import numpy as np
import pytest

from keras_transformer.hub.gguf.container import GGUFFile
from tests.hub.gguf.files import write

FACTS = {
    "a.text": "犬", "a.number": 7, "a.rate": 1e-5, "a.flag": True, "a.texts": ["x", "", "y z"],
    "a.numbers": [1, -2, 3], "a.rates": [0.5, 2.0],
}  # fmt: skip
TENSORS = {
    "matrix": np.arange(12, dtype="float32").reshape(3, 4),
    "vector": np.arange(5, dtype="float16"),
}


@pytest.fixture
def path(tmp_path):
    return write(tmp_path / "some.gguf", "llama", FACTS, TENSORS)


def test_what_the_package_reads(path):
    file, reader = GGUFFile(path), gguf.GGUFReader(path)
    fields = {x: y.contents() for x, y in reader.fields.items() if not x.startswith("GGUF.")}
    assert fields.pop("a.rate") == pytest.approx(file.facts.pop("a.rate"))
    assert file.facts == fields
    assert GGUFFile(path).facts["a.rate"] == 1e-5  # not 9.99999974e-06, its float32
    assert {*file.tensors} == {tensor.name for tensor in reader.tensors}
    for tensor in reader.tensors:
        np.testing.assert_array_equal(file.read(tensor.name), tensor.data.astype("float32"))
        assert file.read(tensor.name).dtype == "float32"


def test_a_file_cut_anywhere(path):
    content = path.read_bytes().rstrip(b"\0")  # the padding after the last tensor
    for size in range(0, len(content) - 1, 7):
        path.write_bytes(content[:size])
        with pytest.raises(ValueError, match=r"some.gguf (is not|cannot be read as) a GGUF file"):
            GGUFFile(path)


def test_a_byte_changed_anywhere(path):
    """Any error is a ValueError, without a long search or much memory."""
    content = bytearray(path.read_bytes())
    for place in range(4, len(content) - 32, 3):
        for value in (0, 255):
            path.write_bytes(content[:place] + bytes([value]) + content[place + 1 :])
            try:
                GGUFFile(path)
            except ValueError as error:
                assert "some.gguf" in str(error)


@pytest.mark.parametrize(
    "content,message",
    [
        (b"", "is not a GGUF file: it does not begin with GGUF"),
        (b"PK\3\4", "is not a GGUF file"),
        (b"version https://git-lfs.github.com/spec/v1", "is a Git LFS pointer"),
        (b"GGUF" + struct.pack("<I", 1), "version 1 of the format"),
        (b"GGUF" + struct.pack(">I", 3), "a big-endian file"),
        (b"GGUF" + struct.pack("<IQQ", 3, 0, 1 << 60), "unpack_from requires a buffer"),
        (b"GGUF" + struct.pack("<IQQQ", 3, 0, 1, 1 << 62), "it is incomplete: it ends before"),
        (b"GGUF" + struct.pack("<IQQQcIIQ", 3, 0, 1, 1, b"x", 9, 8, 1 << 60), "it is incomplete"),
        (b"GGUF" + struct.pack("<IQQQcI", 3, 0, 1, 1, b"x", 13), "metadata of the type 13"),
        (b"GGUF" + struct.pack("<IQQQcIIQ", 3, 0, 1, 1, b"x", 9, 9, 1), "of the type 9"),
    ],
)
def test_other_contents(content, message, tmp_path):
    path = tmp_path / "some.gguf"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=message):
        GGUFFile(path)


def table(*entries):
    """A file with a table of tensors: name, shape, type and place of each."""
    head = b"GGUF" + struct.pack("<IQQ", 3, len(entries), 0)
    for name, shape, kind, place in entries:
        head += struct.pack("<Q", len(name)) + name + struct.pack("<I", len(shape))
        head += struct.pack(f"<{len(shape)}QIQ", *shape, kind, place)
    return head + b"\0" * 64


@pytest.mark.parametrize(
    "entries,message",
    [
        ([(b"x", (4,), 0, 1 << 40)], "it is incomplete: x ends at byte"),
        ([(b"x", (1 << 40, 1 << 40), 0, 0)], "it is incomplete: x ends at byte"),
        ([(b"x", (4,), 4, 0)], "x has the type number 4, which is not supported"),
        ([(b"x", (4,), 26, 0)], "x has the type I32, which is not supported"),
        ([(b"x", (33,), 8, 0)], r"x has the shape \(33,\), in blocks of 32"),
        ([(b"x", (0,), 0, 0)], r"x has the shape \(0,\)"),
        ([(b"x", (), 0, 0)], r"x has the shape \(\)"),
        ([(b"x", (1,) * 9, 0, 0)], "x has 9 axes, more than 4"),
        ([(b"x", (1,), 0, 0)] * 2, "it has the tensor x twice"),
    ],
)
def test_bad_tensors(entries, message, tmp_path):
    path = tmp_path / "some.gguf"
    path.write_bytes(table(*entries))
    with pytest.raises(ValueError, match=message):
        GGUFFile(path)


def test_a_part_of_several_files(tmp_path):
    path = write(tmp_path / "some.gguf", "llama", {"split.count": 3}, {})
    with pytest.raises(ValueError, match=r"one of 3 parts \(split.count\): join them with"):
        GGUFFile(path)


def test_without_the_package(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(ImportError, match='a GGUF file needs the extra "gguf": pip install "gguf'):
        GGUFFile(path)
