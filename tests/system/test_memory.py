"""Memory that is kept is not fetched from the system again."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import keras_transformer
from keras_transformer.system import startup
from keras_transformer.system.memory import reuse_memory

PROGRAM = """
import resource, sys
sys.path.insert(0, sys.argv[1])
from memory import reuse_memory
if len(sys.argv) > 3:
    reuse_memory(of_any_size=sys.argv[3] == "all")
def faults():
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt
def use():
    data = bytearray(int(sys.argv[2]) << 20)
use()
before = faults()
for _ in range(3):
    use()
print(faults() - before)
"""


@pytest.mark.once("processes of their own")
@pytest.mark.skipif(sys.platform != "linux", reason="glibc")
def test_a_program_gets_its_memory_once():
    folder = Path(keras_transformer.__file__).parent / "system"

    def faults(*arguments):
        command = [sys.executable, "-c", PROGRAM, folder, *arguments]
        return int(subprocess.run(command, capture_output=True, check=True, text=True).stdout)

    assert faults("100", "all") < 100 < faults("100")
    assert faults("20", "some") < 100
    assert faults("100", "some") > 100  # above 32 MiB it is given back


def test_at_any_time():
    reuse_memory()
    reuse_memory()
    assert sum(bytearray(10_000_000)) == 0


@pytest.fixture
def environment(monkeypatch):
    """The process's variables without those of OpenMP, in a copy."""
    of_openmp = ("GOMP_SPINCOUNT", "OMP_WAIT_POLICY")
    copy = {name: value for name, value in os.environ.items() if name not in of_openmp}
    monkeypatch.setattr(startup.os, "environ", copy)
    return copy


@pytest.mark.parametrize("is_program", [True, False])
def test_programs_keep_all_and_wait_asleep(monkeypatch, environment, is_program):
    kept = []
    monkeypatch.setattr(startup, "_is_command_line", lambda: is_program)
    monkeypatch.setattr(startup, "reuse_memory", lambda **options: kept.append(options))
    startup.prepare()
    assert kept == [{"of_any_size": True}] * is_program
    assert ("GOMP_SPINCOUNT" in environment) == is_program


@pytest.mark.parametrize("name,value", [("OMP_WAIT_POLICY", "active"), ("GOMP_SPINCOUNT", "7")])
def test_what_the_user_chose_stays(monkeypatch, environment, name, value):
    monkeypatch.setattr(startup, "_is_command_line", lambda: True)
    monkeypatch.setattr(startup, "reuse_memory", lambda **options: None)
    environment[name] = value
    before = dict(environment)
    startup.prepare()
    assert environment.get("GOMP_SPINCOUNT") == before.get("GOMP_SPINCOUNT")
