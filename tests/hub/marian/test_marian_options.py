"""Marian's options: YAML as Marian reads it, and the search of a decoder."""

import pytest

from keras_transformer.hub.marian.marian_options import read_pieces, read_yaml, search_of

pytestmark = pytest.mark.once("reads options")


def test_pieces_are_texts(tmp_path):
    path = tmp_path / "words.yml"
    path.write_text('"</s>": 0\nno: 1\n1: 2\n"\\u2581x": 3\n~: 4\n', "utf-8")
    assert read_pieces(path) == {"</s>": 0, "no": 1, "1": 2, "▁x": 3, "~": 4}
    for text in ("- a", "a: b"):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"words.yml must be a mapping of pieces to ids"):
            read_pieces(path)


def test_options_are_a_mapping():
    assert read_yaml(b"a: n\nb: false", "x.yml") == {"a": "n", "b": False}
    with pytest.raises(ValueError, match=r"the content of x.yml must be a mapping"):
        read_yaml(b"[]", "x.yml")


def test_what_aliases_repeat_is_not_printed(tmp_path):
    """40 lines, each twice the one before it: 2 ** 40 words."""
    lines = ["- &a0 [x, x]", *(f"- &a{i + 1} [*a{i}, *a{i}]" for i in range(40))]
    (tmp_path / "words.yml").write_text("\n".join(lines))
    with pytest.raises(ValueError, match=r"words.yml must be a mapping of pieces .* got 'list'"):
        read_pieces(tmp_path / "words.yml")
    with pytest.raises(ValueError, match="the content of x.yml must be a mapping, got 'list'"):
        read_yaml("\n".join(lines).encode(), "x.yml")


def test_the_search_of_a_decoder():
    search = search_of({"normalize": 1, "max-length-factor": 2, "mini-batch": 8}, {5, 1}, "x.yml")
    assert search == dict(
        beam_size=12, length_penalty=1.0, scoring="marian", forced_eos=False, max_length_factor=2,
        suppress_tokens=(1, 5),
    )  # fmt: skip
    with pytest.raises(ValueError, match=r"max-length-factor must be a whole number .* got 2.5"):
        search_of({"max-length-factor": 2.5}, (), "x.yml")
