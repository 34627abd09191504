"""MaskFiller: imported encoders against `transformers`; texts without a mask, or with two."""

import pytest
import sentencepiece
import tokenizers
import torch
import transformers

from keras_transformer import MaskFiller, load_pretrained
from keras_transformer.models import BERT, BERTConfig
from keras_transformer.text.text_tokenizer import TextTokenizer
from tests.backends import EVERY_CASE, cases
from tests.text.test_encodings import folder_of

PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] good bad film the a ##s".split()
RESIDUES = "<cls> <pad> <eos> <unk> L A G V E I P . - <mask>".split()
SMALL = dict(
    hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24,
    max_position_embeddings=34, initializer_range=0.5,
)  # fmt: skip


def write_pieces(folder, kind):
    """The files of a tokenizer; return its pieces in the order of their ids, and texts."""
    if kind == "esm":
        (folder / "vocab.txt").write_text("\n".join(RESIDUES))
        return RESIDUES, ["LA<mask>V", "GGVV<mask>LAE"]
    if kind == "roberta":
        tokenizer = tokenizers.ByteLevelBPETokenizer()
        special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
        tokenizer.train_from_iterator(["a good film"], show_progress=False, special_tokens=special)
        tokenizer.save_model(str(folder))
        ids = tokenizer.get_vocab()
        return sorted(ids, key=ids.get), ["a<mask> film", "<mask> a good film"]
    texts = ["a [MASK] film", "the bad films the good [MASK]", "[MASK]"]
    if kind == "deberta":
        special = dict(pad="[PAD]", bos="[CLS]", eos="[SEP]", unk="[UNK]")
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts), model_prefix=str(folder / "spm"), vocab_size=40,
            minloglevel=2, hard_vocab_limit=False,
            **{f"{name}_id": i for i, name in enumerate(special)},
            **{f"{name}_piece": piece for name, piece in special.items()},
        )  # fmt: skip
        model = sentencepiece.SentencePieceProcessor(model_file=str(folder / "spm.model"))
        return [*map(model.id_to_piece, range(len(model))), "[MASK]"], texts
    (folder / "vocab.txt").write_text("\n".join(PIECES))
    TextTokenizer.read(folder).save(folder)  # an ALBERT has a tokenizer.json
    return PIECES, texts


ESM = dict(pad_token_id=1, mask_token_id=13, position_embedding_type="rotary", token_dropout=True)
DEBERTA = dict(
    relative_attention=True, pos_att_type="p2c|c2p", share_att_key=True, position_buckets=4,
    norm_rel_ebd="layer_norm", position_biased_input=False,
)  # fmt: skip
KINDS = {  # names of classes, and options
    "bert": ("Bert", "ForMaskedLM", {}),
    "esm": ("Esm", "ForMaskedLM", ESM),
    "bert-pretraining": ("Bert", "ForPreTraining", {}),
    "albert": ("Albert", "ForPreTraining", dict(embedding_size=8)),
    "roberta": ("Roberta", "ForMaskedLM", dict(type_vocab_size=1)),
    "deberta": ("DebertaV2", "ForMaskedLM", DEBERTA),
}


@pytest.fixture(scope="module", params=cases(KINDS, "bert"))
def filler(request, tmp_path_factory):
    """The imported encoder, the one of `transformers`, texts and pieces."""
    source, folder = (tmp_path_factory.mktemp(name) for name in ("source", "imported"))
    torch.manual_seed(0)
    name, end, options = KINDS[request.param]
    pieces, texts = write_pieces(source, request.param)
    config = getattr(transformers, f"{name}Config")(vocab_size=len(pieces), **SMALL, **options)
    theirs = getattr(transformers, name + end)(config)
    theirs.eval().save_pretrained(source)
    load_pretrained(source).save(folder)
    return MaskFiller.load(folder), theirs, texts, pieces


def test_parity(filler):
    ours, theirs, texts, pieces = filler
    found = ours.fill(texts, 4)
    for text, candidates in zip(texts, found, strict=True):
        (ids,) = ours.tokenizer.encode([text], special=(ours.mask,))
        with torch.no_grad():
            logits = theirs(input_ids=torch.tensor([ids]))[0][0]
        odds = logits[ids.index(pieces.index(ours.mask))].softmax(-1)
        best = odds.topk(4)
        assert [x.probability for x in candidates] == pytest.approx(best[0].tolist(), abs=1e-4)
        spelled = ours.tokenizer.decode([[i] for i in best[1].tolist()])
        named = [x.strip() or pieces[i] for x, i in zip(spelled, best[1].tolist(), strict=True)]
        assert [x.token for x in candidates] == named


def test_a_folder_and_back(filler, tmp_path):
    ours, _, texts, _ = filler
    ours.save(tmp_path)
    again = MaskFiller.load(tmp_path).fill(texts, 1)
    for (one,), (other,) in zip(again, ours.fill(texts, 1), strict=True):
        assert one.token == other.token
        assert one.probability == pytest.approx(other.probability, abs=1e-5)


@pytest.mark.skipif(not EVERY_CASE, reason="elsewhere another compilation")
def test_low_precision(filler, tmp_path):
    ours, _, texts, pieces = filler
    ours.save(tmp_path)
    again = MaskFiller.load(tmp_path, precision="int8")
    for one, other in zip(*(x.fill(texts, len(pieces)) for x in (ours, again)), strict=True):
        found, expected = ([(x.token, x.probability) for x in own] for own in (one, other))
        assert dict(sorted(found)) == pytest.approx(dict(sorted(expected)), abs=0.1)


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


@pytest.mark.once("names of candidates: no tensor")
def test_candidates_of_one_text_have_other_names(tmp_path):
    folder_of("roberta", tmp_path / "tokenizer")
    tokenizer = TextTokenizer.read(tmp_path / "tokenizer").with_special_tokens(["<mask>"])
    sizes = dict(d_model=8, num_layers=1, num_heads=2, head="masked_lm")
    filler = MaskFiller(BERT(BERTConfig(tokenizer.vocab_size, **sizes)), tokenizer)
    (candidates,) = filler.fill(["in <mask>"], tokenizer.vocab_size)
    names = [x.token for x in candidates]
    assert len(names) == len(set(names)) == tokenizer.vocab_size
    assert any(f"Ġ{name}" in names for name in names)
