"""The two forms of requests and answers of TensorFlow Serving's REST API: rows and columns."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from keras_transformer.config import require
from keras_transformer.serving.schemas import MOST_ITEMS, PredictRequest

NAMES = {"score": ("sources", "targets")}  # inputs by signature; other signatures have `texts`
ENCODED = "b64"


def columns_of(asked: PredictRequest) -> list[list[str]]:
    """Return the texts of each input of the signature.

    Args:
        asked: A request. `instances` is a list of rows: texts, or objects of texts by input name.
            `inputs` is a text, a list of texts, or an object of these by input name. In place of a
            text, {"b64": base64} is accepted.

    Raises:
        ValueError: If `instances` and `inputs` are both given or both missing, or do not fit the
            signature, have too many texts, or a text is not valid Unicode.
    """
    forms = [name for name in ("instances", "inputs") if getattr(asked, name) is not None]
    if len(forms) != 1:
        raise ValueError("give either `instances` or `inputs`, not both and not neither")
    names = NAMES.get(asked.signature_name, ("texts",))
    if asked.instances is not None:
        rows = [_named(row, names, "instances") for row in asked.instances]
        return [[_text(row[name], name) for row in rows] for name in names]
    columns = _named(asked.inputs, names, "inputs")
    text_columns = []
    for name in names:
        column = columns[name]
        texts = column if isinstance(column, list) else [column]
        require(len(texts) <= MOST_ITEMS, name, len(texts), f"at most {MOST_ITEMS:,} texts")
        text_columns.append([_text(text, name) for text in texts])
    same_length = len({*map(len, text_columns)}) == 1
    require(same_length, " and ".join(names), [*map(len, text_columns)], "as many of each")
    return text_columns


def answer_of(asked: PredictRequest, columns: dict[str, list[Any]]) -> dict[str, Any]:
    """Return the answer in the form of the request: `predictions` are rows, `outputs` columns.

    A single output has no name.

    Args:
        asked: The request.
        columns: The outputs by name, each with an item for each text.
    """
    if len(columns) == 1:
        (column,) = columns.values()
        return {"outputs" if asked.instances is None else "predictions": column}
    if asked.instances is None:
        return {"outputs": columns}
    rows = zip(*columns.values(), strict=True)
    return {"predictions": [dict(zip(columns, row, strict=True)) for row in rows]}


def _named(value, names, place):
    """Return the inputs by name; if the signature has one input, its name may be missing."""
    if isinstance(value, dict) and {*value} != {ENCODED}:
        require({*value} == {*names}, place, sorted(value), f"{' and '.join(names)}")
        return value
    accepted = f"objects with {' and '.join(names)}"
    require(len(names) == 1, place, value, accepted)
    return {names[0]: value}


def _text(value, name):
    """Return a text, decoded if it is given in base64."""
    if isinstance(value, dict) and {*value} == {ENCODED}:
        try:
            return base64.b64decode(value[ENCODED], validate=True).decode()
        except (binascii.Error, TypeError, ValueError):
            raise ValueError(f"{name} must be UTF-8 in base64 where it is {ENCODED}") from None
    require(isinstance(value, str), name, value, 'texts, or {"b64": base64}')
    value.encode()  # raises ValueError for half of a surrogate pair
    return value
