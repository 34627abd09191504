"""The extras: those of the project, and the error for a missing one."""

import tomllib
from pathlib import Path

from keras_transformer.system import extras

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def test_the_command_has_the_packages_of_all_extras():
    expected = [*extras.PACKAGES["plots"], *extras.PACKAGES["images"]]
    assert extras.pip_install("plots", "images").split() == [
        "pip", "install", *(f'"{package}"' for package in expected)
    ]  # fmt: skip


def test_one_missing_extra():
    assert str(extras.missing("reading images", "images")).startswith(
        'reading images needs the extra "images": pip install "pillow>='
    )


def test_extras_are_those_of_the_project():
    declared = PROJECT["optional-dependencies"]
    together = {"all", "bench", "docs", "dev", "marian", "release"}
    assert {name: list(x) for name, x in extras.PACKAGES.items()} == {
        name: packages for name, packages in declared.items() if name not in together
    }
    [whole] = declared["all"]
    prefix = f"{PROJECT['name']}["
    assert whole.startswith(prefix)
    assert set(whole.removeprefix(prefix).rstrip("]").split(",")) == set(extras.PACKAGES)


def test_a_missing_extra_names_its_packages():
    error = extras.missing("exporting ONNX graphs", "torch", "onnx")
    assert isinstance(error, ImportError)
    assert str(error) == (
        'exporting ONNX graphs needs the extras "torch" and "onnx": '
        + " ".join(["pip install", *(f'"{x}"' for x in extras.PACKAGES["torch"]),
                    *(f'"{x}"' for x in extras.PACKAGES["onnx"])])
    )  # fmt: skip
