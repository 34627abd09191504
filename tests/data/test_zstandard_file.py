"""Compressed files end where they should, or are refused."""

import io
import sys

import pytest

from keras_transformer.data.lines import open_lines
from keras_transformer.data.zstandard_file import ZstandardFile


def test_all_frames_are_read_and_a_truncated_one_is_an_error(tmp_path):
    zstandard = pytest.importorskip("zstandard")
    data = b"".join(b"line %d\n" % i for i in range(50_000))
    packed = zstandard.ZstdCompressor().compress(data)
    path = tmp_path / "a.zst"
    path.write_bytes(packed * 2)
    with io.BufferedReader(ZstandardFile(path)) as file:
        assert file.read() == data * 2
    for broken in (packed + packed[: len(packed) // 2], b"no frame", packed + b"rubbish"):
        path.write_bytes(broken)
        with pytest.raises(ValueError, match="a.zst: truncated or corrupt file"):
            list(open_lines(str(path), ("text",)).records(0, 0))


def test_a_missing_package_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "zstandard", None)
    with pytest.raises(ImportError, match='reading .zst files needs the extra "corpora"'):
        ZstandardFile(tmp_path / "a.zst")
