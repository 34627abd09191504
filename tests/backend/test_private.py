"""Private names of the frameworks: used from one module, and done without where they are gone."""

import re
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from keras import ops

import keras_transformer
from keras_transformer import LabelSmoothedCrossentropy, Perplexity
from keras_transformer.backend import cache, has_int8_linear, private, quick
from keras_transformer.layers import Encoder
from keras_transformer.layers.basic import Dense
from keras_transformer.optimizers import adam
from tests.backends import cases

BACKEND = keras.backend.backend()
NAMES = [name for name, value in vars(private).items() if name.isupper() and value is not None]
NAMES.remove("BACKEND")
SOURCE = {"source_ids": np.array([[4, 5, 3], [6, 3, 0]]), "target_ids": np.array([[2, 5], [2, 7]])}
LABELS = np.array([[5, 3], [7, 3]])


def test_they_are_used_from_one_module():
    pattern = re.compile(
        r"keras\.src|tensorflow\.python|torch\._|ops\.mkldnn\._|jax\._src|"
        r"\.(_remat_mode|_flatten_layers|_symbolic_build|_distribute_strategy|_int8_call|_version)\b"
    )
    package = Path(keras_transformer.__file__).parent
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if pattern.search(path.read_text("utf-8"))
    }
    # `startup` runs before a backend is imported, and names a module that is not to be imported.
    assert found == {"backend/private.py", "system/startup.py"}


def test_all_names_of_this_backend_are_there():
    """So that a release without one is noticed; `private` then says what is done."""
    of_torch = {"GET_DEVICE", "TO_TORCH_DTYPE", "LINEAR_POINTWISE", "REORDER_WEIGHT", "INT_MM"}
    of_torch |= {"FUSED_ADAM", "PEEK_TRANSFORM", "PACKAGE_LOADER", "INT4_MM", "INT4_PACK"}
    of_torch |= {"HANDLES_OF_TENSORS", "TENSORS_OF_HANDLES"}
    expected = {"torch": of_torch, "tensorflow": {"IN_XLA"}, "jax": set()}[BACKEND]
    assert set(NAMES) == expected | {"GLOBAL_STATE", "GET_MASK", "IN_SYMBOLIC_SCOPE"}


@pytest.fixture(scope="module")
def numbers(tiny_transformer):
    """Return outputs of a small model before and after training, in which the names are used."""

    def run():
        model = tiny_transformer(dropout=0.0)
        masked = keras.layers.Embedding(9, 6, mask_zero=True)
        inner = Encoder(1, 2, 8)
        masked.build(None)
        masked.embeddings.assign(np.arange(54).reshape(9, 6) / 54)
        inner.build((None, None, 6))
        for i, weight in enumerate(inner.weights):
            weight.assign(np.cos(i + np.arange(np.prod(weight.shape)).reshape(weight.shape)))
        results = [model(SOURCE), inner(masked(np.array([[3, 4, 0]])))]
        model.compile(adam(1e-2), LabelSmoothedCrossentropy(), metrics=[Perplexity()])
        history = model.fit(SOURCE, LABELS, epochs=2, verbose=0)
        results += [*history.history.values(), model(SOURCE)]
        dense = Dense(8)
        dense.build((None, 4))
        dense.kernel.assign(np.sin(np.arange(32).reshape(4, 8)))
        results.append(dense(np.ones((3, 4), "float32")))
        return [ops.convert_to_numpy(x) for x in results]

    return run


@pytest.fixture(scope="module")
def expected(numbers):
    return numbers()


@pytest.mark.parametrize("names", cases([*zip(NAMES), tuple(NAMES)], tuple(NAMES)), ids=" ".join)
def test_without_a_name_the_numbers_are_the_same(names, numbers, expected, monkeypatch):
    for name in names:
        monkeypatch.setattr(private, name, None)
    for found, wanted in zip(numbers(), expected, strict=True):
        np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=3e-4)


class TestWithoutAMethod:
    def test_layers_inside(self, tiny_transformer):
        model = tiny_transformer(dropout=0.0)
        expected = {id(x) for x in private.layers_inside(model)}
        flatten = keras.layers.Layer._flatten_layers
        del keras.layers.Layer._flatten_layers
        try:
            found = private.layers_inside(model)
        finally:
            keras.layers.Layer._flatten_layers = flatten
        assert {id(x) for x in found} == expected
        assert len(found) == len(expected)

    def test_metrics_are_built_by_a_step(self, tiny_transformer):
        model = tiny_transformer(dropout=0.0)
        model.compile(adam(1e-2), LabelSmoothedCrossentropy(), metrics=[Perplexity()])
        before = ops.convert_to_numpy(model(SOURCE))
        private.build_metrics(
            SimpleNamespace(test_on_batch=model.test_on_batch, reset_metrics=model.reset_metrics),
            (SOURCE, LABELS),
        )
        assert sum(len(metric.variables) for metric in model.metrics) >= 4
        assert not any(ops.convert_to_numpy(x).any() for m in model.metrics for x in m.variables)
        np.testing.assert_array_equal(ops.convert_to_numpy(model(SOURCE)), before)

    def test_attributes(self):
        class Bare:
            value = "cast"

        assert not private.is_rematerialized(Bare())
        assert private.in_strategy(Bare())
        assert private.own_value(Bare()) == "cast"


def test_what_is_answered_without_them(monkeypatch):
    for name in ("GLOBAL_STATE", "IN_SYMBOLIC_SCOPE", "GET_MASK"):
        monkeypatch.setattr(private, name, None)
    assert private.in_stateless_scope() and private.in_symbolic_scope()
    embedded = keras.layers.Embedding(4, 2, mask_zero=True)(np.array([[1, 0]]))
    mask = ops.convert_to_numpy(private.attached_mask(embedded))
    np.testing.assert_array_equal(mask, [[True, False]])


@pytest.mark.skipif(BACKEND != "torch", reason="of PyTorch's kernels")
def test_pytorch_without_its_own(monkeypatch):
    import torch

    from keras_transformer.backend.torch import matrix_products

    x, weight = torch.randn(3, 4), torch.randn(5, 4)
    expected = torch.relu(x @ weight.t() + 1)
    np.testing.assert_allclose(
        private.onednn_linear(x, weight, torch.ones(5), relu=True), expected, atol=1e-6
    )
    monkeypatch.setattr(private, "LINEAR_POINTWISE", None)
    np.testing.assert_allclose(
        private.onednn_linear(x, weight, torch.ones(5), relu=True), expected, atol=1e-6
    )
    assert private.onednn_weight(weight) is None
    monkeypatch.setattr(matrix_products, "multiplies_int8", lambda: True)
    with torch.no_grad():
        assert has_int8_linear(x)
        monkeypatch.setattr(private, "INT_MM", None)
        assert not has_int8_linear(x)
    for dtype in ("float32", "bool", "int32", "bfloat16"):
        there = private.torch_dtype(dtype)
        with monkeypatch.context() as hidden:
            hidden.setattr(private, "TO_TORCH_DTYPE", None)
            private.torch_dtype.cache_clear()
            assert private.torch_dtype(dtype) == there
    private.torch_dtype.cache_clear()
    monkeypatch.setattr(private, "GET_DEVICE", None)
    assert quick.zeros((2,), dtype="float32").device == x.device


@pytest.mark.skipif(BACKEND != "tensorflow", reason="of TensorFlow's graphs")
def test_caches_keep_their_shape_where_nobody_knows_of_xla(monkeypatch):
    assert cache.caches_grow()
    monkeypatch.setattr(private, "IN_XLA", None)
    assert not cache.caches_grow()


@pytest.mark.skipif(BACKEND != "torch", reason="of PyTorch's compiler")
def test_products_of_a_package_are_its_own_where_they_can_be(monkeypatch, tmp_path):
    import torch._inductor
    from torch._inductor import cpp_builder, select_algorithm

    selector = select_algorithm.get_algorithm_selector_cache()
    before, seen = list(selector.preprocessing_fns), []

    class ExternKernelCaller:
        """A call of a library, named as PyTorch's."""

    library, generated = ExternKernelCaller(), object()

    def compile_it(program, package_path, inductor_configs):
        new = [f for f in selector.preprocessing_fns if f not in before]
        chosen = [f(choices) for f in new for choices in ([library, generated], [library])]
        seen.append((inductor_configs, chosen))
        raise OSError

    monkeypatch.setattr(private, "PACKAGE_LOADER", None)
    monkeypatch.setattr(torch._inductor, "aoti_compile_and_package", compile_it)
    monkeypatch.setattr(cpp_builder, "is_gcc", lambda: True)
    for _ in range(3):
        with pytest.raises(OSError):
            private.write_package(None, tmp_path, {"freezing": True})
        assert selector.preprocessing_fns == before
        monkeypatch.delattr(select_algorithm, "get_algorithm_selector_cache", raising=False)
        if len(seen) == 2:
            monkeypatch.delattr(cpp_builder, "is_gcc")
    (options, chosen), of_gcc, plain = seen
    flag = {"cpp.enable_floating_point_contract_flag": "off -fno-early-inlining"}
    own = {"max_autotune_gemm": True, "max_autotune_gemm_backends": "CPP,ATEN"}
    flag["cpp.vec_isa_ok"] = True
    assert options == {"freezing": True} | own | flag
    assert chosen == [[generated], [library]]
    assert of_gcc == ({"freezing": True} | flag, [])
    assert plain == ({"freezing": True}, [])


@pytest.mark.skipif(BACKEND != "torch", reason="of PyTorch's compiler")
def test_a_package_and_its_weights(monkeypatch, tmp_path):
    import torch._inductor.package

    seen, weight = [], torch.ones(2)
    program = SimpleNamespace(example_inputs=((), {}), module=lambda check_guards: "module")
    weights = {"packed": (weight, "properties")}

    def compile_it(*arguments, options):
        seen.append(options)
        return ["code.so", weights, "code.cpp"]

    class Loader(SimpleNamespace):
        """The loader of a package that reads one of two weights."""

        boxed_run = "run"

        def __init__(self, path, *_):
            seen.append(path)

        def get_constant_fqns(self):
            return ["packed"]

        def load_constants(self, *arguments):
            seen.append(arguments)

    monkeypatch.setattr(torch._inductor, "aot_compile", compile_it)
    monkeypatch.setattr(torch._inductor.package, "package_aoti", lambda *given: seen.append(given))
    monkeypatch.setattr(private, "PACKAGE_LOADER", Loader)
    path = tmp_path / "one.pt2"
    assert private.write_package(program, path, {"freezing": True}) == {"packed": weight}
    options, packed = seen
    assert options["freezing"] and not options["aot_inductor.package_constants_in_so"]
    assert packed == (str(path), ["code.so", "code.cpp"])
    assert private.package_runner(path, {"packed": weight, "other": weight}) == "run"
    assert seen[2:] == [str(path), ({"packed": weight}, False, True, True)]
    assert private.package_runner(path, {}) == "run" and len(seen) == 5
    monkeypatch.setattr(private, "PACKAGE_LOADER", None)
    monkeypatch.setattr(torch._inductor, "aoti_load_package", str.upper)
    assert private.package_runner(path, {}) == str(path).upper()
