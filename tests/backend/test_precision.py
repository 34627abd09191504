"""The precision that is asked for, where the processor computes in it fast."""

import keras
import pytest

from keras_transformer.backend import BACKEND, is_strict, precision, usable_precision
from keras_transformer.system import processor

# Instructions of processors of several kinds, and the types in which their products are fast.
AVX2, VNNI, BF16 = "avx2 fma", "avx2 avx512f avx512_vnni", "avx512f avx512_vnni avx512_bf16"
AMX, FP16, ARM = "avx512_bf16 amx_bf16 amx_int8", "avx512_bf16 avx512_fp16", "asimddp i8mm bf16"
FAST = {
    "torch": {BF16: {"bfloat16"}, AMX: {"bfloat16"}, FP16: {"bfloat16", "float16"},
              ARM: {"bfloat16"}},
    "tensorflow": {BF16: {"bfloat16"}, AMX: {"bfloat16"}, FP16: {"bfloat16", "float16"}},
    "jax": {AMX: {"bfloat16"}},
}[BACKEND]  # fmt: skip


@pytest.fixture(autouse=True)
def no_gpu(monkeypatch):
    monkeypatch.delenv(precision.VARIABLE, raising=False)
    monkeypatch.setattr(precision, "count_gpus", lambda: 0)
    monkeypatch.setattr(precision, "_computes_in", lambda dtype: True)


@pytest.mark.parametrize("name", ["float32", "float64", "int8"])
@pytest.mark.parametrize("features", ["", BF16])
def test_what_every_processor_has_is_taken(monkeypatch, name, features, recwarn):
    monkeypatch.setenv(processor.VARIABLE, features)
    assert usable_precision(name) == name
    assert not recwarn


@pytest.mark.parametrize("prefix", ["", "mixed_"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("features", ["", AVX2, VNNI, BF16, AMX, FP16, ARM])
def test_a_slow_type_becomes_float32_with_one_line(monkeypatch, features, dtype, prefix, recwarn):
    monkeypatch.setenv(processor.VARIABLE, features)
    name = prefix + dtype
    fast = dtype in FAST.get(features, ())
    found = usable_precision(name)
    assert keras.dtype_policies.get(found).name == (name if fast else "float32")
    said = [] if fast else [
        f"precision is float32 in place of {name}: this machine is slower in {dtype}; "
        "KERAS_TRANSFORMER_PRECISION=strict insists"
    ]  # fmt: skip
    assert [str(warning.message) for warning in recwarn] == said


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_a_user_can_insist_on_what_the_machine_computes_in(monkeypatch, dtype, recwarn):
    monkeypatch.setenv(processor.VARIABLE, AVX2)
    monkeypatch.setenv(precision.VARIABLE, "strict")
    assert is_strict() and usable_precision(dtype) == dtype
    assert not recwarn
    monkeypatch.setattr(precision, "_computes_in", lambda dtype: False)
    with pytest.warns(match=f"in place of {dtype}: this machine does not compute in {dtype}$"):
        assert usable_precision(dtype) == "float32"


@pytest.mark.parametrize("value", ["", "fast"])
def test_a_user_does_not_insist_by_default(monkeypatch, value):
    monkeypatch.setenv(precision.VARIABLE, value)
    assert not is_strict()


def test_a_variable_of_another_value(monkeypatch):
    monkeypatch.setenv(precision.VARIABLE, "exact")
    message = "KERAS_TRANSFORMER_PRECISION must be 'fast' or 'strict', got 'exact'"
    with pytest.raises(ValueError, match=message):
        is_strict()


@pytest.mark.parametrize("units", [True, False])
def test_a_gpu_decides_by_its_own_units(monkeypatch, units):
    monkeypatch.setenv(processor.VARIABLE, "")
    monkeypatch.setattr(precision, "count_gpus", lambda: 1)
    monkeypatch.setattr(precision, "_gpu_has_bfloat16", lambda: units)
    assert precision.is_fast("float16")
    assert precision.is_fast("bfloat16") == (units or BACKEND != "torch")
