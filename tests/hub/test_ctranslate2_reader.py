"""Models that CTranslate2 has converted are read as ours, with the weights that were converted."""

import functools
import json

import ctranslate2 as peer
import keras
import numpy as np
import pytest

from keras_transformer import load_pretrained
from keras_transformer.config import TransformerConfig
from keras_transformer.export import ctranslate2
from keras_transformer.hub.ctranslate2_reader import NEVER, is_converted
from keras_transformer.hub.ctranslate2_writer import specification
from keras_transformer.models import Transformer
from keras_transformer.translate.translator import Translator
from keras_transformer.weights import weights_of
from tests.export.conversions import ENGLISH, GERMAN, OWN, greedy_texts, own_translator

TEXTS = [*ENGLISH[:3], "dog ½"]
PAIR = ["source.spm", "target.spm"]
SENTENCEPIECE = ["sentencepiece.bpe.model", "tokenizer_config.json"]
FAMILIES = {  # languages, and the files to copy beside the converted model
    "marian": ((None, None), PAIR),
    "bart": ((None, None), ["vocab.json", "merges.txt", "tokenizer_config.json"]),
    "nllb": (("eng_Latn", "deu_Latn"), SENTENCEPIECE),
    "mbart": (("en_XX", "fr_XX"), SENTENCEPIECE),
    "t5": ((None, None), ["spiece.model", "tokenizer_config.json"]),
    "madlad": ((None, "de"), ["spiece.model", "tokenizer_config.json"]),
}
EXPORTED = {
    "m2m_100": ("en", "fr"),
    "nllb": ("eng_Latn", "deu_Latn"),
    "mbart": ("en_XX", "fr_XX"),
    "mbart25": ("en_XX", "de_DE"),
    "umt5": (None, None),
    "madlad": (None, "de"),
}

# A model without positions comes back with learned positions, which are 0.
KINDS = [kind for kind in OWN if kind != "unpositioned"]

if keras.backend.backend() != "torch":  # weights are arrays, whatever runs here
    FAMILIES = {name: FAMILIES[name] for name in ("marian", "t5")}
    KINDS, EXPORTED = ["pre_norm"], {}


def converted(folder, out, files=(), quantization=None):
    """Let CTranslate2 convert a folder in Hugging Face's layout.

    Its converter (4.8.5) reads fields that configs of `transformers` 5 do not have.
    """
    path = folder / "config.json"
    config = original = json.loads(path.read_text())
    if config["model_type"] in ("bart", "mbart"):
        is_mbart = config["model_type"] == "mbart"
        name = "MBart50Tokenizer" if is_mbart else "BartTokenizer"
        config = config | dict(normalize_before=is_mbart, tokenizer_class=name)
    path.write_text(json.dumps(config))
    converter = peer.converters.TransformersConverter(str(folder), copy_files=[*files])
    converter.convert(str(out), quantization=quantization)
    path.write_text(json.dumps(original))
    return out


def check_weights(actual, expected, bound=lambda value: 0.0):
    """Check weights against those of the original.

    Its positions may begin later. A bias of logits is 0, or keeps pieces from being generated.
    """
    actual, expected = weights_of(actual), weights_of(expected)
    for weights in (actual, expected):
        assert {*weights.pop("output_bias/bias", np.zeros(1))} <= {0, NEVER}
    assert actual.keys() == expected.keys()
    for path, value in expected.items():
        value = value[-len(actual[path]) :] if "positions" in path else value
        difference = np.abs(actual[path] - value)
        assert (difference <= bound(value) + 1e-6).all(), (path, difference.max())


def translations(translator):
    """Return translations without the search options of a folder, which a converted one lacks."""
    languages = translator.source_language, translator.target_language
    translator = Translator(translator.model, translator.tokenizer, *languages)
    return translator.translate(TEXTS, beam_size=1, max_extra_length=10)


@pytest.fixture(scope="module")
def originals(pretrained_folder, tmp_path_factory):
    """`originals(kind)`: a folder in Hugging Face's layout, and our object for it."""

    @functools.cache
    def make(kind):
        folder = tmp_path_factory.mktemp(kind)
        pretrained_folder(kind, folder, ENGLISH, GERMAN)
        if kind == "bart":  # as many pieces as the model, which the converter needs
            sizes = [len(json.loads((folder / "vocab.json").read_text()))]
            sizes += [json.loads((folder / "config.json").read_text())["vocab_size"]]
            more = {f"<more_{i}>": i for i in range(*sizes)}
            (folder / "added_tokens.json").write_text(json.dumps(more))
        return folder, load_pretrained(folder, *FAMILIES[kind][0])

    return make


@pytest.mark.parametrize("kind", FAMILIES)
def test_families(kind, originals, tmp_path):
    (theirs, expected), (languages, files) = originals(kind), FAMILIES[kind]
    out = converted(theirs, tmp_path / "out", files)
    assert is_converted(out) and not is_converted(theirs)
    if kind == "nllb":  # with `transformers` 5, the converter writes no names of languages
        pieces = [x.replace("<unused_", "madeup<") for x in expected.tokenizer.pieces_of("source")]
        (out / "shared_vocabulary.json").write_text(json.dumps(pieces))
    actual = load_pretrained(out, *languages)
    check_weights(actual.model, expected.model)
    assert translations(actual) == translations(expected)
    if kind == "marian":
        narrow = load_pretrained(out, precision="int8")
        again = load_pretrained(theirs, precision="int8")
        assert translations(narrow) == translations(again)


BOUNDS = {  # largest change of a weight by rounding
    "float16": lambda value: 2.0**-11 * np.abs(value),
    "bfloat16": lambda value: 2.0**-8 * np.abs(value),
    "int8": lambda value: np.abs(value).max() / 254,
    "int8_float16": lambda value: np.abs(value).max() / 254 + 2.0**-11 * np.abs(value),
    "int16": lambda value: np.abs(value).max() / 2048,
}


@pytest.mark.parametrize("quantization", BOUNDS)
def test_quantized(quantization, originals, tmp_path):
    theirs, expected = originals("marian")
    out = converted(theirs, tmp_path / "out", PAIR, quantization)
    actual = load_pretrained(out)
    check_weights(actual.model, expected.model, BOUNDS[quantization])
    # CTranslate2 computes with the same weights in float32. Our last token is EOS.
    expected = greedy_texts(out, actual.tokenizer, TEXTS, lambda row: len(row) + 9)
    assert translations(actual) == expected


@pytest.mark.parametrize("kind", KINDS)
def test_our_own(kind, randomize, tmp_path):
    translator = own_translator(OWN[kind], randomize)
    model, tokenizer = translator.model, translator.tokenizer
    translator.save(tmp_path / "saved")
    out = ctranslate2(tmp_path / "saved", tmp_path / "out")
    actual = load_pretrained(out, "en", "de")
    check_weights(actual.model, model)
    assert actual.tokenizer.fingerprint() == tokenizer.fingerprint()
    assert translations(actual) == translations(translator)
    if kind == "pre_norm":
        out = ctranslate2(tmp_path / "saved", tmp_path / "small", quantization="int8_float32")
        check_weights(load_pretrained(out).model, model, BOUNDS["int8"])
        actual.save(tmp_path / "again")
        assert translations(Translator.load(tmp_path / "again")) == translations(translator)


@pytest.mark.parametrize("kind", EXPORTED)
def test_exported(kind, pretrained_folder, tmp_path):
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    pretrained_folder(kind, theirs, ENGLISH, GERMAN)
    expected = load_pretrained(theirs, *EXPORTED[kind])
    expected.save(tmp_path / "saved")
    out = ctranslate2(tmp_path / "saved", tmp_path / "out")
    actual = load_pretrained(out, *EXPORTED[kind])
    check_weights(actual.model, expected.model)
    assert translations(actual) == translations(expected)


def test_whisper(whisper_folder, rng, tmp_path):
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    whisper_folder(theirs)
    files = ["vocab.json", "merges.txt", "added_tokens.json"]
    sounds = [0.1 * rng.standard_normal(n).astype("float32") for n in (3000, 3840)]
    expected = load_pretrained(theirs)
    for quantization, bound in dict(float32=lambda x: 0.0, **BOUNDS).items():
        out = converted(theirs, tmp_path / quantization, files, quantization)
        actual = load_pretrained(out)
        check_weights(actual.model, expected.model, bound)
        assert actual.hearing == expected.hearing
        if quantization == "float32":
            options = dict(language="en", max_new_tokens=8)
            assert actual.transcribe(sounds, **options) == expected.transcribe(sounds, **options)


@pytest.fixture
def whisper(whisper_folder, tmp_path):
    """A converted Whisper that a test may damage."""
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    whisper_folder(theirs)
    return converted(theirs, tmp_path / "out", ["vocab.json", "merges.txt", "added_tokens.json"])


def changed(path, **fields):
    path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def test_damaged_folders(whisper, tmp_path):
    def refused(problem, error=ValueError, **options):
        with pytest.raises(error, match=problem):
            load_pretrained(whisper, **options)

    refused("source_language must be None: .* is a Whisper, got 'en'", source_language="en")
    config, vocabulary = whisper / "config.json", whisper / "vocabulary.json"
    original = config.read_text()
    changed(config, quantization_type=1)
    refused("quantization_type in .*config.json must be absent, got 1")
    changed(config, quantization_type=1, model_type="whisper")
    assert not is_converted(whisper)
    config.write_text(original)
    changed(config, suppress_ids=["a"])
    refused("suppressed must be a tuple of token ids")
    config.write_text("[]")
    assert not is_converted(whisper)
    config.write_text(original)
    pieces = json.loads(vocabulary.read_text())
    vocabulary.write_text(json.dumps(pieces[1:]))
    refused(f"the size of the target vocabulary in .* must be {len(pieces)}, as in model.bin")
    vocabulary.write_text(json.dumps(pieces[1::-1] + pieces[2:]))
    refused("the tokenizer files in .* do not belong to the model: piece 0 is")
    vocabulary.write_text(json.dumps({"a": 1}))
    refused("the content of .*vocabulary.json must be a list of pieces")
    (whisper / "vocabulary.txt").write_bytes("\n".join(pieces).encode() + b"\n")
    vocabulary.unlink()
    assert load_pretrained(whisper).tokenizer.vocab_size == len(pieces)
    (whisper / "vocabulary.txt").write_bytes(b"\xff\n")
    refused("vocabulary.txt is not UTF-8")
    (whisper / "vocabulary.txt").unlink()
    refused("has no vocabulary.json or vocabulary.txt", FileNotFoundError)


def test_unsupported_files(whisper):
    content = (whisper / "model.bin").read_bytes()

    def refused(old, new, problem):
        (whisper / "model.bin").write_bytes(content.replace(old, new))
        with pytest.raises(ValueError, match=problem):
            load_pretrained(whisper)

    refused(
        b"WhisperSpec", b"WhisperSpek", "the specification in .* must be one of .*'WhisperSpek'"
    )
    revision = b"WhisperSpec\0" + bytes([3])
    refused(revision, revision[:-1] + b"\4", "the revision of .* must be 3; convert .*, got 4")
    refused(
        b"decoder/pre_norm", b"decoder/pro_norm", "decoder/pro_norm in .* must be absent, got 1"
    )
    refused(b"fn/linear_0/bias", b"fn/linear_x/bias", "lacks encoder/layer_0/ffn/linear_0/bias")
    name = b"encoder/position_encodings/encodings"
    refused(name, name[:-1] + b"x", "cannot be read: .* lacks encoder/position_encodings/encodings")


def test_a_variable_without_a_place(randomize, tokenizer, tmp_path):
    """A variable that no supported model has is not ignored."""
    size = tokenizer.source_vocab_size
    sizes = dict(d_model=8, d_ff=8, num_heads=2, num_encoder_layers=1, num_decoder_layers=1)
    model = randomize(Transformer(TransformerConfig(size, size, **sizes, max_length=20)))
    spec = specification(
        model.config, weights_of(model), *(tokenizer.pieces_of("target") for _ in range(2))
    )
    keys = dict(relative_position_keys=np.ones((3, 4), "float32"))
    vars(spec.encoder.layer[0].self_attention).update(keys)
    spec.validate()
    spec.save(str(tmp_path))
    for side in ("source", "target"):
        (tmp_path / f"{side}.spm").write_bytes(tokenizer.source_model)
    names = "encoder/layer_0/self_attention/relative_position_keys"
    with pytest.raises(ValueError, match=f"has variables that the model lacks: {names}"):
        load_pretrained(tmp_path)
