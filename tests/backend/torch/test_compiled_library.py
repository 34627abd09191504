"""Tests of calls of compiled code, with a library in C that needs no compilation by PyTorch."""

import shutil
import subprocess
import threading
import zipfile
from ctypes import c_int

import pytest
import torch

from keras_transformer.backend import private
from keras_transformer.backend.torch.compiled_library import CompiledLibrary

# It returns its weight and its input; a run waits until `released` is set.
CODE = """
#include <stddef.h>
#include <unistd.h>
#define FUNCTION(name, ...) int AOTInductorModelContainer##name(void *self, ##__VA_ARGS__)
struct pair { const char *name; void *tensor; };
int released, deleted, runs; static void *weight;
FUNCTION(CreateWithDevice, size_t most, const char *device, const char *folder) {
  *(void **)self = &runs; runs = most; return device[0] != 'c';
}
FUNCTION(Delete) { deleted += 1; return 0; }
FUNCTION(GetNumConstants, size_t *number) { *number = 1; return 0; }
FUNCTION(GetNumOutputs, size_t *number) { *number = 1; return 0; }
FUNCTION(GetConstantName, size_t i, const char **name) { *name = "short"; return 0; }
FUNCTION(GetConstantOriginalFQN, size_t i, const char **name) { *name = "weight_0"; return 0; }
#ifndef OLD
FUNCTION(UpdateUserManagedConstantBufferPairs, struct pair *pairs, size_t number) {
  weight = pairs[0].tensor; return number != 1 || pairs[0].name[0] != 's';
}
#endif
FUNCTION(Run, void **inputs, size_t number, void **outputs, size_t results) {
  outputs[0] = inputs[0];
  for (int i = 0; i < 60000 && !released; i++) usleep(1000);
  return number != 1 || results != 1 || !released;
}
"""
pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="it needs a C++ compiler, g++")


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """`package(*options)`: the path of a package, whose library is compiled with these options."""
    folder = tmp_path_factory.mktemp("packages")

    def make(*options):
        library, path = folder / "code.so", folder / f"{len(options)}.pt2"
        command = ["g++", "-x", "c", "-shared", "-fPIC", *options, "-", "-o", str(library)]
        subprocess.run(command, input=CODE, text=True, check=True)
        with zipfile.ZipFile(path, "w") as archive:
            archive.write(library, "model/data/code.so")
        return path

    return make


def test_other_threads_run_during_a_call(package):
    weight, x = torch.ones(3), torch.arange(4.0)
    library = CompiledLibrary(package(), {"weight_0": weight}, runs=2)
    assert c_int.in_dll(library._library, "runs").value == 2
    results = []
    thread = threading.Thread(target=lambda: results.append(library([x])))
    thread.start()
    c_int.in_dll(library._library, "released").value = 1
    thread.join()
    ((result,),) = results
    assert result.data_ptr() == x.data_ptr() and result.equal(x)


def test_weights_are_freed_with_the_library(package):
    weight = torch.ones(3)
    before = weight._use_count()
    library = CompiledLibrary(package(), {"weight_0": weight}, runs=1)
    deleted = c_int.in_dll(library._library, "deleted")
    assert weight._use_count() == before + 1 and deleted.value == 0
    del library
    assert weight._use_count() == before and deleted.value == 1


def test_packages_that_cannot_be_called(package, monkeypatch):
    with pytest.raises(LookupError, match="has no function UpdateUserManagedConstantBufferPairs"):
        CompiledLibrary(package("-DOLD"), {"weight_0": torch.ones(3)}, runs=1)
    symbol = "-Dreleased=aoti_torch_proxy_executor_call_function"
    with pytest.raises(LookupError, match="an operator that has no function in C"):
        CompiledLibrary(package(symbol, "-g0"), {}, runs=1)
    monkeypatch.setattr(private, "HANDLES_OF_TENSORS", None)
    with pytest.raises(LookupError, match="does not give tensors"):
        CompiledLibrary(package(), {}, runs=1)


def test_a_failed_call(package):
    library = CompiledLibrary(package(), {"weight_0": torch.ones(3)}, runs=1)
    c_int.in_dll(library._library, "released").value = 1
    with pytest.raises(RuntimeError, match="failed with status 1, see stderr"):
        library([torch.ones(1), torch.ones(1)])
