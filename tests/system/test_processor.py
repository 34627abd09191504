"""The processor's instructions, from what the system prints or a variable says."""

import subprocess

import pytest

from keras_transformer.system import processor
from keras_transformer.system.processor import (
    VARIABLE,
    features_in,
    is_amd,
    num_threads,
    processor_features,
)

X86 = """processor\t: 0
vendor_id\t: AuthenticAMD
flags\t\t: fpu avx2 avx512_vnni avx512_bf16
power management:

processor\t: 1
flags\t\t: fpu avx2
"""
ARM = "processor\t: 0\nFeatures\t: fp asimd i8mm bf16\nCPU implementer\t: 0x41\n"


@pytest.fixture(autouse=True)
def unnamed(monkeypatch):
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (X86, {"fpu", "avx2", "avx512_vnni", "avx512_bf16"}),
        (ARM, {"fp", "asimd", "i8mm", "bf16"}),
        ("", set()),
        ("flags without a colon", set()),
    ],
)
def test_features_in_a_text(text, expected):
    assert features_in(text) == expected


def test_features_of_linux(monkeypatch, tmp_path):
    monkeypatch.setattr(processor.sys, "platform", "linux")
    monkeypatch.setattr(processor, "CPUINFO", tmp_path / "cpuinfo")
    assert processor_features() == set() and not is_amd()  # there is no such file
    (tmp_path / "cpuinfo").write_text(X86)
    assert "avx512_vnni" in processor_features() and is_amd()
    (tmp_path / "cpuinfo").write_text(ARM)
    assert "i8mm" in processor_features() and not is_amd()


@pytest.mark.parametrize("machine", ["arm64", "x86_64"])
def test_features_of_macos(monkeypatch, machine):
    said = "hw.optional.arm.FEAT_I8MM: 1\nhw.optional.arm.FEAT_BF16: 0\n"
    monkeypatch.setattr(processor.sys, "platform", "darwin")
    monkeypatch.setattr(processor.platform, "machine", lambda: machine)
    answer = subprocess.CompletedProcess([], 0, stdout=said)
    monkeypatch.setattr(processor.subprocess, "run", lambda *_, **__: answer)
    assert processor_features() == ({"i8mm"} if machine == "arm64" else set())


def test_macos_without_its_program(monkeypatch):
    def fail(*_, **__):
        raise FileNotFoundError("sysctl")

    monkeypatch.setattr(processor.sys, "platform", "darwin")
    monkeypatch.setattr(processor.platform, "machine", lambda: "arm64")
    monkeypatch.setattr(processor.subprocess, "run", fail)
    assert processor_features() == set()


@pytest.mark.parametrize("named", ["", "AVX2  avx512_vnni"])
def test_a_variable_takes_their_place(monkeypatch, named):
    monkeypatch.setenv(VARIABLE, named)
    assert processor_features() == set(named.lower().split())


@pytest.mark.parametrize(("named", "expected"), [("3", 3), ("0", 2), ("", 2), ("2,1", 2)])
def test_threads_are_those_of_the_environment_else_the_cores(monkeypatch, named, expected):
    monkeypatch.setattr(processor.os, "sched_getaffinity", lambda _: {4, 7}, raising=False)
    monkeypatch.setenv("OMP_NUM_THREADS", named)
    assert num_threads() == expected
