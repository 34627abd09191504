"""Imported encoders with their vocabularies, which training scripts start from."""

import functools
import json

import keras
import numpy as np
import pytest
import tokenizers
import torch
import transformers

from keras_transformer import load_pretrained
from keras_transformer.saved.folder import load_with_tokenizer
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.training import question_answering, text_classification, token_classification
from tests.backends import EVERY_CASE

SMALL = dict(
    hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24,
    max_position_embeddings=34, initializer_range=0.3,
)  # fmt: skip
PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] good bad film the a ##s".split()


def write_bert(folder):
    config = transformers.BertConfig(vocab_size=len(PIECES), **SMALL)
    transformers.BertForMaskedLM(config).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(PIECES))


def write_albert(folder):
    write_with_pieces(folder, "Albert", "ForMaskedLM", embedding_size=8, **SMALL)


def write_electra(folder):
    write_with_pieces(folder, "Electra", "ForMaskedLM", embedding_size=8, **SMALL)


def write_distilbert(folder):
    sizes = dict(dim=16, n_layers=1, n_heads=2, hidden_dim=24, max_position_embeddings=34)
    write_with_pieces(folder, "DistilBert", "ForMaskedLM", initializer_range=0.3, **sizes)


def write_deberta(folder):
    write_with_pieces(
        folder, "DebertaV2", "Model", relative_attention=True, pos_att_type=["p2c", "c2p"],
        share_att_key=True, norm_rel_ebd="layer_norm", position_buckets=4,
        position_biased_input=False, **SMALL,
    )  # fmt: skip


def write_with_pieces(folder, family, head, **options):
    write_bert(folder)
    TextTokenizer.read(folder).save(folder)
    config = getattr(transformers, f"{family}Config")(vocab_size=len(PIECES), **options)
    getattr(transformers, family + head)(config).save_pretrained(folder)


def write_roberta(folder, family="Roberta"):
    tokenizer = tokenizers.ByteLevelBPETokenizer()
    tokenizer.train_from_iterator(
        ["a good film", "bad films"],
        show_progress=False,
        special_tokens=["<s>", "<pad>", "</s>", "<unk>", "<mask>"],
    )
    tokenizer.save_model(str(folder))
    size = tokenizer.get_vocab_size()
    config = getattr(transformers, f"{family}Config")
    config = config(vocab_size=size, type_vocab_size=1, pad_token_id=1, **SMALL)
    getattr(transformers, f"{family}ForMaskedLM")(config).save_pretrained(folder)


def write_xlm_roberta(folder):
    write_roberta(folder, "XLMRoberta")


def write_esm(folder):
    pieces = "<cls> <pad> <eos> <unk> L A G V E I P . - <mask>".split()
    ids = dict(pad_token_id=1, mask_token_id=13, position_embedding_type="rotary")
    config = transformers.EsmConfig(vocab_size=len(pieces), token_dropout=True, **ids, **SMALL)
    transformers.EsmForMaskedLM(config).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(pieces))


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """`started(write)`: an encoder with its vocabulary, imported, and where it was saved."""

    @functools.cache
    def start(write):
        source, folder = (tmp_path_factory.mktemp(name) for name in ("source", "start"))
        torch.manual_seed(0)
        write(source)
        found = load_pretrained(source)
        found.save(folder)
        return found, folder

    return start


def write_texts(folder):
    lines = ["sentence\tlabel", "the film\t0", "a good film\t1", "bad films\t0", "the good\t1"]
    (folder / "text.tsv").write_text("\n".join(lines))
    return [folder / "text.tsv"] * 3


def write_tags(folder):
    (folder / "tags.conll").write_text("the\tO\nfilms\tB-film\n\nbad\tO\nfilm\tB-film\n")
    return [folder / "tags.conll"] * 2


def write_questions(folder):
    answers = [{"text": "films", "answer_start": 4}]
    asked = {"id": "x", "question": "good", "answers": answers}
    data = [{"title": x, "paragraphs": [{"context": "bad films", "qas": [asked]}]} for x in "AB"]
    (folder / "x.json").write_text(json.dumps({"data": data}))
    (folder / "split.tsv").write_text("A\ttrain\nB\teval\n")
    return [folder / "x.json", folder / "split.tsv"]


SCRIPTS = {
    "texts": (text_classification, write_texts),
    "tokens": (token_classification, write_tags),
    "questions": (question_answering, write_questions),
}
STARTS = [(write_bert, "texts")]
if EVERY_CASE:  # with the others each is compiled, with the same layers
    STARTS += [(write_bert, task) for task in ("tokens", "questions")]
    encoders = (write_roberta, write_albert, write_deberta)
    STARTS += [(write, task) for write in encoders for task in SCRIPTS]
    others = (write_distilbert, write_electra, write_xlm_roberta)  # kinds of these
    STARTS += list(zip(others, SCRIPTS, strict=True))
    STARTS += [(write_esm, "texts"), (write_esm, "tokens")]


@pytest.mark.once("models of the family train under each in tests/models")
@pytest.mark.parametrize("encoder,task", STARTS)
def test_an_encoder_is_fine_tuned(encoder, task, started, tmp_path):
    """Imported with its vocabulary, it is what a script starts from."""
    (found, start), (script, write) = started(encoder), SCRIPTS[task]
    options = dict(output=tmp_path / "run", start_from=start, epochs=2)
    script.train(*write(tmp_path), **options, warmup_steps=1, peak_learning_rate=1e-9)
    model, tokenizer = load_with_tokenizer(tmp_path / "run", "encoder")
    if encoder not in (write_roberta, write_xlm_roberta, write_esm):
        assert tokenizer.encode(["A good FILMS"]) == [[2, 9, 5, 7, 10, 3]]
    before = found.model.encoder.blocks[0].feed_forward.hidden.kernel
    after = model.encoder.blocks[0].feed_forward.hidden.kernel
    np.testing.assert_allclose(*map(keras.ops.convert_to_numpy, (after, before)), atol=1e-5)


def test_no_answers_from_proteins(started, tmp_path):
    start = started(write_esm)[1]
    files = write_questions(tmp_path)
    with pytest.raises(ValueError, match="start.* is not a saved BERT or DeBERTa but a ESM"):
        question_answering.train(*files, output=tmp_path / "run", start_from=start)


@pytest.mark.once("files and texts: no tensor differs")
def test_a_vit_has_no_tokenizer(tmp_path):
    config = transformers.ViTConfig(
        hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=8,
        image_size=8, patch_size=4,
    )  # fmt: skip
    transformers.ViTForImageClassification(config).save_pretrained(tmp_path)
    found = load_pretrained(tmp_path)
    found.save(tmp_path / "out")
    again = keras.saving.load_model(tmp_path / "out" / "model.keras")
    assert again.config == found.model.config and found.classes == ("LABEL_0", "LABEL_1")
    with pytest.raises(ValueError, match="is not a saved encoder: it has no tokenizer.json"):
        load_with_tokenizer(tmp_path / "out", "encoder")
