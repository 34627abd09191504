"""Drafts: translations of source prefixes that begin with given words."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from keras_transformer.config import require
from keras_transformer.models import EncoderDecoder
from keras_transformer.running.attention_weights import alignment_weights, attention_weights
from keras_transformer.running.inputs import Request
from keras_transformer.search import Search
from keras_transformer.text.arriving_text import MARKS
from keras_transformer.text.word_spans import join_words, members_of, split_words, text_words
from keras_transformer.translate.live.policies import Draft, Policy
from keras_transformer.translate.translator import Translator


def check_policy(translator: Translator, policy: Policy) -> None:
    """Raise ValueError if a policy needs attention, and the translator has none."""
    if policy.needs_attention:
        translator.require_direct()
        name, accepted = type(policy).__name__, "another for a translator without a Keras model"
        is_alone = isinstance(translator.model, EncoderDecoder)
        accepted += " that is one encoder-decoder"
        require(is_alone, "policy", name, accepted)


def draft(
    translator: Translator,
    search: Search,
    source: Sequence[str],
    written: Sequence[str],
    is_whole: bool,
) -> Draft:
    """Translate the first words of a sentence.

    Args:
        translator: The translator.
        search: Options of the search.
        source: Source words.
        written: Words that the translation begins with.
        is_whole: Whether the sentence ends after these source words. If not, punctuation that ends
            the translation is left out.

    Raises:
        ValueError: If the engine accepts no `prefixes`.
    """
    text, prefix = join_words(source), join_words(written)
    limit, tokenizer = translator.config.max_length, translator.tokenizer
    if written and len(tokenizer.encode_target([prefix])[0]) >= limit - 2:  # no room for more
        return Draft([*written], lambda: [0] * len(written))
    ((hypothesis, *_),) = translator.hypotheses(Request([text], [prefix]), search)
    translation = hypothesis.text if is_whole else hypothesis.text.rstrip(MARKS + " ")
    words = _continued(written, split_words(translation))
    return Draft(words, functools.partial(source_distances, translator, text, words))


def _continued(written: Sequence[str], words: Sequence[str]) -> list[str]:
    """Return the written words and those that follow them in a translation.

    The search may have lengthened the last written word: that is ignored, except for punctuation.
    """
    count = len(written)
    kept, new = [*written], list(words[count:])
    if count and len(words) >= count and words[count - 1].startswith(written[-1]):
        suffix = words[count - 1][len(written[-1]) :]
        kept[-1] += "" if any(map(str.isalnum, suffix)) else suffix
    return kept + new


def source_distances(translator: Translator, source: str, words: Sequence[str]) -> list[int]:
    """Return how many source tokens follow the last one that a token of each word attends to most.

    Only tokens of the text count, without tags and EOS.

    Args:
        translator: A translator with an encoder-decoder model.
        source: Source text.
        words: Words of its translation.
    """
    if not words:
        return []
    model, tokenizer, target = translator.model, translator.tokenizer, join_words(words)
    limit = model.config.max_length
    source_ids = [x[:limit] for x in tokenizer.encode_source([source])]
    target_ids = [x[:limit] for x in tokenizer.encode_target([target])]
    ((_, weights),) = attention_weights(model, source_ids, target_ids)
    guided = getattr(model.config, "guided_alignment", 0) > 0
    before, after = tokenizer.source_frame
    content = slice(len(before), len(source_ids[0]) - len(after))
    weights_TS = alignment_weights(weights["cross"], guided)[0][:, content]
    distances_T = weights_TS.shape[1] - 1 - weights_TS.argmax(axis=1)
    members_WT = members_of(text_words(target), tokenizer.spans("target", target)) > 0
    distances_T = distances_T[len(tokenizer.target_frame.before) :][: members_WT.shape[1]]
    members_WT = members_WT[:, : len(distances_T)]
    return [int(min(distances_T[row], default=0)) for row in members_WT]
