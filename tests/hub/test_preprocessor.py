"""Where the fields of a preprocessor are: the file of its own, or a part of the processor's."""

import json

import pytest
from transformers import WhisperFeatureExtractor

from keras_transformer.hub.preprocessor import NAME, WHOLE, read_preprocessor
from keras_transformer.system.foreign_fields import FieldTable

pytestmark = pytest.mark.once("files")
PART, TABLE = "feature_extractor", FieldTable(("feature_size",), (), {"dither": (0.0,)})


def test_the_part_of_a_processor_is_preferred(tmp_path):
    """As in `transformers`, which writes it since 5.0."""
    assert read_preprocessor(tmp_path, PART, TABLE)[0] == {}
    (tmp_path / NAME).write_text(json.dumps({"feature_size": 8}))
    facts, place = read_preprocessor(tmp_path, PART, TABLE)
    assert facts == {"feature_size": 8} and place == str(tmp_path / NAME)
    (tmp_path / WHOLE).write_text(json.dumps({"processor_class": "WhisperProcessor"}))
    assert read_preprocessor(tmp_path, PART, TABLE)[0] == {"feature_size": 8}
    (tmp_path / WHOLE).write_text(json.dumps({PART: {"feature_size": 16}}))
    facts, place = read_preprocessor(tmp_path, PART, TABLE)
    assert facts == {"feature_size": 16} and place == f"{PART} of {tmp_path / WHOLE}"
    assert WhisperFeatureExtractor.from_pretrained(tmp_path).feature_size == 16


def test_what_is_refused(tmp_path):
    for content, said in (
        ([], "the content of .* must be an object, got"),
        ({PART: [1]}, r"feature_extractor in .*processor_config.json must be an object, got \[1\]"),
        ({PART: {"dither": 0.5}}, "dither in feature_extractor of .* is 0.5, which is not supp"),
    ):
        (tmp_path / WHOLE).write_text(json.dumps(content))
        with pytest.raises(ValueError, match=f"^{said}"):
            read_preprocessor(tmp_path, PART, TABLE)
