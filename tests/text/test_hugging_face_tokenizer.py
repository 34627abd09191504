"""Tokenizer files in Hugging Face's layout: read, written back, damaged."""

import functools
import json
import shutil

import pytest
import transformers

from keras_transformer.text import (
    SentencePieceTokenizer,
    WordTokenizer,
    load_tokenizer,
    read_tokenizer,
)
from keras_transformer.text.hugging_face_tokenizer import write_tokenizer

TEXTS = ["The old man sees the dog.", "Ein Hund schläft hier.", "I see 3 dogs, don't I?"] * 20


@pytest.fixture(scope="module")
def made(tokenizer_files, tmp_path_factory):
    """`made(kind)`: the folder and the fields of `config.json`."""

    @functools.cache
    def make(kind):
        folder = tmp_path_factory.mktemp(kind)
        return folder, tokenizer_files(kind, folder, TEXTS)

    return make


def test_a_tokenizer_of_words_has_no_file_there(tmp_path):
    words = WordTokenizer.train(["a dog"], ["DT NN"], min_count=1)
    with pytest.raises(ValueError, match="tokenizer must be .* SentencePiece model, got 'WordTok"):
        write_tokenizer(tmp_path, words)


@pytest.mark.parametrize("shared", [True, False])
def test_our_own_tokenizer_goes_out_as_that_of_marian(tmp_path, shared):
    ours = SentencePieceTokenizer.train(TEXTS, TEXTS[::-1], vocab_size=360, shared=shared)
    write_tokenizer(tmp_path, ours)
    config = dict(model_type="marian", decoder_start_token_id=ours.bos_id)
    again = read_tokenizer(tmp_path, config)
    for name in ("encode_source", "encode_target"):
        assert getattr(again, name)(TEXTS) == getattr(ours, name)(TEXTS)
    ids = ours.encode_target(TEXTS)
    assert again.decode_target(ids) == ours.decode_target(ids)
    assert (again.bos_id, again.eos_id, again.pad_id) == (ours.bos_id, ours.eos_id, ours.pad_id)
    assert (tmp_path / "target_vocab.json").is_file() == (not shared)


@pytest.mark.parametrize("kind", ["m2m_100", "nllb", "mbart", "t5", "madlad", "bart"])
def test_the_original_files_are_written_back(made, tmp_path, kind):
    folder, config = made(kind)
    write_tokenizer(tmp_path, read_tokenizer(folder, config))
    assert {x.name: x.read_bytes() for x in tmp_path.iterdir()} == {
        x.name: x.read_bytes() for x in folder.iterdir()
    }


def test_a_matrix_may_have_rows_to_spare(made):
    folder, config = made("mbart")
    size = config["vocab_size"]
    padded = read_tokenizer(folder, config | dict(vocab_size=size + 9))
    assert padded.source_vocab_size == size + 9
    both = [x.between("en_XX", "de_DE") for x in (padded, read_tokenizer(folder, config))]
    assert both[0].encode_source(TEXTS) == both[1].encode_source(TEXTS)
    ids = both[1].encode_target(["dog"])[0]
    assert both[0].decode_target([[*ids[:-1], size + 3]]) == ["dog"]


def test_added_tokens_extend_the_vocabulary(made, tmp_path):
    folder, config = made("t5")
    shutil.copytree(folder, tmp_path, dirs_exist_ok=True)
    size = read_tokenizer(folder, config).content_size + 100
    path = tmp_path / "tokenizer_config.json"
    options = json.loads(path.read_text())
    options["added_tokens_decoder"] = {str(size): {"content": "<new>"}}
    path.write_text(json.dumps(options))
    assert read_tokenizer(tmp_path, config).pieces.pieces[size] == "<new>"


def test_umt5_has_the_tokenizer_of_t5(made):
    folder, config = made("t5")
    both = [read_tokenizer(folder, config | dict(model_type=kind)) for kind in ("t5", "umt5")]
    assert both[0].encode_source(TEXTS) == both[1].encode_source(TEXTS)
    assert both[0].pieces.pieces == both[1].pieces.pieces


@pytest.mark.parametrize("is_fast", [False, True])
def test_bart_has_the_pieces_of_roberta(made, tmp_path, is_fast):
    """Byte-level pieces between <s> and </s>, from either kind of file."""
    folder, config = made("bart")
    theirs = transformers.AutoTokenizer.from_pretrained(folder)
    if is_fast:
        theirs.save_pretrained(tmp_path)
        assert not (tmp_path / "merges.txt").exists()
        folder = tmp_path
    ours = read_tokenizer(folder, config)
    texts = [*TEXTS[:3], "½ dogs, 犬", ""]
    expected = theirs(texts)["input_ids"]
    assert ours.encode_source(texts) == ours.encode_target(texts) == expected
    assert (ours.pad_id, ours.bos_id, ours.eos_id, ours.unk_id) == (1, 2, 2, 3)
    assert ours.decode_target(expected) == texts
    ours.save(tmp_path / "saved")
    again = load_tokenizer(tmp_path / "saved")
    assert again.encode_source(texts) == expected
    # Text that looks like a special token is spelled out.
    assert ours.decode_target(ours.encode_target(["a </s> b"])) == ["a </s> b"]
    with pytest.raises(ValueError, match="no SentencePiece model, only a tokenizer.json or vocab"):
        ours.source_model  # noqa: B018
    with pytest.raises(FileNotFoundError, match="nor vocab.json with merges.txt"):
        read_tokenizer(tmp_path / "none", config)


def test_pegasus_needs_the_files_of_marian(made):
    folder, config = made("t5")
    with pytest.raises(ValueError, match=r"source\.spm.*Pegasus.*Marian"):
        read_tokenizer(folder, config | dict(model_type="pegasus"))


@pytest.mark.parametrize("count", [2**31, -1, "3", None, 7.5])
def test_a_count_of_sentinels_that_is_none(made, count, tmp_path):
    folder, config = made("t5")
    folder = shutil.copytree(folder, tmp_path / "t5")
    options = folder / "tokenizer_config.json"
    before = json.loads(options.read_text()) if options.exists() else {}
    options.write_text(json.dumps(before | {"extra_ids": count}))
    with pytest.raises(ValueError, match="extra_ids in .*tokenizer_config.json must be from 0 to"):
        read_tokenizer(folder, config)


def test_an_id_that_is_none(made):
    folder, config = made("t5")
    with pytest.raises(ValueError, match="eos_token_id must be an id, a list of ids or null, got"):
        read_tokenizer(folder, config | {"eos_token_id": {"x": 1}})


def test_tasks(made):
    folder, config = made("t5")
    task = dict(prefix="translate English to German: ")
    params = dict(summarization={}, translation_en_to_de=task)
    ours = read_tokenizer(folder, config | dict(task_specific_params=params))
    expected = ours.encode_source([f"translate English to German: {text}" for text in TEXTS])
    assert ours.between("en", "de").encode_source(TEXTS) == expected


def test_legacy_nllb_has_the_language_last(made, tmp_path):
    folder, config = made("nllb")
    for path in folder.iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    options = dict(tokenizer_class="NllbTokenizer", legacy_behaviour=True)
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(options))
    ours = read_tokenizer(tmp_path, config).between("eng_Latn", "deu_Latn")
    (source,) = ours.encode_source(["dog"])
    assert source[-2:] == [ours.eos_id, ours.languages["eng_Latn"]]
    assert ours.encode_target(["dog"])[0][0] == ours.languages["deu_Latn"]


def test_bad_files(made, tmp_path):
    folder, config = made("mbart")
    with pytest.raises(ValueError, match=r"model_type must be one of .*, got 'bert'"):
        read_tokenizer(folder, config | dict(model_type="bert"))
    size = config["vocab_size"]
    for wrong in (size - 1, size + 128):
        with pytest.raises(ValueError, match=f"it has {size} pieces, the model {wrong}"):
            read_tokenizer(folder, config | dict(vocab_size=wrong))
    with pytest.raises(FileNotFoundError, match=r"holds no tokenizer: there is neither"):
        read_tokenizer(tmp_path, config)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(ValueError, match=r"tokenizer.json cannot be read"):
        read_tokenizer(tmp_path, config)
    (tmp_path / "sentencepiece.bpe.model").write_bytes(b"x")
    with pytest.raises(ValueError, match=r"the SentencePiece model in .* cannot be read"):
        read_tokenizer(tmp_path, config)
    model = folder / "sentencepiece.bpe.model"
    (tmp_path / "sentencepiece.bpe.model").write_bytes(model.read_bytes())
    for options, message in (
        (dict(tokenizer_class="MBartTokenizer"), "decoder_start_token_id must be the id of the t"),
        (
            dict(added_tokens_decoder={"5": dict(content="<x>")}),
            "token 5 is '<x>' in the former and .* in the latter",
        ),
        (dict(added_tokens_decoder={"5": "<x>"}), "must map each id to a token with a content"),
        (dict(added_tokens_decoder=[5]), "must map each id to a token with a content"),
    ):
        (tmp_path / "tokenizer_config.json").write_text(json.dumps(options))
        with pytest.raises(ValueError, match=message):
            read_tokenizer(tmp_path, config)
    with pytest.raises(ValueError, match=r"sampling must be 0 .*, got 0.1"):
        read_tokenizer(folder, config).encode_source(["a"], sampling=0.1)
