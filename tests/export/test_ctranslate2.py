"""An export for CTranslate2 translates like the Translator."""

import dataclasses
import sys

import ctranslate2 as peer
import keras
import pytest

from keras_transformer import load_pretrained
from keras_transformer.config import TransformerConfig
from keras_transformer.export import ctranslate2
from keras_transformer.models import Transformer
from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.translate.translator import Translator

ENGLISH = ["The old man sees the dog.", "A dog sleeps here.", "I see 3 dogs, don't I?"] * 20
GERMAN = ["Der alte Mann sieht den Hund.", "Ein Hund schläft hier.", "Ich sehe 3 Hunde."] * 20
TEXTS = [*ENGLISH[:3], "犬 dog", "dog ½"]
FAMILIES = {  # languages
    "marian": (None, None),
    "m2m_100": ("en", "fr"),
    "nllb": ("eng_Latn", "deu_Latn"),
    "mbart": ("en_XX", "fr_XX"),
    "t5": ("en", "de"),
    "umt5": ("en", "de"),
    "madlad": (None, "de"),
}
OWN = {
    "post_norm": {},
    "pre_norm": dict(norm_first=True, activation="gelu"),
    "untied": dict(tie_output=False, norm_first=True),
    "separate": dict(share_embeddings=False, positions="learned"),
    "unequal": dict(num_decoder_heads=4, decoder_d_ff=40, norm_first=True),
    "unpositioned": dict(positions="none", norm_first=True),
}

if keras.backend.backend() != "torch":  # weights are arrays, whatever runs here
    FAMILIES, OWN = {"t5": FAMILIES["t5"]}, {"pre_norm": OWN["pre_norm"]}


def translated(out, translator):
    """Return CTranslate2's greedy translations, by our tokenizer."""
    tokenizer = translator.tokenizer
    source, target = (tokenizer.pieces_of(side) for side in ("source", "target"))
    ids = {piece: i for i, piece in enumerate(target)}
    model = peer.Translator(str(out), compute_type="float32")
    found = []
    first = [target[i] for i in tokenizer.target_frame.before]
    for row in tokenizer.encode_source(TEXTS):
        # Where the last of our tokens is a forced end, a token less: it has to be found here.
        most = len(row) + 10 - translator.options({}).forced_eos
        result = model.translate_batch(
            [[source[i] for i in row]], beam_size=1, max_decoding_length=most,
            target_prefix=[first] if first else None,
        )  # fmt: skip
        found += tokenizer.decode_target([[ids[x] for x in result[0].hypotheses[0]]])
    return found


def check(folder, out, languages=(None, None)):
    translator = Translator.load(folder, None, *languages)
    ctranslate2(folder, out)
    found = translator.translate(TEXTS, beam_size=1, max_extra_length=10)
    assert translated(out, translator) == found
    assert len(set(found)) > 1


@pytest.mark.parametrize("kind", OWN)
def test_our_own(kind, randomize, tmp_path):
    shared = OWN[kind].get("share_embeddings", True)
    tokenizer = SentencePieceTokenizer.train(ENGLISH, GERMAN, vocab_size=360, shared=shared)
    sizes = dict(
        source_vocab_size=tokenizer.source_vocab_size, d_model=16, d_ff=24, num_heads=2,
        target_vocab_size=tokenizer.target_vocab_size, num_encoder_layers=2, num_decoder_layers=2,
        max_length=64,
    )  # fmt: skip
    model = randomize(Transformer(TransformerConfig(**sizes | OWN[kind])), scale=2.0)
    Translator(model, tokenizer, "en", "de").save(tmp_path / "saved")
    check(tmp_path / "saved", tmp_path / "out")
    processor_files = sorted(path.name for path in (tmp_path / "out").glob("*.spm"))
    assert processor_files == ["source.spm", "target.spm"]


@pytest.mark.parametrize("kind", FAMILIES)
def test_imported(kind, pretrained_folder, tmp_path):
    folder = tmp_path / "theirs"
    folder.mkdir()
    pretrained_folder(kind, folder, ENGLISH, GERMAN)
    load_pretrained(folder).save(tmp_path / "saved")
    check(tmp_path / "saved", tmp_path / "out", FAMILIES[kind])


def test_quantized(pretrained_folder, tmp_path):
    pretrained_folder("marian", tmp_path, ENGLISH, GERMAN)
    load_pretrained(tmp_path).save(tmp_path / "saved")
    sizes = {}
    for quantization in (None, "int8"):
        out = ctranslate2(
            tmp_path / "saved", tmp_path / "out", quantization=quantization, overwrite=True
        )
        sizes[quantization] = (out / "model.bin").stat().st_size
    assert sizes["int8"] < sizes[None]
    with pytest.raises(FileExistsError, match="out exists: choose another"):
        ctranslate2(tmp_path / "saved", tmp_path / "out")


def test_bad_input(tmp_path, monkeypatch, randomize):
    with pytest.raises(ValueError, match="quantization must be one of .*, got 'int4'"):
        ctranslate2(tmp_path, tmp_path / "out", quantization="int4")
    with pytest.raises(ValueError, match="is not a saved translator"):
        ctranslate2(tmp_path, tmp_path / "out")
    tokenizer = SentencePieceTokenizer.train(ENGLISH, GERMAN, vocab_size=360)
    size = tokenizer.source_vocab_size
    config = TransformerConfig(source_vocab_size=size, target_vocab_size=size, d_model=8, d_ff=8,
                               num_heads=2, num_encoder_layers=1, num_decoder_layers=1)  # fmt: skip
    Translator(randomize(Transformer(config)), tokenizer).save(tmp_path / "saved")
    several = Transformer(dataclasses.replace(config, eos_id=(3, 7)))
    Translator(randomize(several), tokenizer).save(tmp_path / "several")
    with pytest.raises(ValueError, match=r"eos_id must be one id .*, got \(3, 7\)"):
        ctranslate2(tmp_path / "several", tmp_path / "out")
    monkeypatch.setitem(sys.modules, "ctranslate2.specs", None)
    with pytest.raises(ImportError, match=r'extra "ctranslate2": pip install "ctranslate2>'):
        ctranslate2(tmp_path / "saved", tmp_path / "out")
    assert not (tmp_path / "out").exists()
