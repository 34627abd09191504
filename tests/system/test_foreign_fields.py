import json
import warnings

import pytest

from keras_transformer.system.foreign_fields import FieldTable

TABLE = FieldTable(read=("size",), harmless=("version",), refused={"flip": (False, None)})


@pytest.mark.parametrize(
    "facts", [{}, {"flip": False}, {"flip": None}, {"size": 3, "version": "5", "_commit": "a"}]
)
def test_known_fields_are_accepted(facts):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TABLE.check(facts, "config.json")


@pytest.mark.parametrize("value", [True, 0, "no"])
def test_an_unusual_value_is_refused_by_name(value):
    expected = f"^flip in config.json is {value!r}, .*supported is False or None$"
    with pytest.raises(ValueError, match=expected):
        TABLE.check({"flip": value}, "config.json")


def test_an_unknown_field_is_named():
    with pytest.warns(UserWarning, match="config.json has fields that are not known: depth, width"):
        TABLE.check({"width": 1, "depth": 2}, "config.json")


def test_files(tmp_path):
    path = tmp_path / "config.json"
    assert TABLE.read_from(path) == {}
    path.write_text(json.dumps({"size": 3}))
    assert TABLE.read_from(path) == {"size": 3}
    path.write_text("[]")
    with pytest.raises(ValueError, match="must hold an object, got list"):
        TABLE.read_from(path)
