"""An option has the same name, type and help in every training script."""

import importlib
import inspect
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "training"
SCRIPTS = sorted({path.stem for path in FOLDER.glob("*.py")} - {"__init__", "demo", "translation"})
# These differ in what they hold: their help says so.
OWN = {"start_from", "output", "text_files", "steps", "train_file", "test_file", "validation_file"}


@pytest.mark.once("signatures")
def test_an_option_of_several_scripts_is_declared_once():
    assert len(SCRIPTS) == 14
    found = {}
    for script in SCRIPTS:
        train = importlib.import_module(f"training.{script}").train
        for name, parameter in inspect.signature(train).parameters.items():
            found.setdefault(name, {})[script] = str(parameter.annotation)
    assert len(found["seed"]) == 14
    for name, declared in found.items():
        if name not in OWN and len(declared) > 1:
            assert len(set(declared.values())) == 1, (name, declared)
            assert next(iter(declared.values())).startswith("options."), (name, declared)
