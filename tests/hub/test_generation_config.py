"""Each field of `generation_config.json` is used, changes nothing, or is refused by name."""

import json

import pytest
import transformers

from keras_transformer.hub.generation_config import (
    FIELDS,
    checked_facts,
    generation_facts,
    search_of,
    suppressed,
)
from keras_transformer.search import Generation, Search, Transcription

pytestmark = pytest.mark.once(reason="no tensor is in it")
CONFIG = dict(vocab_size=50, eos_token_id=2)
KINDS = (Search, Generation, Transcription)
# An unusual value of each field that is read, and the options of ours that follow from it.
USED = {
    "num_beams": (3, dict(beam_size=3)),
    "length_penalty": (2.0, dict(length_penalty=2.0)),
    "early_stopping": (True, dict(early_stopping=True)),
    "no_repeat_ngram_size": (3, dict(no_repeat_ngram_size=3)),
    "repetition_penalty": (1.2, dict(repetition_penalty=1.2)),
    "max_length": (20, dict(max_length=19)),
    "max_new_tokens": (20, dict(max_length=20)),
    "min_length": (5, dict(min_length=4)),
    "min_new_tokens": (5, dict(min_length=5)),
    "forced_bos_token_id": (7, dict(forced_first=(7,))),
    "forced_eos_token_id": (2, dict(forced_eos=True)),
    "suppress_tokens": ([9, 8], dict(suppress_tokens=(8, 9))),
    "begin_suppress_tokens": ([9, 2], dict(begin_suppress_tokens=(2, 9))),
    "bad_words_ids": ([[9], [2]], dict(suppress_tokens=(9,))),  # EOS is never a bad word
}
SAMPLED = dict(do_sample=True, temperature=0.6, top_k=7, top_p=0.9, min_p=0.1)
SAMPLED |= dict(epsilon_cutoff=0.02)
SAMPLING = ("typical_p", "top_h", "eta_cutoff")  # count for that alone
# Read elsewhere: token ids by `read_config`, the next two by `hearing_of`, the last by
# `load_pretrained`.
ELSEWHERE = {
    *("pad_token_id", "bos_token_id", "eos_token_id", "decoder_start_token_id"),
    *("is_multilingual", "alignment_heads", "renormalize_logits"),
}


@pytest.fixture
def options(tmp_path):
    def options(kind, config=None, **facts):
        (tmp_path / "generation_config.json").write_text(json.dumps(facts))
        return search_of(tmp_path, kind, CONFIG | (config or {}))

    return options


def fields():
    return [x for x in vars(transformers.GenerationConfig()) if not x.startswith("_")]


@pytest.mark.parametrize("name", fields())
def test_each_field_of_transformers_is_in_the_table(name, options):
    plain = options(Search)
    if name in USED:
        value, changed = USED[name]
        found = options(Search, **{name: value})
        assert Search(**found) == Search(**plain | changed) != Search(**plain)
    elif name in SAMPLED:
        found = options(Generation, **SAMPLED)
        expected = {x: y for x, y in SAMPLED.items() if x != "do_sample"}
        assert expected.items() <= found.items()
    elif name in FIELDS.refused:
        if name in SAMPLING:
            assert options(Search, **{name: "odd"}) == plain
        samples = dict(do_sample=True) if name in SAMPLING else {}
        for kind in KINDS:
            with pytest.raises(ValueError, match=rf"{name} in .*generation_config.json is 'odd'"):
                options(kind, **{name: "odd"} | samples)
    else:
        assert name in FIELDS.harmless or name in ELSEWHERE
        if name in FIELDS.harmless:
            assert options(Search, **{name: "odd"}) == plain


def test_defaults_are_those_of_transformers(options):
    """Without any fields the search is that of `generate()`, without its maximum of 20 tokens."""
    plain = dict(beam_size=1, length_penalty=1.0, scoring="transformers")
    assert options(Search) == plain | dict(forced_eos=False)
    assert options(Generation) == options(Transcription) == plain
    theirs = transformers.GenerationConfig._get_default_generation_params()
    nulls = {name: value for name, value in theirs.items() if name != "max_length"}
    assert options(Search, **nulls) == options(Search)
    assert options(Search, **dict.fromkeys(fields())) == options(Search)


def test_any_of_several_ends_may_be_forced(tmp_path):
    (tmp_path / "generation_config.json").write_text('{"forced_eos_token_id": [2, 7]}')
    assert search_of(tmp_path, Search, CONFIG | dict(eos_token_id=[2, 7])).get("forced_eos", True)


def test_lengths_count_what_they_count(options):
    found = options(Generation, max_length=20)
    assert (found["max_length"], found["max_new_tokens"]) == (20, 20)
    found = options(Generation, max_length=20, max_new_tokens=9, min_new_tokens=3)
    assert "max_length" not in found
    assert (found["max_new_tokens"], found["min_new_tokens"]) == (9, 3)
    assert options(Transcription, max_length=20)["max_new_tokens"] == 20


def test_a_forced_token_that_our_tokenizer_forces_too(tmp_path, options):
    assert options(Search, forced_bos_token_id=0)["forced_first"] == (0,)
    assert "forced_first" not in search_of(tmp_path, Search, CONFIG, (0,))
    assert "forced_first" not in search_of(tmp_path, Search, CONFIG, (), (0, 1))
    with pytest.raises(ValueError, match="forced_bos_token_id in .* must be the token of a lang"):
        search_of(tmp_path, Search, CONFIG, (), (1,))
    (tmp_path / "generation_config.json").write_text("{}")
    assert search_of(tmp_path, Search, CONFIG, (0,))["forced_first"] == ()


@pytest.mark.parametrize(
    "kind,facts,message",
    [
        (Search, dict(do_sample=True), "do_sample in .* must be false or null"),
        (Search, dict(early_stopping="never"), "early_stopping must be true, false or null"),
        (Search, dict(length_penalty=-1.0), "length_penalty must be at least 0, got -1.0"),
        (Search, dict(bad_words_ids=[[5, 6]]), "bad_words_ids must be a list of lists of one"),
        (Search, dict(suppress_tokens=[2]), "suppress_tokens in .* must be a list without EOS"),
        (Search, dict(forced_eos_token_id=3), "forced_eos_token_id in .* must be among"),
        (Generation, dict(min_length=3), "min_length in .* must be 0 or null"),
        (Generation, dict(forced_bos_token_id=3), "forced_bos_token_id in .* must be null"),
        (Generation, dict(do_sample=True, num_beams=2), "num_beams in .* must be 1 with do_sample"),
        (Transcription, dict(min_new_tokens=3), "min_new_tokens in .* must be 0 or null"),
        (Search, dict(num_beams="two"), "num_beams must be a whole number of at least 1"),
    ],
)
def test_what_our_searches_do_not_do_is_refused(kind, facts, message, options):
    with pytest.raises(ValueError, match=message):
        options(kind, **facts)


def test_an_older_folder_has_them_in_its_config(tmp_path):
    config = dict(CONFIG, model_type="bart", num_beams=4, max_length=62, bos_token_id=0, task=None)
    config |= dict(force_bos_token_to_be_generated=True, dropout=0.1, language="en")
    (tmp_path / "config.json").write_text(json.dumps(config))
    facts, path = generation_facts(tmp_path)
    assert path.name == "config.json"
    ids = dict(eos_token_id=2, bos_token_id=0, forced_bos_token_id=0)
    assert facts == dict(num_beams=4, max_length=62) | ids
    found = search_of(tmp_path, Search, config)
    assert (found["beam_size"], found["max_length"], found["forced_first"]) == (4, 61, (0,))
    (tmp_path / "generation_config.json").write_text("{}")  # takes the place of all of them
    assert search_of(tmp_path, Search, config)["beam_size"] == 1


def test_a_folder_as_of_opus_mt_needs_no_option_that_an_engine_lacks(options):
    facts = dict(bad_words_ids=[[49]], forced_eos_token_id=2, max_length=512, num_beams=6)
    facts |= dict(renormalize_logits=True, pad_token_id=49, decoder_start_token_id=49)
    found = options(Search, **facts, config=dict(model_type="marian", pad_token_id=49))
    assert found == dict(beam_size=6, length_penalty=1.0, scoring="transformers")
    facts |= dict(max_length=100, no_repeat_ngram_size=2)
    with pytest.raises(ValueError, match="^renormalize_logits in .* must be null with beams and"):
        options(Search, **facts)
    assert options(Search, **facts | dict(num_beams=1))["max_length"] == 99


def test_suppressed_tokens(tmp_path):
    facts = dict(suppress_tokens=[-1, 7, 99], bad_words_ids=[[5], [2]])
    (tmp_path / "generation_config.json").write_text(json.dumps(facts))
    assert suppressed(checked_facts(tmp_path)[0], 50, (2,)) == [5, 7]
    (tmp_path / "generation_config.json").write_text("[]")
    with pytest.raises(ValueError, match="must hold an object, got list"):
        checked_facts(tmp_path)
