"""The options of a search: checked in one place, and offered by everything that searches."""

import dataclasses
import inspect
import re

import pytest

from keras_transformer import CausalLM, Transcriber, Translator, export
from keras_transformer.cli.convert import export as export_command
from keras_transformer.cli.evaluate import evaluate
from keras_transformer.cli.generate import generate
from keras_transformer.cli.plot import plot_lengths, plot_reliability
from keras_transformer.cli.serve import serve
from keras_transformer.cli.speech import transcribe
from keras_transformer.cli.translate import translate
from keras_transformer.evaluation.assess import assess
from keras_transformer.search import (
    GENERATE,
    NBEST,
    SAMPLE,
    STREAM,
    TRANSCRIBE,
    TRANSLATE,
    Generation,
    Search,
    SearchOptions,
    Transcription,
    spelled_out,
    without_protection,
)
from keras_transformer.serving import Catalogue

pytestmark = pytest.mark.once(reason="no tensor is in it")

TAKERS = [
    *[(x, Search, TRANSLATE) for x in (Translator.translate, Translator.translate_stream)],
    (Translator.nbest, Search, NBEST),
    (Translator.sample, Search, SAMPLE),
    (CausalLM.generate, Generation, GENERATE),
    (CausalLM.stream, Generation, STREAM),
    (Transcriber.transcribe, Transcription, TRANSCRIBE),
    (Transcriber.transcribe_ids, Transcription, TRANSCRIBE),
    *[(x, Search, TRANSLATE) for x in (assess, export.saved_model, Catalogue.load)],
    *[(x, Search, TRANSLATE) for x in (translate, evaluate, serve)],
    *[(x, Search, TRANSLATE) for x in (export_command, plot_lengths, plot_reliability)],
    (generate, Generation, GENERATE),
    (transcribe, Transcription, TRANSCRIBE),
]


def test_options_that_differ_from_their_defaults():
    given = dict(beam_size=4, length_penalty=0.0, strict=False)
    assert Search.changed(given) == dict(length_penalty=0.0, strict=False)
    assert Generation.changed(dict(beam_size=1, temperature=None)) == {}


@pytest.mark.parametrize("taker,options,names", TAKERS, ids=lambda x: getattr(x, "__name__", ""))
def test_everything_that_searches_offers_the_options(taker, options, names):
    parameters = inspect.signature(taker).parameters
    defaults = {field.name: field.default for field in dataclasses.fields(options)}
    assert not any(x.kind is x.VAR_KEYWORD for x in parameters.values())
    is_command = taker.__module__.startswith("keras_transformer.cli")
    for name in names:
        expected = 1.0 if (taker, name) == (Translator.sample, "temperature") else defaults[name]
        # A command passes on what is given, as a folder may have options of its own.
        assert parameters[name].default == (None if is_command else expected)


def test_each_option_has_a_check_and_a_help():
    for options in (Search, Generation, Transcription):
        for field in dataclasses.fields(options):
            assert re.search(r"\.(  \[default: .+\])?$", field.metadata["help"]), field.name
            of_ids = field.metadata.get("of_model") and field.name != "forced_eos"
            text = "" if field.name == "style" else "x"
            for bad in (text, ["x"] if of_ids else [], -1 if field.name != "scoring" else 3):
                with pytest.raises(ValueError, match=field.name):
                    options(**{field.name: bad})


@pytest.mark.parametrize(
    "options,message",
    [
        (dict(beam_size=0), "beam_size must be a whole number of at least 1, got 0"),
        (dict(beam_size=2.0), "beam_size must be a whole number of at least 1, got 2.0"),
        (dict(beam_size=None), "beam_size must be a whole number"),
        (dict(length_penalty=-1), "length_penalty must be at least 0, got -1"),
        (dict(temperature=-1), "temperature must be at least 0, got -1"),
        (dict(top_p=0), r"top_p must be in \(0, 1\], got 0"),
        (dict(min_p=2), r"min_p must be in \[0, 1\], got 2"),
        (dict(repetition_penalty=0), "repetition_penalty must be above 0, got 0"),
        (dict(scoring="x"), "scoring must be one of"),
        (dict(max_length_factor=0), "max_length_factor must be a whole number of at least 1"),
        (dict(diversity_rate=1.0, beam_size=1), "diversity_rate needs beam_size above 1"),
        (dict(num_hypotheses=5), "num_hypotheses must be at most beam_size=4, got 5"),
    ],
)
def test_bad_values(options, message):
    with pytest.raises(ValueError, match=message):
        Search(**options)


def test_an_option_that_a_method_does_not_take_is_refused_by_name():
    with pytest.raises(TypeError, match="temperature is not an option here; accepted are"):
        Search.of(dict(temperature=1.0), TRANSLATE)
    assert Search.of(dict(beam_size=2), TRANSLATE, num_hypotheses=1) == Search(2, num_hypotheses=1)


def test_the_options_of_a_folder_hold_unless_the_caller_says_otherwise():
    own = dict(beam_size=5, length_penalty=2.0, max_length=20, forced_first=(7,))
    assert Search.of({}, TRANSLATE, own) == Search(**own)
    assert Search.of(dict(beam_size=2), TRANSLATE, own) == Search(**own | dict(beam_size=2))
    longer = Search.of(dict(max_extra_length=9), TRANSLATE, own)
    assert (longer.max_length, longer.max_extra_length) == (None, 9)
    marians = dict(max_length_factor=3, scoring="marian")
    assert Search.of({}, TRANSLATE, marians).limit(7) == 21
    shorter = Search.of(dict(max_extra_length=9), TRANSLATE, marians)
    assert (shorter.limit(7), shorter.scoring) == (16, "marian")
    with pytest.raises(TypeError, match="max_length_factor is not an option here"):
        Search.of(marians, TRANSLATE)
    drawn = dict(temperature=0.7, top_p=0.9)
    assert Generation.of(dict(beam_size=3), GENERATE, drawn).temperature is None
    assert Generation.of(dict(temperature=0), GENERATE, drawn).temperature is None
    assert Generation.of(dict(temperature=1.0), GENERATE, dict(beam_size=3)).beam_size == 1


def test_the_options_of_a_saved_folder_are_checked():
    saved = {"search": {"beam_size": 5, "suppress_tokens": [3, 4]}}
    assert Search.saved(saved, "f") == dict(beam_size=5, suppress_tokens=(3, 4))
    assert Search.saved({}, "f") == {}
    for facts in ([], {"max_new_tokens": 3}, {"beam_size": 0}):
        with pytest.raises(ValueError, match='"search" in f'):
            Search.saved({"search": facts}, "f")


def test_programs_that_only_search_leave_protection_out():
    with pytest.warns(UserWarning, match="protect is left out"):
        assert without_protection({"beam_size": 3, "protect": True}) == {"beam_size": 3}
    assert without_protection({"protect": False}) == without_protection({}) == {}


def test_a_new_option_is_one_field():
    @dataclasses.dataclass(frozen=True)
    class More(SearchOptions):
        patience: float = dataclasses.field(
            default=1.0, metadata=dict(check=lambda name, value: None, help="Of it.", draws=False)
        )

    @spelled_out(More, More.names())
    def command(text, **options):
        return More.of(options, More.names())

    parameter = inspect.signature(command).parameters["patience"]
    assert (parameter.default, parameter.annotation) == (1.0, float)
    assert command("", patience=2.0).patience == 2.0
