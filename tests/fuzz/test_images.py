"""Foreign images: idx files, and tar files of images, damaged and made to fill the memory."""

import gzip
import io
import struct
import tarfile
import zlib

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from PIL import Image

from keras_transformer.data.images import read_digits, read_idx, read_image_archive
from tests.fuzz.mutations import damaged
from tests.fuzz.outcome import fuzz, outcome

pytestmark = [
    pytest.mark.once("NumPy and Pillow alone"),
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::RuntimeWarning"),  # of Pillow
]


def idx(*shape, kind=8, values=b""):
    return bytes([0, 0, kind, len(shape) % 256]) + struct.pack(f">{len(shape)}I", *shape) + values


def picture(form, size=(6, 4)):
    file = io.BytesIO()
    Image.new("RGB", size, (200, 30, 90)).save(file, form)
    return file.getvalue()


def png_header(width, height):
    """A PNG that announces a size and has one row of data."""

    def chunk(name, data):
        checked = name + data
        return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))

    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return (
        b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(b"\0")) + chunk(b"IEND", b"")
    )


def archive(*files, mode="w"):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode) as made:
        for name, content in files:
            info = tarfile.TarInfo(name)
            info.size = len(content)
            made.addfile(info, io.BytesIO(content))
    return out.getvalue()


FORMS = ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP", "PPM", "ICO", "TGA")
sizes = st.sampled_from([0, 1, 2, 3, 2**16, 2**31, 2**31 - 1, 2**32 - 1])
grids = st.builds(lambda shape, data: idx(*shape, values=data), st.lists(sizes, max_size=5),
                  st.binary(max_size=12))  # fmt: skip
grids = st.one_of(grids, damaged(idx(2, 2, 3, values=bytes(12))))
pictures = st.sampled_from(FORMS).flatmap(lambda form: damaged(picture(form)))
names = st.sampled_from(["a/x", "b/x", "../x", "/x", "x", "a/" * 50 + "x", "\udcff/x"])


@fuzz(150, share=3)
@given(grids, grids)
@example(idx(2**31, 2, 2**31), idx(1, values=b"\1"))
@example(idx(*[2] * 70), idx())
@example(idx(2**16, 2**16, 2**16, 2**16), idx(0))
def test_grids(room, images, labels):
    (room / "images").write_bytes(images)
    (room / "labels.gz").write_bytes(gzip.compress(labels))
    outcome("images", read_digits, room / "images", room / "labels.gz")
    outcome("images", read_idx, room / "images")


@fuzz(100, share=3)
@given(pictures, names)
@example(png_header(60_000, 60_000), "a/x")
@example(png_header(2**31 - 1, 2**31 - 1), "a/x")
@example(png_header(12_000, 12_000), "a/x")
def test_pictures(room, content, name):
    (path := room / "images.tar").write_bytes(archive((name, content)))
    outcome("images", read_image_archive, path)


@fuzz(100, share=3)
@given(
    st.sampled_from(("w", "w:gz", "w:xz", "w:bz2")).flatmap(
        lambda mode: damaged(archive(("a/x", picture("PNG")), ("b/y", picture("BMP")), mode=mode))
    )
)
def test_archives(room, content):
    (path := room / "images.tar").write_bytes(content)
    outcome("images", read_image_archive, path)
