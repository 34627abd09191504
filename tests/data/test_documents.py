"""Documents of text files: their ids on disk, the tenth that is held back, bad files."""

import gzip
import json

import pytest

from keras_transformer.data import documents
from keras_transformer.data.documents import (
    encode_documents,
    read_documents,
    read_sentences,
    texts_of,
)
from keras_transformer.text.text_tokenizer import TextTokenizer

TOKENIZER = TextTokenizer.train(["abcdefghij \n"], "characters")
END = 0


def write(path, content):
    path.write_text(content, "utf-8")
    return path


def encoded(paths, folder, tokenizer=TOKENIZER):
    found = encode_documents(paths, tokenizer, END, folder)
    return {part: [x.tolist() for x in own] for part, own in found.items()}


def ids(text):
    return TOKENIZER.encode([text])[0]


def test_a_text_file_is_one_document(tmp_path, monkeypatch):
    path = write(tmp_path / "a.txt", "abc\n\ndef\n" * 5)
    expected = {"train": [ids("abc\n\ndef\n" * 4 + "abc\n")], "validation": [ids("\ndef\n")]}
    assert list(read_documents(path)) == [(True, "abc\n\ndef\n" * 5)]
    assert encoded([path], tmp_path) == expected
    monkeypatch.setattr(documents, "_CHUNK", 6)  # in parts of two lines
    assert list(read_documents(path))[:2] == [(True, "abc\n\ndef\n"), (False, "abc\n\ndef\n")]
    assert encoded([path], tmp_path) == expected


def test_json_lines_hold_a_document_each(tmp_path):
    texts = ["abc", "de\nf", "", "gh", "ij"]
    lines = [json.dumps({"text": text, "x": 1}) for text in texts] + ["", '"a b"']
    path = tmp_path / "a.jsonl.gz"
    path.write_bytes(gzip.compress("\n".join(lines).encode()))
    assert list(texts_of([path])) == ["abc", "de\nf", "gh", "ij", "a b"]
    assert encoded([path], tmp_path) == {
        "train": [*([*ids(x), END] for x in ("abc", "de\nf", "gh", "ij")), ids("a")],
        "validation": [ids(" b")],
    }


def test_each_file_gives_a_tenth(tmp_path):
    paths = [write(tmp_path / f"{x}.txt", x * 9 + "\n") for x in "abc"]
    assert encoded(paths, tmp_path) == {
        "train": [[*ids("a" * 9), END], [*ids("b" * 9), END], ids("c" * 9)],
        "validation": [[*ids("\n"), END], [*ids("\n"), END], ids("\n")],
    }


def test_sentences_by_document(tmp_path):
    path = write(tmp_path / "a.txt", "\na b\nc\n\n \nd\n\n")
    assert read_sentences(path) == [["a b", "c"], ["d"]]
    with pytest.raises(ValueError, match="a.txt must have a line of text, got none"):
        read_sentences(write(path, "\n \n"))


def test_documents_begin_with_what_the_tokenizer_puts_there(tmp_path, monkeypatch):
    from tokenizers import Tokenizer, processors

    library = Tokenizer.from_buffer(TOKENIZER.content)
    bos = ("<|endoftext|>", 0)
    library.post_processor = processors.TemplateProcessing(
        single=f"{bos[0]} $A", special_tokens=[bos]
    )
    framed = TextTokenizer(library.to_str().encode(), add_special_tokens=True)
    path = write(tmp_path / "a.txt", "abcdefghi\n" * 2)
    monkeypatch.setattr(documents, "_CHUNK", 5)
    assert encoded([path], tmp_path, framed) == {
        "train": [[0, *ids("abcdefghi\nabcdefgh")]],
        "validation": [[0, *ids("i\n")]],
    }


@pytest.mark.parametrize(
    "name,content,problem",
    [
        ("a.jsonl", '{"text": "a"}\n{', "a.jsonl, line 2: malformed JSON"),
        ("a.jsonl", '{"title": "a"}', "a.jsonl, line 1: expected a \"text\", got {'title': 'a'}"),
        ("a.jsonl", "", "text in .*a.jsonl must be at least one character, got 0"),
        ("a.txt", "", "text in .*a.txt must be at least one character, got 0"),
    ],
)
def test_bad_files(tmp_path, name, content, problem):
    with pytest.raises(ValueError, match=problem):
        encoded([write(tmp_path / name, content)], tmp_path)
