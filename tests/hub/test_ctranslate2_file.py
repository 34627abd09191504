"""Reading of `model.bin`: values, scales and aliases; damage is an error."""

import struct

import hypothesis
import hypothesis.strategies as st
import numpy as np
import pytest

from keras_transformer.hub.ctranslate2_file import ConvertedFile

pytestmark = pytest.mark.once("reads files")
KINDS = {"float32": 0, "int8": 1, "int16": 2, "int32": 3, "float16": 4, "uint16": 5}


def text(value):
    return struct.pack("<H", len(value) + 1) + value.encode() + b"\0"


def variable(name, array, shape=None, kind=None, size=None):
    array = np.asarray(array)
    shape = array.shape if shape is None else shape
    head = struct.pack(f"<B{len(shape)}I", len(shape), *shape)
    kind = KINDS[array.dtype.name] if kind is None else kind
    head += struct.pack("<BI", kind, array.nbytes if size is None else size)
    return text(name) + head + array.tobytes()


def content(*variables, aliases=(), version=6, count=None):
    head = struct.pack("<I", version) + text("SomeSpec") + struct.pack("<I", 7)
    head += struct.pack("<I", len(variables) if count is None else count) + b"".join(variables)
    names = b"".join(text(alias) + text(name) for alias, name in aliases)
    return head + struct.pack("<I", len(aliases)) + names


@pytest.fixture
def read(tmp_path):
    def write_and_read(data):
        (tmp_path / "model.bin").write_bytes(data)
        return ConvertedFile(tmp_path / "model.bin")

    return write_and_read


WEIGHT = np.array([[1, -2, 3], [4, 5, -6], [7, 8, 9], [0, 0, 1]], "float32")


def test_values(read):
    whole = (WEIGHT * 10).astype("int8")
    scale = np.array([10, 20, 40, 80], "float32")
    halves = (WEIGHT.view("uint32") >> 16).astype("uint16")  # these are exact in bfloat16
    file = read(
        content(
            variable("a/weight", WEIGHT),
            variable("b/weight", WEIGHT.astype("float16")),
            variable("c/weight", whole),
            variable("c/weight_scale", scale),
            variable("d/weight", halves),
            variable("encoder/e", np.int16(8)),
            variable("decoder/e", np.int16(9)),
            variable("f/weight", whole.reshape(4, 3, 1).astype("int16")),
            variable("f/weight_scale", np.float32(10)),
            aliases=[("g/weight", "c/weight")],
        )
    )
    assert (file.spec, file.revision) == ("SomeSpec", 7)
    for name in "abd":
        np.testing.assert_array_equal(file.read(f"{name}/weight"), WEIGHT)
    expected = whole / scale[:, None]
    for name in "cg":
        np.testing.assert_allclose(file.read(f"{name}/weight"), expected)
        np.testing.assert_allclose(file.read(f"{name}/weight", 1, 2), expected[2:])
    np.testing.assert_allclose(file.read("f/weight"), WEIGHT[..., None])
    assert file.number("encoder/e") == 8 and file.number("missing", 3) == 3
    assert file.numbers() == {"encoder/e": 8, "decoder/e": 9, "f/weight_scale": 10}
    assert file.is_same("c/weight", "g/weight") and not file.is_same("a/weight", "b/weight")
    with pytest.raises(ValueError, match="decoder/e in .* must be 8, as in the encoder, got 9"):
        file.of_both_sides("e")
    with pytest.raises(ValueError, match="model.bin lacks missing"):
        file.number("missing")
    with pytest.raises(ValueError, match="the shape of a/weight in .* must be .* one number"):
        file.number("a/weight")
    with pytest.raises(ValueError, match=r"a/weight of shape \(4, 3\) has no 3 equal parts"):
        file.read("a/weight", 0, 3)


def test_scales(read):
    whole = variable("a", np.ones((2, 3), "int8"))
    for scale, problem in (
        (None, "a holds whole numbers, and a_scale is missing"),
        (np.ones(3, "float32"), r"a_scale of shape \(3,\) does not fit \(2, 3\)"),
        (np.zeros(2, "float32"), "a_scale must not be 0"),
        (np.full(2, np.nan, "float32"), "a_scale in .* holds 2 numbers that are NaN"),
    ):
        more = [] if scale is None else [variable("a_scale", scale)]
        with pytest.raises(ValueError, match=problem):
            read(content(whole, *more)).read("a")


ONE = variable("a", WEIGHT)


@pytest.mark.parametrize(
    "data, problem",
    [
        (content(ONE, version=5), "the binary version of .* must be 6; convert .* again, got 5"),
        (content(ONE, count=2), "ends too early"),
        (content(ONE, count=2**32 - 1), "ends too early"),
        (content(ONE) + b"\0", "1 bytes follow its end"),
        (content(ONE, ONE), "a is in it twice"),
        (content(ONE, aliases=[("a", "a")]), "a is in it twice"),
        (content(ONE, aliases=[("b", "c")]), "b repeats c, which is not in it"),
        (content(ONE, aliases=[("b", "a"), ("c", "b")]), "c repeats b, which is not in it"),
        (content(variable("a", WEIGHT, kind=6)), "a variable has the unknown type 6"),
        (content(variable("a", WEIGHT, shape=(1,) * 9)), "a variable has 9 axes"),
        (content(variable("a", WEIGHT, size=4)), r"a variable of shape \(4, 3\) has 4 bytes"),
        # The number of bytes is right only modulo 2**32.
        (content(variable("a", np.zeros(0, "int8"), (2**16, 2**16))), "has 0 bytes"),
        (content(variable("a", np.zeros(0, "int8"), (2**32 - 1,), size=2**32 - 1)), "too early"),
        (content(variable("a", WEIGHT)).replace(b"\2\0a", b"\2\0\xff"), "a name is not UTF-8"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 3\n", "Git LFS"),
        (b"", "ends too early"),
    ],
)  # fmt: skip
def test_damaged(data, problem, read):
    with pytest.raises(ValueError, match=problem):
        read(data)


@hypothesis.given(st.integers(0, 10**6), st.binary(max_size=8))
@hypothesis.settings(suppress_health_check=list(hypothesis.HealthCheck))
def test_any_damage_is_a_value_error(read, place, new):
    data = bytearray(content(ONE, variable("b", np.int16(2)), aliases=[("c", "a")]))
    place %= len(data)
    data[place : place + len(new) + 1] = new
    try:
        file = read(bytes(data))
        for name, x in file.places.items():
            file.read(name) if x.shape else file.number(name)
    except ValueError:
        pass
