"""An export for CTranslate2 translates like the Translator."""

import dataclasses
import sys

import keras
import pytest

from keras_transformer import load_pretrained
from keras_transformer.config import TransformerConfig
from keras_transformer.export import ctranslate2
from keras_transformer.models import Transformer
from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.translate.translator import Translator
from tests.export.conversions import ENGLISH, GERMAN, OWN, greedy_texts, own_translator

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
KINDS = [*OWN]

if keras.backend.backend() != "torch":  # weights are arrays, whatever runs here
    FAMILIES, KINDS = {"t5": FAMILIES["t5"]}, ["pre_norm"]


def translated(out, translator):
    """Return CTranslate2's greedy translations, by our tokenizer."""
    # Where the last of our tokens is a forced end, a token less: it has to be generated here.
    more = 10 - translator.options({}).forced_eos
    return greedy_texts(out, translator.tokenizer, TEXTS, lambda row: len(row) + more)


def check(folder, out, languages=(None, None)):
    translator = Translator.load(folder, None, *languages)
    ctranslate2(folder, out)
    texts = translator.translate(TEXTS, beam_size=1, max_extra_length=10)
    assert translated(out, translator) == texts
    assert len(set(texts)) > 1


@pytest.mark.parametrize("kind", KINDS)
def test_our_own(kind, randomize, tmp_path):
    own_translator(OWN[kind], randomize).save(tmp_path / "saved")
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
    recurrent = Transformer(dataclasses.replace(config, decoder_recurrence="ssru"))
    Translator(randomize(recurrent), tokenizer).save(tmp_path / "recurrent")
    with pytest.raises(ValueError, match="decoder_recurrence must be None for CTranslate2.*'ssru'"):
        ctranslate2(tmp_path / "recurrent", tmp_path / "out")
    monkeypatch.setitem(sys.modules, "ctranslate2.specs", None)
    with pytest.raises(ImportError, match=r'extra "ctranslate2": pip install "ctranslate2>'):
        ctranslate2(tmp_path / "saved", tmp_path / "out")
    assert not (tmp_path / "out").exists()
