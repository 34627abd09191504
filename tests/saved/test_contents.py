"""The contents of a saved folder, except its model."""

import pytest

from keras_transformer.hub.hugging_face_checkpoint import write_model
from keras_transformer.models import enable_lora
from keras_transformer.saved.contents import CONFIG, MODEL, fingerprint
from keras_transformer.saved.folder import save_folder
from keras_transformer.system.files import read_json
from tests.tiny import tiny


@pytest.mark.once("files and paths")
def test_a_fingerprint_is_of_all_files_of_a_model(tmp_path):
    model, found = tiny("bert"), []
    base, adapter = tmp_path / "base", tmp_path / "adapter"

    def note(folder):
        config = read_json(folder / CONFIG)
        assert fingerprint(folder, config) == fingerprint(folder, config)
        found.append(fingerprint(folder, config))

    save_folder(base, model, None, {"task": "x"})
    note(base)
    enable_lora(model, 2)
    save_folder(adapter, model, None, {"task": "x"}, base=base)
    note(adapter)
    with (base / MODEL).open("ab") as file:
        file.write(b"x")
    note(base)
    note(adapter)
    write_model(tmp_path / "hf", tiny("bert"))
    config = read_json(adapter / CONFIG)
    config["adapter"]["base"] = "../hf"
    found.append(fingerprint(adapter, config))
    (tmp_path / "hf" / "model.safetensors").write_bytes(b"x")
    found.append(fingerprint(adapter, config))
    assert len(set(found)) == len(found)
