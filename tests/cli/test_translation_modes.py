"""Modes of `translate`, and its options that exclude or need each other."""

import inspect
from types import SimpleNamespace

import pytest

from keras_transformer.cli.translate import translate
from keras_transformer.cli.translation_modes import CONFLICTS, MODES, refuse_conflicts

pytestmark = pytest.mark.once("errors before any computation")
SAMPLES = dict(mbr=2, mbr_source="samples")
TERMS = dict(glossary="t.tsv", inline_terms=True)


def asked(**options):
    """The options as the command has them: those of the search only if they are given"""
    plain = {x.name: x.default for x in inspect.signature(translate).parameters.values()}
    search = {name: x for name, x in options.items() if plain[name] is None}
    return SimpleNamespace(**{"is_corpus": False, "search": search} | plain | options)


def corpus(**options):
    values = asked(**options)
    values.is_corpus = True
    return values


@pytest.mark.parametrize(
    "options, message",
    [
        (dict(mbr=2, rerank=2), "--rerank must be left out with --mbr, got 2"),
        (dict(mbr=2, beam_size=4), "--beam-size must be left out with --mbr, which names the numb"),
        (dict(rerank=2, num_hypotheses=4), "--num-hypotheses must be .* --rerank, which names"),
        (dict(mbr_metric="m"), "--mbr-metric must be left out without --mbr, got 'm'"),
        (dict(rerank_weight=["a=1"]), "--rerank-weight must be left out without --rerank, got "),
        (SAMPLES | dict(length_penalty=1.0), "--length-penalty must be .* --mbr-source samples"),
        (SAMPLES | dict(glossary="a"), "--glossary must be left out with --mbr-source samples"),
        (dict(mbr=2, top_k=3), "--top-k must be left out without --sample or --mbr-source samples"),
        (dict(seed=0), "--seed must be left out without --sample or --mbr-source samples, got 0"),
        (dict(temperature=0), "--temperature must be left out without --sample or --mbr-source"),
        (
            dict(prefix="a", prefix_file="b"),
            "--prefix must be left out with --prefix-file, got 'a'",
        ),
        (dict(alignments=True, ensemble=["a"]), "--alignments must be left out with --ensemble"),
        (dict(inline_terms=True), "--inline-terms must be left out without --glossary, got True"),
        (TERMS | dict(rerank=2, rerank_reverse="r"), "--rerank-reverse must be .* --inline-terms"),
        (TERMS | dict(alignments=True), "--alignments must be left out with --inline-terms"),
        (dict(sample=True, mbr=2), "--mbr must be left out with --sample, got 2"),
        (dict(sample=True, rerank=2), "--rerank must be left out with --sample, got 2"),
    ],
)
def test_what_does_not_go_together(options, message):
    with pytest.raises(ValueError, match=message):
        refuse_conflicts(asked(**options))


@pytest.mark.parametrize("name", ["beam_size", "num_hypotheses", "glossary", "shortlist"])
def test_samples_refuse_options_of_other_searches(name):
    message = f"--{name.replace('_', '-')} must be left out with --sample, got 3"
    with pytest.raises(ValueError, match=message):
        refuse_conflicts(asked(sample=True, **{name: 3}))


@pytest.mark.parametrize(
    "name", ["sample", "mbr", "rerank", "num_hypotheses", "alignments", "prefix", "prefix_file"]
)
def test_context_refuses_other_modes(name):
    message = f"--{name.replace('_', '-')} must be left out with --context-sentences, got 2"
    with pytest.raises(ValueError, match=message):
        refuse_conflicts(asked(context_sentences=1, **{name: 2}))


def test_what_goes_together():
    for options in (
        {},
        SAMPLES | dict(temperature=0.5, strict=True, seed=1, prefix="a"),
        dict(rerank=2, rerank_weight=["reverse=1"], length_penalty=1.0),
        dict(sample=True, top_p=0.5, seed=1, prefix="a"),
        TERMS | dict(context_sentences=1, shortlist=True),
    ):
        refuse_conflicts(asked(**options))


def test_a_job_over_a_corpus_has_no_other_mode():
    refuse_conflicts(corpus(num_hypotheses=2, beam_size=3, seed=0, temperature=0.0))
    for name in (*MODES, "seed", "top_k", "glossary", "alignments", "prefix", "chunk_size"):
        if name != "num_hypotheses":
            message = f"--{name.replace('_', '-')} must be left out if --output is a folder, got 2"
            with pytest.raises(ValueError, match=message):
                refuse_conflicts(corpus(**{name: 2}))


def test_a_document_has_no_other_mode():
    document = dict(inputs=["a.MD"], output="b.md")
    refuse_conflicts(asked(**document, beam_size=2))
    for name in ("glossary", "num_hypotheses", "sample"):
        message = f"--{name.replace('_', '-')} must be left out for a document, got 2"
        with pytest.raises(ValueError, match=message):
            refuse_conflicts(asked(**document, **{name: 2}))


def test_each_name_of_the_table_is_an_option():
    names = {name for _, _, refused in CONFLICTS for name in refused} | {*MODES}
    assert names <= {*inspect.signature(translate).parameters}
