"""Bad values of each field that is read: the error names the field as the file does."""

import json

import numpy as np
import pytest
from safetensors.numpy import save_file

from keras_transformer.hub.families import FAMILIES
from keras_transformer.hub.hugging_face_checkpoint import read_model
from tests.hub.families.minimal import minimal

BAD = (None, -1, 0, 3, 10**12, 0.3, "x", [], {"x": 1}, {"rope_type": "yarn", "factor": 0.1})
# Where another field is named: one that is missing besides, or the other side of a table.
OTHERS = {("gemma3", "text_config"), ("albert", "embedding_size"), ("electra", "embedding_size")}
OTHERS |= {("deberta-v2", x) for x in ("conv_kernel_size", "max_position_embeddings")}


@pytest.mark.filterwarnings("ignore:.* fields that are not known")
@pytest.mark.parametrize("kind", FAMILIES)
def test_errors_name_the_field(kind, tmp_path):
    family, problems, base = FAMILIES[kind], {}, minimal(kind)
    save_file({"x": np.zeros(1, "float32")}, tmp_path / "model.safetensors")
    for name in sorted({*family.fields, *family.also_read}):
        for value in BAD:
            (tmp_path / "config.json").write_text(json.dumps(base | {name: value}))
            with pytest.raises(ValueError) as error:  # at last, the weights do not fit
                read_model(tmp_path)
            message = str(error.value)
            if name not in message and not message.startswith("the weights in"):
                problems[name] = value, message
    assert not {name: x for name, x in problems.items() if (kind, name) not in OTHERS}
