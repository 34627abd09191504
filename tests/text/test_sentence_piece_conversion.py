"""A SentencePiece model as a `tokenizer.json`: the same ids and texts in Python and in Node.js."""

import io
import json
from pathlib import Path

import pytest
import sentencepiece
import tokenizers

from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.text.sentence_piece_conversion import tokenizer_json
from tests import node
from tests.text.odd_texts import odd_texts
from tests.text.sentences import ENGLISH, GERMAN

pytestmark = pytest.mark.once("tokenizers run on no backend")
SHIPPED = Path(__file__).parent.parent.parent / "saved_models" / "tatoeba"
WORDS = sorted({word for text in (*ENGLISH, *GERMAN) for word in text.split()})
TEXTS = odd_texts(2000, WORDS)
IDS = dict(pad_id=0, unk_id=1, bos_id=2, eos_id=3)


def ours(**options):
    options = dict(vocab_size=320, target_languages=["de", "en"], sentinels=3) | options
    return SentencePieceTokenizer.train(ENGLISH, GERMAN, **options).source_model


def plain(kind, rule, **options):
    """Train a model as other programs do."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([*ENGLISH, *GERMAN]), model_writer=model, model_type=kind,
        normalization_rule_name=rule, vocab_size=300, hard_vocab_limit=False, minloglevel=3,
        **(IDS | options),
    )  # fmt: skip
    return model.getvalue()


MODELS = {
    "shipped": lambda: (SHIPPED / "shared.model").read_bytes(),
    "bpe": ours,
    "bpe-unknown": lambda: ours(byte_fallback=False),
    "bpe-lower": lambda: ours(lowercase=True),
    "bpe-identity": lambda: plain("bpe", "identity"),
    "bpe-spaces": lambda: plain("bpe", "nmt_nfkc", remove_extra_whitespaces=False),
    "unigram": lambda: ours(kind="unigram"),
    "unigram-unknown": lambda: ours(kind="unigram", byte_fallback=False),
    "unigram-lower": lambda: ours(kind="unigram", lowercase=True),
    "unigram-prefix": lambda: plain(
        "unigram", "nfkc", add_dummy_prefix=False, user_defined_symbols=["<BT>"]
    ),
}


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    """For each model: its `tokenizer.json`, the ids of SentencePiece, and their texts."""
    folder, results = tmp_path_factory.mktemp("files"), {}
    for name, model in MODELS.items():
        content = model()
        processor = sentencepiece.SentencePieceProcessor(model_proto=content)
        file = folder / f"{name}.json"
        frame = [processor.bos_id()], [processor.eos_id()]
        file.write_text(json.dumps(tokenizer_json(content, *frame)))
        ids = processor.encode(TEXTS, add_bos=True, add_eos=True)
        results[name] = file, ids, processor.decode(ids)
    return results


@pytest.mark.parametrize("name", MODELS)
def test_python_gives_the_ids_and_texts_of_sentencepiece(name, converted):
    file, ids, texts = converted[name]
    tokenizer = tokenizers.Tokenizer.from_file(str(file))
    encodings = tokenizer.encode_batch(TEXTS)
    for text, encoding, expected in zip(TEXTS, encodings, ids, strict=True):
        assert encoding.ids == expected, ascii(text)
    assert tokenizer.decode_batch(ids) == texts


def test_node_gives_the_ids_and_texts_of_sentencepiece(converted):
    tokenizers_file = node.modules() / "@huggingface/tokenizers/dist/tokenizers.mjs"
    files, ids, texts = zip(*converted.values(), strict=True)
    task = dict(files=[str(file) for file in files], texts=TEXTS, ids=ids)
    results = json.loads(node.run("tokenize.mjs", tokenizers_file, input=json.dumps(task)))
    for name, result, *expected in zip(MODELS, results, ids, texts, strict=True):
        for text, row, other in zip(TEXTS, result[0], expected[0], strict=True):
            assert row == other, (name, ascii(text))
        assert result[1] == expected[1], name


def test_what_cannot_be_written_is_refused():
    for options, message in (
        (dict(treat_whitespace_as_suffix=True), "one with treat_whitespace_as_suffix"),
        (dict(kind="char"), "kind must be one of .*bpe.*, got 4"),
        (dict(user_defined_symbols=["<BT>"]), "user-defined symbol must .* got '<BT>'"),
    ):
        model = plain(**(dict(kind="bpe", rule="identity") | options))
        with pytest.raises(ValueError, match=message):
            tokenizer_json(model)
    with pytest.raises(ValueError, match="got 'one with escape_whitespaces=False'"):
        tokenizer_json(plain("bpe", "identity") + b"\x1a\x02\x28\x00")
