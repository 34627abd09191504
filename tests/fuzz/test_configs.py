"""The `config.json` of foreign folders, of each family: wrong types, NaN, enormous sizes."""

import json

import keras
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from keras_transformer.hub.families import FAMILIES
from keras_transformer.hub.hugging_face_checkpoint import read_config, read_model, write_checkpoint
from keras_transformer.weights.weight_files import weights_of
from tests.fuzz.mutations import altered, json_files, scalars
from tests.fuzz.outcome import EXAMPLES, fuzz, outcome
from tests.hub.families.minimal import minimal

pytestmark = pytest.mark.once("the fields are checked before any tensor is made")

HUGE = [2**20, 2**31, 2**62, 10**30, 10**400]


# Gemma 3 is written as its model of text alone, which has a name of its own.
KINDS = sorted({*FAMILIES} - {"gemma3"})


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A small checkpoint of each family: model_type -> folder."""
    found = {}
    for kind in KINDS:
        folder = found[kind] = tmp_path_factory.mktemp(kind)
        config = FAMILIES[kind].read(minimal(kind), [])
        model = FAMILIES[kind].model(config)
        write_checkpoint(folder, config, weights_of(model), kind)
    return found


def fields_of(kind):
    """The least that the family must say, and one value for each other field that it reads."""
    known = minimal(kind)
    others = {name: field.default for name, field in FAMILIES[kind].fields.items()}
    plain = {name: x for name, x in others.items() if isinstance(x, str | int | float | list)}
    return plain | known


@fuzz(300)
@given(
    st.sampled_from(sorted(FAMILIES)).flatmap(lambda kind: json_files(fields_of(kind))),
    st.one_of(st.none(), json_files({"eos_token_id": [2, 3], "pad_token_id": 0})),
)
@example(b'{"model_type": "bert"}', None)
@example(b'{"model_type": ["bert"]}', None)
def test_fields(room, content, generation):
    (room / "config.json").write_bytes(content)
    (room / "generation_config.json").unlink(missing_ok=True)
    if generation is not None:
        (room / "generation_config.json").write_bytes(generation)

    def read():
        theirs, family = read_config(room)
        try:
            return family.read(theirs, [])
        except KeyError as error:  # `read_model` names the file
            raise ValueError(f"it lacks {error}") from error

    outcome("config.json", read)


@st.composite
def sizes(draw, kind):
    """A `config.json` that does not fit the weights beside it: one or two other values."""
    config = minimal(kind)
    for _ in range(draw(st.integers(1, 2))):
        name = draw(st.sampled_from(sorted({*config, *FAMILIES[kind].fields})))
        config[name] = draw(st.one_of(st.sampled_from(HUGE), st.integers(-1, 300), scalars))
    return config


@fuzz(15)
@given(st.data(), st.sampled_from(KINDS))
def test_sizes_that_the_weights_do_not_have(folders, data, kind):
    path = folders[kind] / "config.json"
    whole = path.read_bytes()
    own = json.loads(whole)
    try:
        config = data.draw(st.one_of(sizes(kind), altered(own), st.just(own)))
        if isinstance(config, dict):
            config = own | config | {"model_type": kind}
        path.write_text(json.dumps(config))
        outcome("config.json and weights", read_model, folders[kind])
    finally:
        path.write_bytes(whole)
        keras.backend.clear_session(free_memory=False)


@pytest.mark.parametrize("kind", KINDS if EXAMPLES else ("llama", "vit"))
def test_enormous_sizes_are_refused_at_once(folders, kind):
    path = folders[kind] / "config.json"
    whole = path.read_bytes()
    own = json.loads(whole)
    try:
        for name in [name for name in own if type(own[name]) is int]:
            for number in (10**6, 10**12) if EXAMPLES else (10**12,):
                path.write_text(json.dumps(own | {name: number}))
                outcome("config.json and weights", read_model, folders[kind])
                keras.backend.clear_session(free_memory=False)
    finally:
        path.write_bytes(whole)
