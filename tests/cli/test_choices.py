"""Options of `translate` that exclude or need each other."""

import pytest

from keras_transformer.cli.choices import check_choice, refuse

pytestmark = pytest.mark.once("errors before any computation")


def test_what_is_given_is_refused_by_its_flag():
    refuse("left out", one=None, two=0, three=[], four=False)
    with pytest.raises(ValueError, match="--rerank-reverse must be left out with --x, got 'a'"):
        refuse("left out with --x", mbr=None, rerank_reverse="a")


@pytest.mark.parametrize(
    "arguments, message",
    [
        ((2, "nbest", 2, {}), "--rerank must be left out with --mbr, got 2"),
        ((2, "nbest", None, {"beam_size": 4}), "--beam-size must be left out with --mbr, which"),
        ((None, "nbest", 2, {"num_hypotheses": 4}), "--num-hypotheses must be .* --rerank, which"),
        ((None, "nbest", None, {"rerank_weight": ["a=1"]}), "--rerank-weight must be .*without"),
        ((2, "samples", None, {"length_penalty": 1.0}), "--length-penalty must be .* samples"),
        ((2, "nbest", None, {"top_k": 3}), "--top-k must be left out without --sample or --mbr-s"),
        ((None, "nbest", None, {"seed": 3}), "--seed must be left out without --sample or --mbr-"),
        (
            (None, "nbest", None, {"prefix": "a", "prefix_file": "b"}),
            "--prefix must be .* --prefix-f",
        ),
    ],
)
def test_what_does_not_go_together(arguments, message):
    with pytest.raises(ValueError, match=message):
        check_choice(*arguments)


def test_what_goes_together():
    check_choice(2, "samples", None, {"temperature": 0.5, "strict": True, "glossary": None})
    check_choice(None, "nbest", 2, {"rerank_weight": ["reverse=1"], "length_penalty": 1.0})


def test_samples():
    check_choice(
        None, "nbest", None, dict(top_p=0.5, seed=1, prefix="a", beam_size=None), sample=True
    )
    for name in ("beam_size", "num_hypotheses", "glossary", "shortlist"):
        message = f"--{name.replace('_', '-')} must be left out with --sample, got 3"
        with pytest.raises(ValueError, match=message):
            check_choice(None, "nbest", None, {name: 3}, sample=True)
    for given in ((2, "samples", None), (None, "nbest", 2)):
        with pytest.raises(ValueError, match="must be left out with --sample, got 2"):
            check_choice(*given, {}, sample=True)


def test_context_and_terms():
    context = dict(context_sentences=1)
    with pytest.raises(ValueError, match="--mbr must be left out with --context-sentences, got 2"):
        check_choice(2, "nbest", None, {}, **context)
    terms = dict(inline_terms=True)
    with pytest.raises(ValueError, match="--inline-terms must be left out without --glossary"):
        check_choice(None, "nbest", None, {}, **terms)
    named = {"glossary": "t.tsv", "rerank_reverse": "r"}
    with pytest.raises(ValueError, match="--rerank-reverse must be left out with --inline-terms"):
        check_choice(None, "nbest", 2, named, **terms)
    check_choice(None, "nbest", None, {"glossary": "t.tsv"}, **context, **terms)
    with pytest.raises(ValueError, match="--alignments must be left out with --inline-terms"):
        check_choice(None, "nbest", None, {"glossary": "t.tsv", "alignments": True}, **terms)
    for name in ("alignments", "prefix", "prefix_file"):
        with pytest.raises(ValueError, match=f"{name[:6]}.* must be left out with --context-sent"):
            check_choice(None, "nbest", None, {name: "x"}, **context)
