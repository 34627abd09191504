"""The search for translations with a Keras model: encode, pad, search, decode."""

from __future__ import annotations

import numpy as np

from keras_transformer.backend import SEARCHES_BY_SHAPE, by_workers
from keras_transformer.config import require
from keras_transformer.decoding import IMPOSSIBLE, Phrases, uniforms
from keras_transformer.models import Transformer
from keras_transformer.running.batches import MULTIPLE, search_batches, until_end
from keras_transformer.running.inputs import Request, extended, most_tokens, padded
from keras_transformer.running.runner import Runner
from keras_transformer.running.search_functions import listed_first, translation_loop
from keras_transformer.search import Search
from keras_transformer.text import Tokenizer
from keras_transformer.text.lexical_shortlist import FILE, Shortlist
from keras_transformer.text.tokenizer import round_up
from keras_transformer.translate.engines.engine import Hypothesis

LIST_SHARES = 8, 4, 2, 1  # where each shape is compiled, a batch's list has V/8, V/4, V/2 or V ids


def search_texts(
    runner: Runner,
    model: Transformer,
    tokenizer: Tokenizer,
    request: Request,
    search: Search,
    shortlist: Shortlist | None = None,
) -> list[list[Hypothesis]]:
    """Return the hypotheses of each text, best first; an empty text gets an empty hypothesis.

    Each text gets at most `num_hypotheses` hypotheses; if that is None, at most `beam_size`.

    Args:
        runner: Runner that keeps the compiled searches.
        model: The model.
        tokenizer: Its tokenizer.
        request: The texts, prefixes, constraint and seed.
        search: Options of the search.
        shortlist: The translator's shortlist, for the option `shortlist`; None: it has none.

    Raises:
        ValueError: If the option `shortlist` is set without a shortlist or together with a
            constraint, `no_repeat_ngram_size` is set with a constraint other than `Phrases`, or the
            model gives no finite logits.
    """
    config, constraint = model.config, request.constraint
    shortlist = used_shortlist(search, shortlist)
    is_free = constraint is None or shortlist is None
    require(is_free, "constraint", constraint, "None with shortlist=True")
    ngram_size = search.no_repeat_ngram_size
    is_possible = constraint is None or isinstance(constraint, Phrases) or not ngram_size
    require(is_possible, "no_repeat_ngram_size", ngram_size, "0 with a constraint")
    full, source_ids, prefix_ids = request.encoded(tokenizer, config.max_length)
    if search.forced_first is not None:
        usual = len(tokenizer.target_frame.before)
        prefix_ids = [[*search.forced_first, *ids[usual:]] for ids in prefix_ids]
    results = [[Hypothesis("", 0.0)] for _ in request.texts]
    key, begin = (search, constraint), translation_loop(search, model, constraint)
    lengths = [len(ids) for ids in source_ids]

    def translate(batch: list[int], rows: int, length: int) -> None:
        chosen = [full[i] for i in batch]
        sources = [source_ids[i] for i in batch]
        source = padded(sources, rows, length, config.pad_id)
        prefixes = [prefix_ids[i] for i in batch]
        prefix, prefix_length = None, max(map(len, prefixes))
        if prefix_length:
            if request.prefixes is not None and SEARCHES_BY_SHAPE:
                prefix_length = round_up(prefix_length, MULTIPLE)
            prefix = padded(prefixes, rows, prefix_length, config.pad_id)
        limits = most_tokens(sources, prefixes, rows, search, config.max_length)
        numbers = first = None
        if search.temperature is not None:
            seeds = [[request.seed, i] for i in chosen]
            seeds += [[request.seed]] * (rows - len(chosen))
            longest = search.max_length or search.limit(length)
            numbers = uniforms(seeds, prefix_length + longest)
        if constraint is not None:
            first = constraint.start([request.texts[i] for i in chosen], limits[: len(chosen)])
            first = {name: extended(x, rows - len(chosen)) for name, x in first.items()}
        listed: tuple[np.ndarray, ...] = ()
        if shortlist is not None:
            shares = LIST_SHARES if SEARCHES_BY_SHAPE else ()
            lengths = [-(-tokenizer.target_vocab_size // share) for share in shares]
            listed = shortlist.tokens_of(source, *listed_first(search, config), prefix, lengths)
        arguments = [source, limits, prefix, numbers, first, *listed]
        ids, scores = runner.search(model, key, begin, arguments, varying=(0, 1, 2, 3, 5, 6))
        wanted = slice(search.num_hypotheses)
        for i, ids_KL, scores_K in zip(chosen, ids, scores, strict=False):
            results[i] = _hypotheses(ids_KL[wanted], scores_K[wanted], model, tokenizer)

    most, workers = request.tokens_per_batch, runner.workers(key)
    batches = search_batches(lengths, most, config.max_length, SEARCHES_BY_SHAPE, workers)
    by_workers(lambda batch: translate(*batch), [*batches], workers)
    return results


def used_shortlist(search: Search, shortlist: Shortlist | None) -> Shortlist | None:
    """Return a translator's shortlist if the search uses it, else None.

    Raises:
        ValueError: If the option `shortlist` is set, but there is no shortlist.
    """
    if not search.shortlist:
        return None
    accepted = f"False: the folder has no {FILE}; `keras-transformer shortlist` makes one"
    if shortlist is None:
        raise ValueError(f"shortlist must be {accepted}, got True")
    return shortlist


def _hypotheses(
    ids_KL: np.ndarray, scores_K: np.ndarray, model: Transformer, tokenizer: Tokenizer
) -> list[Hypothesis]:
    """Decode the best beams of a text; beams that were never filled are left out."""
    real_K = scores_K > IMPOSSIBLE / 2
    if not real_K.any():
        raise ValueError("model must give finite logits, got none: are weights NaN?")
    ends = *model.config.eos_ids, model.config.pad_id
    texts = tokenizer.decode_target([until_end(ids, ends) for ids in ids_KL[real_K].tolist()])
    scores = map(float, scores_K[real_K])
    return [Hypothesis(text, score) for text, score in zip(texts, scores, strict=True)]
