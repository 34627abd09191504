"""SentenceTransformer reads an exported embedder and gives its vectors."""

import dataclasses

import numpy as np
import pytest
import sentence_transformers
import tokenizers
import torch
import transformers
from sentence_transformers.base.modules import Dense, Normalize
from sentence_transformers.sentence_transformer.modules import LayerNorm, Pooling

from keras_transformer import TextEmbedder, load_pretrained
from keras_transformer.export import hugging_face
from keras_transformer.models import BERT, BERTConfig
from keras_transformer.models.sentence import Embedding
from keras_transformer.system.files import read_json
from keras_transformer.text.lowercase import lowercased
from keras_transformer.text.text_tokenizer import TextTokenizer
from tests.backends import cases
from tests.hub.sentence_folders import PROMPTS, TEXTS, write_decoder, write_source, written

# One text is longer than the maximum length.
LONG = [*TEXTS, "a good film the bad film " * 3]


@pytest.fixture(scope="module")
def own(randomize):
    """An embedder as `train --task embed` makes it."""
    tokenizer = TextTokenizer.train(TEXTS, "wordpiece", 40)
    sizes = dict(d_model=16, num_layers=2, num_heads=2, d_ff=24, max_length=12)
    config = BERTConfig(tokenizer.vocab_size, head="hidden", num_types=1, **sizes)
    return TextEmbedder(randomize(BERT(config)), tokenizer)


def exported(embedder, tmp_path):
    """The SentenceTransformer of an embedder, and our embedder of its folder."""
    embedder.save(tmp_path / "ours")
    out = hugging_face(tmp_path / "ours", tmp_path / "out")
    return sentence_transformers.SentenceTransformer(str(out), device="cpu"), load_pretrained(out)


def check(embedder, tmp_path, texts=LONG, **asked):
    """Theirs and the imported embedder give the vectors of ours; return them."""
    theirs, again = exported(embedder, tmp_path)
    with pytest.warns(UserWarning, match="it is cut"):
        expected, vectors = embedder.embed(texts, **asked), again.embed(texts, **asked)
    np.testing.assert_allclose(theirs.encode(texts, batch_size=2, **asked), expected, atol=1e-5)
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    return theirs, again


def test_our_own(own, tmp_path):
    theirs, again = check(own, tmp_path)
    assert theirs.max_seq_length == again.max_length == 12
    assert [x["path"] for x in read_json(tmp_path / "out" / "modules.json")] == [
        "", "1_Pooling", "2_Normalize",
    ]  # fmt: skip
    assert theirs.similarity_fn_name == "cosine"


MODULES = {
    "in_order": [lambda: Pooling(16, ("cls", "mean")), lambda: Dense(32, 8), Normalize],
    "all": [
        lambda: Pooling(16, ("weightedmean", "cls", "max")),
        lambda: Dense(48, 8, bias=False, activation_function=torch.nn.GELU(), use_residual=True),
        lambda: LayerNorm(8),
        lambda: Dense(8, 8, activation_function=None, use_residual=True),
        Normalize,
    ],
}


@pytest.mark.parametrize("name", cases(MODULES, "all"))
def test_there_and_back(name, tmp_path):
    source = write_source(tmp_path / "source")
    options = dict(prompts=PROMPTS, default_prompt_name="query")
    written(source, tmp_path / "theirs", MODULES[name], {"max_seq_length": 8}, **options)
    theirs, again = check(load_pretrained(tmp_path / "theirs"), tmp_path, prompt_name="document")
    before = sentence_transformers.SentenceTransformer(str(tmp_path / "theirs"), device="cpu")
    expected = before.encode(LONG)
    np.testing.assert_allclose(theirs.encode(LONG), expected, atol=1e-5)
    with pytest.warns(UserWarning, match="it is cut"):
        np.testing.assert_allclose(again.embed(LONG), expected, atol=1e-5)
    assert theirs.prompts == PROMPTS and theirs.default_prompt_name == "query"
    assert [type(x) for x in theirs] == [type(x) for x in before]


@pytest.mark.once("decoders and files are tested under each backend")
def test_a_decoder(tmp_path):
    source = write_decoder(tmp_path / "source", "Qwen3")
    modules = [lambda: Pooling(16, "lasttoken"), Normalize]
    written(source, tmp_path / "theirs", modules, prompts=PROMPTS)
    check(load_pretrained(tmp_path / "theirs"), tmp_path, [*LONG[:-1], "a film " * 40])


@pytest.mark.once("files")
def test_settings(own, tmp_path):
    """Truncated vectors, a prompt that does not count, another similarity, lower case."""
    tokenizer = TextTokenizer.train(TEXTS, "wordpiece", 40, lowercase=False)
    config = dataclasses.replace(own.model.config, vocab_size=tokenizer.vocab_size)
    model, tokenizer = BERT(config), lowercased(tokenizer)
    settings = Embedding(prompts=PROMPTS, include_prompt=False, similarity="dot", max_length=9)
    theirs, _ = check(
        TextEmbedder(model, tokenizer, "cls", settings), tmp_path / "dot", prompt_name="query"
    )
    assert theirs.similarity_fn_name == "dot" and theirs.max_seq_length == 9
    embedder = TextEmbedder(own.model, own.tokenizer, embedding=Embedding(dimension=5))
    theirs, again = exported(embedder, tmp_path / "cut")
    for scaled in (False, True):
        expected = embedder.embed(TEXTS, normalize=scaled)
        vectors = theirs.encode(TEXTS, normalize_embeddings=scaled)
        np.testing.assert_allclose(vectors, expected, atol=1e-5)
        np.testing.assert_allclose(again.embed(TEXTS, normalize=scaled), expected, atol=1e-5)
    assert theirs.truncate_dim == again.dimension == 5


@pytest.mark.once("files")
def test_what_the_form_cannot_hold(own, tmp_path):
    config = own.model.config
    for changes, message in (
        (dict(window=2), "cannot be written as a Hugging Face checkpoint. .*window must be None"),
        (dict(pad_id=7), "pad_id must be the id of a special token, got .7, .d."),
    ):
        model = BERT(dataclasses.replace(config, **changes))
        folder = tmp_path / next(iter(changes))
        TextEmbedder(model, own.tokenizer).save(folder)
        with pytest.raises(ValueError, match=message):
            hugging_face(folder, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.once("the encoder of a T5 is tested under each backend")
def test_the_encoder_of_a_t5(own, tmp_path):
    pieces = [("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0), ("▁", -9.0)]
    pieces += [(f"▁{x}", -2.0) for x in "a good bad film films the".split()]
    tokenizer = tokenizers.Tokenizer(tokenizers.models.Unigram(pieces, unk_id=2))
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Metaspace()
    tokenizer.add_special_tokens(["<pad>", "</s>", "<unk>"])
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="$A </s>", special_tokens=[("</s>", 1)]
    )
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>")
    fast.save_pretrained(tmp_path / "source")
    config = transformers.T5Config(
        vocab_size=len(pieces), d_model=16, d_kv=8, d_ff=24, num_layers=2, num_heads=2,
        decoder_start_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    transformers.T5EncoderModel(config).save_pretrained(tmp_path / "source")
    written(tmp_path / "source", tmp_path / "theirs", [lambda: Pooling(16), lambda: Dense(16, 8)])
    embedder = load_pretrained(tmp_path / "theirs")
    theirs, again = exported(embedder, tmp_path)
    expected = embedder.embed(TEXTS)
    np.testing.assert_allclose(theirs.encode(TEXTS), expected, atol=1e-5)
    np.testing.assert_allclose(again.embed(TEXTS), expected, atol=1e-5)
