"""The input format of a speech model: plain values, ranges, and what a Whisper folder says."""

import dataclasses
import json
from types import SimpleNamespace

import numpy as np
import pytest
from transformers import WhisperFeatureExtractor

from keras_transformer.data.audio import log_mel
from keras_transformer.models import SpeechConfig
from keras_transformer.speech.hearing import (
    Hearing,
    check_feature_extractor,
    feature_table,
    hearing_of,
    hearing_of_converted,
    time_ids,
)
from keras_transformer.text.text_tokenizer import TextTokenizer

pytestmark = pytest.mark.once("files and plain values")

# No value is the default.
VALUES = dict(
    sample_rate=8000, pads_clips=False, is_multilingual=False, suppressed=(3, 5),
    suppressed_first=(7,), alignment_heads=((1, 0), (2, 5)),
)  # fmt: skip


@pytest.fixture(scope="module")
def tokenizer():
    return TextTokenizer.train(["abc"], "characters")


def test_there_and_back_by_json():
    hearing = Hearing(**VALUES)
    assert Hearing.of(json.loads(json.dumps(dataclasses.asdict(hearing)))) == hearing


@pytest.mark.parametrize("name", VALUES)
def test_each_field_must_be_there_and_of_its_type(name):
    others = {x: y for x, y in VALUES.items() if x != name}
    if name == "alignment_heads":  # later than the others
        assert Hearing.of(others) == Hearing(**others)
    else:
        with pytest.raises(ValueError, match=f"hearing must be an object with the fields .*{name}"):
            Hearing.of(others)
    for wrong in ("x", 1.5, None, [1.5], ["a"]):
        with pytest.raises(ValueError, match=f"^{name} must be "):
            Hearing.of(VALUES | {name: wrong})


@pytest.mark.parametrize("facts", [None, [], VALUES | {"more": 1}])
def test_what_is_no_object_with_these_fields(facts):
    with pytest.raises(ValueError, match="^hearing must be an object with the fields"):
        Hearing.of(facts)


@pytest.mark.parametrize(
    "wrong",
    [dict(sample_rate=0), dict(suppressed=[1]), dict(pads_clips=1), dict(alignment_heads=((1,),))],
)
def test_values_out_of_range(wrong):
    (name,) = wrong
    with pytest.raises(ValueError, match=f"^{name} must be .*, got "):
        Hearing(**wrong)


PLAIN = SimpleNamespace(vocab_size=50, eos_ids=(2,))


def test_the_facts_of_a_folder(tokenizer, tmp_path):
    assert hearing_of(tmp_path, tokenizer, PLAIN) == Hearing(is_multilingual=False)
    facts = dict(is_multilingual=True, suppress_tokens=[4, 5], begin_suppress_tokens=[6])
    facts["alignment_heads"] = [[3, 1], [4, 2]]
    path = tmp_path / "generation_config.json"
    path.write_text(json.dumps(facts))
    expected = Hearing(suppressed=(4, 5), suppressed_first=(6,), alignment_heads=((3, 1), (4, 2)))
    assert hearing_of(tmp_path, tokenizer, PLAIN) == expected
    path.write_text(
        json.dumps(facts | dict(suppress_tokens=None, is_multilingual=False, alignment_heads=None))
    )
    expected = Hearing(is_multilingual=False, suppressed_first=(6,))
    assert hearing_of(tmp_path, tokenizer, PLAIN) == expected


def test_a_model_of_many_languages_has_tokens_of_tasks(whisper_folder, tmp_path):
    whisper_folder(tmp_path)
    (tmp_path / "generation_config.json").unlink()
    hearing = hearing_of(tmp_path, TextTokenizer.read(tmp_path), PLAIN)
    assert hearing.is_multilingual and hearing.pads_clips and hearing.sample_rate == 16_000


def test_the_language_that_the_authors_chose(whisper_folder, tmp_path):
    whisper_folder(tmp_path)
    tokenizer, path = TextTokenizer.read(tmp_path), tmp_path / "generation_config.json"
    german, english, task, other, last = (
        tokenizer.id_of(f"<|{x}|>") for x in ("de", "en", "transcribe", "translate", "notimestamps")
    )

    def language(**facts):
        path.write_text(json.dumps(facts))
        return hearing_of(tmp_path, tokenizer, PLAIN).language

    # As in openai/whisper-tiny, its fine-tuned relatives and its English one.
    assert language(forced_decoder_ids=[[1, None], [2, task]]) is None
    assert language(forced_decoder_ids=[[1, german], [2, task], [3, last]]) == "de"
    assert language(forced_decoder_ids=[[1, last]]) is None
    assert language(language="<|de|>", forced_decoder_ids=[[1, english]]) == "de"
    assert language(language="de", task="transcribe") == "de"
    assert language(language="de", is_multilingual=False) is None
    with pytest.raises(ValueError, match="^forced_decoder_ids in .* pass another `task`"):
        language(forced_decoder_ids=[[1, german], [2, other]])
    with pytest.raises(ValueError, match='^language in .* must be the code of a language, .*"en"'):
        language(language="klingon")


CONFIG = SpeechConfig(
    vocab_size=9, num_mels=80, d_model=8, d_ff=8, num_heads=2, num_encoder_layers=1,
    num_decoder_layers=1, max_frames=100, max_length=4,
)  # fmt: skip
USUAL = WhisperFeatureExtractor(chunk_length=1)
# Values that `WhisperFeatureExtractor` takes, of fields that change the features.
UNUSUAL = dict(
    feature_size=128, sampling_rate=8000, hop_length=80, n_fft=512, chunk_length=2,
    padding_value=0.5, padding_side="left", dither=0.1,
)  # fmt: skip


def features(extractor):
    sound = np.random.default_rng(0).normal(size=9000).astype("float32")
    return extractor(sound, sampling_rate=extractor.sampling_rate).input_features[0]


def test_every_field_of_a_feature_extractor_is_in_a_column(tmp_path):
    """Each field of the class of `transformers`: harmless, or refused by name."""
    table, path = feature_table(CONFIG), tmp_path / "preprocessor_config.json"
    assert vars(USUAL).keys() - {"_processor_class"} <= {*table.harmless, *table.refused}
    assert USUAL.to_dict().keys() <= {*table.harmless, *table.refused}
    assert UNUSUAL.keys() == table.refused.keys()
    USUAL.save_pretrained(tmp_path)
    check_feature_extractor(tmp_path, CONFIG)
    whole = json.loads(path.read_text())
    for name, value in UNUSUAL.items():
        path.write_text(json.dumps(whole | {name: value}))
        with pytest.raises(ValueError, match=f"^{name} in .* is {value!r}, which is not support"):
            check_feature_extractor(tmp_path, CONFIG)
    harmless = dict(
        return_attention_mask=True, do_normalize=True, n_samples=3, nb_max_frames=4,
        mel_filters=[[1.0]], processor_class="X",
    )  # fmt: skip
    path.write_text(json.dumps(whole | harmless))
    check_feature_extractor(tmp_path, CONFIG)
    expected = features(USUAL)
    found = features(WhisperFeatureExtractor.from_pretrained(tmp_path))
    np.testing.assert_array_equal(found, expected)
    sound = np.zeros(16_000, "float32")
    sound[:9000] = np.random.default_rng(0).normal(size=9000)
    np.testing.assert_allclose(log_mel(sound, num_mels=80).T, expected, atol=1e-4)


def test_an_older_folder_has_the_suppressed_tokens_in_its_config(tokenizer, tmp_path):
    facts = dict(suppress_tokens=[4, 5], begin_suppress_tokens=[6, 2], vocab_size=50)
    (tmp_path / "config.json").write_text(json.dumps(facts))
    hearing = hearing_of(tmp_path, tokenizer, PLAIN)
    assert (hearing.suppressed, hearing.suppressed_first) == ((4, 5), (6, 2))


def test_times():
    texts = SimpleNamespace(pieces=lambda: {"<|0.00|>": 5, "<|12.40|>": 6, "<|en|>": 7, "1.0": 8})
    assert time_ids(Hearing(), texts) == {5, 6}
    assert time_ids(Hearing(pads_clips=False), texts) == set()


def test_a_whisper_of_ctranslate2():
    tokenizer = TextTokenizer.train(["a"], "bytes", 257).with_special_tokens(["<|transcribe|>"])
    facts = dict(suppress_ids=[-1, 3, 99], suppress_ids_begin=[5], alignment_heads=[[1, 0]])
    config = SimpleNamespace(vocab_size=50)
    expected = Hearing(suppressed=(3,), suppressed_first=(5,), alignment_heads=((1, 0),))
    assert hearing_of_converted(facts, tokenizer, config) == expected
    assert hearing_of_converted({}, tokenizer, config) == Hearing()
    config = SimpleNamespace(vocab_size=51_864)  # of the English models
    assert not hearing_of_converted({}, tokenizer, config).is_multilingual
    with pytest.raises(ValueError, match="alignment_heads must be a tuple of pairs"):
        hearing_of_converted(dict(alignment_heads=[1]), tokenizer, config)
