"""MaskFiller: imported encoders against `transformers`; texts without a mask, or with two."""

import pytest
import torch
import transformers

from keras_transformer import MaskFiller, load_pretrained
from keras_transformer.text.text_tokenizer import TextTokenizer

PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] good bad film the a ##s".split()
RESIDUES = "<cls> <pad> <eos> <unk> L A G V E I P . - <mask>".split()
SMALL = dict(
    hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24,
    max_position_embeddings=14, initializer_range=0.5,
)  # fmt: skip


@pytest.fixture(scope="module", params=["bert", "esm"])
def filler(request, tmp_path_factory):
    """The imported encoder, the one of `transformers`, and texts."""
    source, folder = (tmp_path_factory.mktemp(name) for name in ("source", "imported"))
    torch.manual_seed(0)
    if request.param == "bert":
        pieces, texts = PIECES, ["a [MASK] film", "the bad films the good [MASK]", "[MASK]"]
        config = transformers.BertConfig(vocab_size=len(pieces), **SMALL)
        theirs = transformers.BertForMaskedLM(config)
    else:
        pieces, texts = RESIDUES, ["LA<mask>V", "GGVV<mask>LAE"]
        ids = dict(pad_token_id=1, mask_token_id=13, position_embedding_type="rotary")
        config = transformers.EsmConfig(vocab_size=14, token_dropout=True, **ids, **SMALL)
        theirs = transformers.EsmForMaskedLM(config)
    theirs.eval().save_pretrained(source)
    (source / "vocab.txt").write_text("\n".join(pieces))
    load_pretrained(source).save(folder)
    return MaskFiller.load(folder), theirs, texts, pieces


def test_parity(filler):
    ours, theirs, texts, pieces = filler
    found = ours.fill(texts, 4)
    for text, candidates in zip(texts, found, strict=True):
        (ids,) = ours.tokenizer.encode([text])
        with torch.no_grad():
            logits = theirs(input_ids=torch.tensor([ids])).logits[0]
        odds = logits[ids.index(pieces.index(ours.mask))].softmax(-1)
        best = odds.topk(4)
        assert [x.probability for x in candidates] == pytest.approx(best[0].tolist(), abs=1e-4)
        assert [x.token for x in candidates] == [pieces[i] for i in best[1].tolist()]


def test_a_folder_and_back(filler, tmp_path):
    ours, _, texts, _ = filler
    ours.save(tmp_path)
    again = MaskFiller.load(tmp_path).fill(texts, 1)
    for (one,), (other,) in zip(again, ours.fill(texts, 1), strict=True):
        assert one.token == other.token
        assert one.probability == pytest.approx(other.probability, abs=1e-5)


def test_bad_input(filler):
    ours, _, texts, _ = filler
    mask = ours.mask
    for text, count in (("a", 0), (f"{mask} a {mask}", 2)):
        with pytest.raises(ValueError, match=f"texts must have one .*, got {count} in "):
            ours.fill([text])
    with pytest.raises(ValueError, match="top_k must be a whole number of at least 1, got 0"):
        ours.fill(texts, 0)
    with (
        pytest.warns(UserWarning, match="it is cut"),
        pytest.raises(ValueError, match="must have one"),
    ):
        ours.fill(["a " * 40 + mask])
    without = TextTokenizer.train(["a b"], "characters")
    with pytest.raises(ValueError, match="the tokenizer's mask token must be one of"):
        MaskFiller(ours.model, without)
