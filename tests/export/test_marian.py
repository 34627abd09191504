"""An export for Marian: its files, and the same translations by Marian itself."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

from keras_transformer import load_pretrained
from keras_transformer.config import TransformerConfig
from keras_transformer.export import marian
from keras_transformer.hub.marian.marian_options import read_pieces
from keras_transformer.hub.marian.outgoing import OURS, restored
from keras_transformer.models import Transformer
from keras_transformer.text import SentencePieceTokenizer
from keras_transformer.text.lexical_shortlist import Shortlist
from keras_transformer.translate.translator import Translator
from keras_transformer.weights import weights_of
from tests.export.translators import ENGLISH, MADE_UP
from tests.hub.marian.models import DATA, SOURCES, facts, needs_marian

pytestmark = pytest.mark.once("weights are arrays, whatever runs here")

LEGACY = dict(positions="sinusoidal_tensor2tensor", zeros=True)
KINDS = {
    "post-norm": dict(decoder_d_ff=16),
    "pre-norm": dict(norm_first=True, activation="gelu"),
    "untied": dict(tie_output=False, activation="silu"),
    "two vocabularies": dict(share_embeddings=False, positions="learned"),
    "legacy": LEGACY,
    "legacy, untied": dict(tie_output=False, **LEGACY),
    "legacy, SSRU": dict(decoder_recurrence="ssru", norm_embeddings=True, **LEGACY),
    "legacy, SSRU, pre-norm": dict(decoder_recurrence="ssru", norm_first=True, **LEGACY),
}


TEXTS = ENGLISH[::10]


def translator(kind, randomize):
    """Return a random translator of a kind."""
    changes = dict(KINDS[kind])
    zeros, shared = changes.pop("zeros", False), changes.get("share_embeddings", True)
    # Random weights would write bytes that are line ends.
    options = dict(vocab_size=96, byte_fallback=False, shared=shared)
    tokenizer = SentencePieceTokenizer.train(ENGLISH, MADE_UP, **options)
    sizes = dict(d_model=64, d_ff=64, num_heads=2, num_encoder_layers=2, num_decoder_layers=2)
    sizes |= dict(source_vocab_size=tokenizer.source_vocab_size, max_length=64)
    sizes |= dict(target_vocab_size=tokenizer.target_vocab_size)
    model = randomize(Transformer(TransformerConfig(**sizes | changes)), 3.0)
    if zeros:
        table = model.get_layer("target_embedding").tokens.embeddings
        kept = np.arange(table.shape[0]) != model.config.bos_id
        table.assign(table * kept[:, None].astype("float32"))
    return Translator(model, tokenizer, "en", "xx")


def decode(out, *options, texts=TEXTS):
    """Return Marian's translations."""
    command = [sys.executable, "-m", "pymarian", "decode", "-c", str(out / "decoder.yml")]
    command += ["--cpu-threads", "1", "--quiet", *options]
    text = "".join(f"{x}\n" for x in texts)
    run = subprocess.run(command, input=text, capture_output=True, text=True, check=True)
    return run.stdout.split("\n")[:-1]


def check_same(ours, theirs):
    """Check that translations are the same, up to the length at which each program stops."""
    assert len(ours) == len(theirs) and len({*ours}) > 2
    for a, b in zip(ours, theirs, strict=True):
        shorter = min(len(a), len(b))
        assert a == b or (shorter > 20 and a[:shorter] == b[:shorter])


@pytest.mark.parametrize("kind", KINDS)
def test_files(kind, randomize, tmp_path):
    made = translator(kind, randomize)
    made.save(tmp_path / "saved")
    assert marian(tmp_path / "saved", tmp_path / "out") == tmp_path / "out"
    lines = (tmp_path / "out" / "decoder.yml").read_text().splitlines()
    options = {x: json.loads(y) for x, y in (line.split(": ", 1) for line in lines)}
    assert options["models"] == ["model.npz"] and options["relative-paths"] is True
    assert (options["beam-size"], options["normalize"]) == (4, 0.6)
    assert options.get("mini-batch") == (None if "legacy" in kind else 1)
    for side, name in zip(("source", "target"), options["vocabs"], strict=True):
        content = (tmp_path / "out" / name).read_bytes()
        assert content == getattr(made.tokenizer, f"{side}_model")
    with np.load(tmp_path / "out" / "model.npz", allow_pickle=False) as file:
        config, weights = restored(file)
    assert config == made.model.config
    for path, value in weights_of(made.model).items():
        np.testing.assert_array_equal(weights[path].view("int32"), value.view("int32"))
    again = load_pretrained(tmp_path / "out")
    assert (again.source_language, again.target_language) == ("en", "xx")
    assert again.translate(TEXTS) == made.translate(TEXTS)
    shutil.rmtree(tmp_path / "out" / "keras_transformer")
    with pytest.raises(ValueError, match=r"model.npz needs the folder .*keras_transformer"):
        load_pretrained(tmp_path / "out" / "model.npz")


def test_wrong_facts_in_an_export(randomize, tmp_path):
    translator("legacy", randomize).save(tmp_path / "saved")
    path = marian(tmp_path / "saved", tmp_path / "out") / "model.npz"
    with np.load(path) as file:
        arrays = dict(file)
    for change, message in (
        ({"search": {"beam_size": 0}}, "beam_size must be a whole number of at least 1, got 0"),
        ({"search": {"beams": 4}}, "search.* must be an object with options of"),
        ({"search": [4]}, "search.* must be an object with options of"),
        ({"config": {}}, ""),
    ):
        facts = json.loads(bytes(arrays[OURS]).rstrip(b"\0")) | change
        wrong = {OURS: np.frombuffer(json.dumps(facts).encode(), "int8")}
        np.savez(path, **arrays | wrong)
        with pytest.raises(ValueError, match=rf"model.npz is damaged: .*{message}"):
            load_pretrained(path)


@needs_marian
@pytest.mark.parametrize("kind", KINDS)
def test_translations_are_ours(kind, randomize, tmp_path):
    made = translator(kind, randomize)
    made.save(tmp_path / "saved")
    marian(tmp_path / "saved", tmp_path / "out")
    check_same(made.translate(TEXTS, beam_size=1), decode(tmp_path / "out", "-b", "1"))


@pytest.fixture
def listed(randomize):
    """A translator with a shortlist."""
    made = translator("pre-norm", randomize)
    made.shortlist = Shortlist.train(made.tokenizer, ENGLISH, MADE_UP, per_piece=4, frequent=5)
    return made


@pytest.mark.once("reads what it writes")
@pytest.mark.parametrize("used", [True, False])
def test_a_shortlist_is_named_if_the_search_uses_it(used, listed, tmp_path):
    listed.search["shortlist"] = used
    listed.save(tmp_path / "saved")
    out = marian(tmp_path / "saved", tmp_path / "out")
    lines = (out / "decoder.yml").read_text().splitlines()
    assert [x for x in lines if "shortlist" in x] == [
        f'{"" if used else "# "}shortlist: ["shortlist.bin", false]'
    ]
    again = load_pretrained(out)
    assert again.options({}).shortlist is used
    for options in ({}, {"shortlist": True}):
        assert again.translate(TEXTS, **options) == listed.translate(TEXTS, **options)
    assert listed.translate(TEXTS, shortlist=False) != listed.translate(TEXTS, shortlist=True)


@needs_marian
@pytest.mark.parametrize("used", [True, False])
def test_a_shortlist(used, listed, tmp_path):
    listed.search["shortlist"] = used
    listed.save(tmp_path / "saved")
    out = marian(tmp_path / "saved", tmp_path / "out")
    check_same(listed.translate(TEXTS, beam_size=1), decode(out, "-b", "1"))


@pytest.mark.parametrize("name", ["ssru", "swish", "untied"])
def test_an_imported_model_goes_back(name, tmp_path):
    load_pretrained(DATA / f"{name}.npz", "en", "de").save(tmp_path / "saved")
    out = marian(tmp_path / "saved", tmp_path / "out")
    text = (out / "decoder.yml").read_text()
    assert "allow-unk: false" in text and "max-length-factor: 3" in text
    names = ["source.yml", "target.yml"] if name == "untied" else ["vocab.spm"]
    for side, file in zip(("en", "de"), names, strict=False):  # as they were
        expected = DATA / (f"{side}.yml" if name == "untied" else "joint.spm")
        if name != "untied":
            assert (out / file).read_bytes() == expected.read_bytes()
        else:
            pieces = list(json.loads((out / file).read_text("utf-8")))
            assert pieces[:-1] == list(read_pieces(expected))
    with np.load(DATA / f"{name}.npz") as first, np.load(out / "model.npz") as second:
        for x in set(first) & set(second) - {"special:model.yml"}:
            rows = tuple(map(slice, first[x].shape))  # with the rows of padding, Marian's are more
            np.testing.assert_array_equal(first[x], second[x][rows])
    assert load_pretrained(out).translate(SOURCES[:9], beam_size=1) == [
        text.strip() for text in facts(name)[0][:9]
    ]


@needs_marian
@pytest.mark.parametrize("name", ["ssru", "swish", "untied"])
def test_an_imported_model_goes_back_to_the_same_translations(name, tmp_path):
    load_pretrained(DATA / f"{name}.npz", "en", "de").save(tmp_path / "saved")
    out = marian(tmp_path / "saved", tmp_path / "out")
    theirs = decode(out, "-b", "1", "--normalize", "0", "--mini-batch", "1", texts=SOURCES)
    assert theirs == facts(name)[0]


@needs_marian
@pytest.mark.parametrize("kind", ["pre-norm", "legacy"])
def test_eight_bits(kind, randomize, tmp_path):
    made = translator(kind, randomize)
    made.save(tmp_path / "saved")
    out = marian(tmp_path / "saved", tmp_path / "out", quantization="intgemm8")
    ours, theirs = made.translate(TEXTS, beam_size=1), decode(out, "-b", "1")
    same = [a[:10] == b[:10] for a, b in zip(ours, theirs, strict=True)]
    assert np.mean(same) > 0.5


def test_lists_of_pieces(pretrained_folder, tmp_path):
    pretrained_folder("marian", tmp_path, ENGLISH, MADE_UP)
    made = load_pretrained(tmp_path)
    made.save(tmp_path / "saved")
    out = marian(tmp_path / "saved", tmp_path / "out")
    pieces = json.loads((out / "source.yml").read_text("utf-8"))
    assert list(pieces) == made.tokenizer.pieces_of("source")
    assert (out / "source.spm").read_bytes() == made.tokenizer.source_model


def test_bad_input(randomize, pretrained_folder, tmp_path):
    with pytest.raises(ValueError, match="quantization must be one of .*, got 'int4'"):
        marian(tmp_path, tmp_path / "out", quantization="int4")
    with pytest.raises(ValueError, match="is not a saved translator"):
        marian(tmp_path, tmp_path / "out")
    for family, message in (("t5", "config must be TransformerConfig"), ("m2m_100", "first tok")):
        folder = tmp_path / family
        folder.mkdir()
        pretrained_folder(family, folder, ENGLISH, MADE_UP)
        languages = ("en", "fr") if family == "m2m_100" else (None, None)
        load_pretrained(folder, *languages).save(tmp_path / "saved")
        with pytest.raises(ValueError, match=message):
            marian(tmp_path / "saved", tmp_path / "out")
    assert not (tmp_path / "out").exists()
