"""Loading a saved tokenizer: folders that are damaged or hold something else."""

import json

import pytest

from keras_transformer.text import MarianTokenizer, WordTokenizer, load_tokenizer, read_tokenizer
from tests.text.sentences import ENGLISH, GERMAN, trained


def test_folder_without_tokenizer(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"holds no tokenizer: tokenizer\.json is missing"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not valid JSON"),
        ("[]", 'must name its "class"'),
        ('{"class": "Other"}', 'must name its "class", one of .*SentencePieceTokenizer'),
        ('{"class": "SentencePieceTokenizer"}', "lacks 'shared'"),
    ],
)
def test_broken_json(tmp_path, content, message):
    (tmp_path / "tokenizer.json").write_text(content)
    with pytest.raises(ValueError, match=message):
        load_tokenizer(tmp_path)


def test_missing_model_file(tmp_path):
    trained(shared=False).save(tmp_path)
    (tmp_path / "target.model").unlink()
    with pytest.raises(FileNotFoundError, match=r"target\.model is missing"):
        load_tokenizer(tmp_path)


def test_model_file_of_another_tokenizer(tmp_path):
    trained().save(tmp_path)
    (tmp_path / "shared.model").write_bytes(trained("unigram").source_model)
    with pytest.raises(ValueError, match="not those that were saved"):
        load_tokenizer(tmp_path)


def test_fingerprint_is_in_the_folder(tmp_path):
    trained().save(tmp_path)
    manifest = json.loads((tmp_path / "tokenizer.json").read_text())
    assert manifest["fingerprint"] == trained().fingerprint()
    assert trained().fingerprint() != trained(lowercase=True).fingerprint()


def test_the_class_is_the_one_that_was_saved(marian_files, tokenizer_files, tmp_path):
    folders = [tmp_path / name for name in ("marian", "t5")]
    for folder in folders:
        folder.mkdir()
    config = tokenizer_files("t5", folders[1], ENGLISH)
    for i, tokenizer in enumerate(
        [
            trained(),
            WordTokenizer.train(ENGLISH, GERMAN),
            MarianTokenizer.read(marian_files(folders[0], ENGLISH, GERMAN)),
            read_tokenizer(folders[1], config),
        ]
    ):
        tokenizer.save(tmp_path / str(i))
        again = load_tokenizer(tmp_path / str(i))
        assert type(again) is type(tokenizer)
        assert again.encode_source(ENGLISH) == tokenizer.encode_source(ENGLISH)
        assert again.decode_target(again.encode_target(GERMAN)) == tokenizer.decode_target(
            tokenizer.encode_target(GERMAN)
        )
