"""Files beside a tokenizer: which of them count, and what is refused."""

import json

import pytest

from keras_transformer.text.tokenizer_options import (
    ADDED,
    CONFIG,
    TOKENS,
    extra_tokens,
    options_of,
    table,
    text_of,
    without_own_tokens,
)


def write(folder, **files):
    for name, content in files.items():
        (folder / {"config": CONFIG, "tokens": TOKENS, "added": ADDED}[name]).write_text(
            json.dumps(content)
        )


def test_the_order_of_the_files(tmp_path):
    assert options_of(tmp_path) == {}
    write(
        tmp_path,
        config={"bos_token": "<a>", "eos_token": "<b>"},
        tokens={"bos_token": {"content": "<s>"}, "additional_special_tokens": ["<x>"]},
        added={"<x>": 7, "<y>": 8, "<|0.00|>": 9},
    )
    found = options_of(tmp_path)
    assert (text_of(found["bos_token"]), found["eos_token"]) == ("<s>", "<b>")
    assert {i: x["special"] for i, x in found["added_tokens_decoder"].items()} == {
        "7": True, "8": False, "9": True,
    }  # fmt: skip
    # With this field the other files do not count, as in `transformers`.
    write(tmp_path, config={"bos_token": "<a>", "added_tokens_decoder": {}})
    assert options_of(tmp_path) == {"bos_token": "<a>", "added_tokens_decoder": {}}


def test_tokens_of_other_names():
    options = {"image_token": "<i>", "bos_token": "<s>", "add_eos_token": True, "x": 1}
    assert without_own_tokens(options) == {"bos_token": "<s>", "add_eos_token": True, "x": 1}
    assert extra_tokens(options) == ["<i>"]
    lists = {"extra_special_tokens": ["<e>"], "additional_special_tokens": ["<a>"]}
    assert extra_tokens(lists) == ["<e>"]
    assert extra_tokens(lists | {"extra_special_tokens": {"one": "<1>"}}) == ["<1>"]
    assert extra_tokens(lists | {"extra_special_tokens": []}) == ["<a>"]
    with pytest.raises(ValueError, match="extra_special_tokens must be a list of tokens, got 'e'"):
        extra_tokens({"extra_special_tokens": "e"})


def test_broken_files(tmp_path):
    write(tmp_path, added={"<x>": "7"})
    with pytest.raises(ValueError, match="the content of .*added_tokens.json must be ids by token"):
        options_of(tmp_path)
    write(tmp_path, tokens=[])
    with pytest.raises(ValueError, match="the content of .*special_tokens_map.json must be an obj"):
        options_of(tmp_path)
    write(tmp_path, added={}, tokens={"bos": "<s>"})
    with pytest.warns(UserWarning, match="special_tokens_map.json has fields that are not known"):
        options_of(tmp_path)


def test_tables():
    fields = table(("legacy",), {"flip": (False,)})
    assert "legacy" in fields.read and "legacy" not in fields.harmless
    assert "legacy" in table().harmless
    for name, value in {"flip": True, "sp_model_kwargs": {"alpha": 0.1}}.items():
        with pytest.raises(ValueError, match=f"^{name} in x is "):
            fields.check({name: value}, "x")
