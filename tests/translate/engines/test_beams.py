"""Where our beam search ends, found from what CTranslate2 shows: against our rules in Python."""

import itertools

import numpy as np
import pytest

from keras_transformer.decoding.rules import length_penalty_factor
from keras_transformer.search import SCORINGS, Search
from keras_transformer.translate.engines.beams import Beam, BeamEnd, penalty

pytestmark = pytest.mark.once("Python alone: no tensor")
END, TOKENS = 0, 5


class Model:
    """Log-probabilities that depend on all tokens so far, by way of their hash."""

    def __init__(self, seed, end):
        self.seed, self.end, self.known = seed, end, {}

    def __call__(self, ids):
        if ids not in self.known:
            logits = np.random.default_rng([self.seed, *ids]).normal(0, 1.5, TOKENS)
            logits[END] += self.end
            self.known[ids] = (logits - np.log(np.exp(logits).sum())).tolist()
        return self.known[ids]


def steps(model, beam_size, length):
    """Yield what each step of a beam search finishes, and the beams that it keeps."""
    beams = [((), 0.0)]
    for _ in range(length):
        extended = [
            ((*ids, token), total + log)
            for ids, total in beams
            for token, log in enumerate(model(ids))
        ]
        extended.sort(key=lambda x: -x[1])
        ended = [x for x in extended[:beam_size] if x[0][-1] == END]
        shown = extended[:beam_size]
        beams = [x for x in extended if x[0][-1] != END][:beam_size]
        yield ended, beams, shown


def ours(model, search, limit):
    """Our beam search, as `decoding.beam` describes it."""
    found, wanted = [], search.num_hypotheses or search.beam_size
    free = search.scoring == "transformers"

    def best():
        scored = [(total / penalty(len(ids), search), ids) for ids, total in found]
        return sorted(scored, key=lambda x: -x[0])[: search.beam_size]

    last = limit - search.forced_eos
    for t, (ended, beams, _) in enumerate(steps(model, search.beam_size, last), 1):
        found += ended
        scores = [x for x, _ in best()]
        alive = beams[0][1]
        is_full = len(scores) == search.beam_size
        if t == limit:
            break
        if is_full and search.early_stopping:
            return best()[:wanted]
        if is_full and scores[-1 if free else 0] >= alive / penalty(t, search):
            return best()[:wanted]
        if len(scores) >= wanted and scores[wanted - 1] >= alive / penalty(limit, search):
            return best()[:wanted]
    if not search.forced_eos:
        found += beams
        return best()[:wanted]
    found += [((*x, END), total + (0.0 if free else model(x)[END])) for x, total in beams]
    return best()[:wanted]


def shown(model, beam_size, length):
    """Hypotheses and beams that CTranslate2 returns of a search up to a length."""
    found = []
    for t, (ended, _, best) in enumerate(steps(model, beam_size, length), 1):
        found += [Beam(ids, total, True) for ids, total in ended]
        if t == length:
            found += [Beam(ids, total, False) for ids, total in best if ids[-1] != END]
    return found


def theirs(model, search, limit, length):
    end, looks = BeamEnd(search, limit, length), []
    while not (end.found or end.hidden):
        assert 1 <= end.next <= limit - search.forced_eos and end.next not in looks
        looks.append(end.next)
        beams = shown(model, search.beam_size, end.next)
        free = search.scoring == "transformers"
        if not search.forced_eos:
            end.add(beams, [x for x in beams if not x.ended and end.next == limit])
            continue
        forced = [
            Beam((*x.ids, END), x.total + (0.0 if free else model(x.ids)[END]), True)
            for x in beams
            if not x.ended and end.next == limit - 1
        ]
        end.add(beams, forced)
    return end, looks


@pytest.mark.parametrize("options", [{}, dict(early_stopping=True), dict(forced_eos=False)])
@pytest.mark.parametrize("scoring", ["wu", "transformers"])
@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 2.0])
def test_the_same_hypotheses_as_our_search(scoring, length_penalty, options):
    hidden, several = 0, 0
    seeds = range(6 if options else 25)
    for seed, limit, length in itertools.product(seeds, (2, 5, 14), (1, 4, 8)):
        for beam_size, wanted in ((2, 1), (3, 3), (4, 2)):
            search = Search(beam_size, length_penalty, wanted, scoring, **options)
            model = Model(seed, end=(seed % 3) - 1.5)
            end, looks = theirs(model, search, limit, length)
            several += len(looks) > 1
            if end.hidden:
                hidden += 1
                continue
            found = [(x.total / penalty(len(x.ids), search), x.ids) for x in end.found]
            expected = ours(model, search, limit)
            assert [ids for _, ids in found] == [ids for _, ids in expected]
            assert [x for x, _ in found] == pytest.approx([x for x, _ in expected])
    assert several > 2 * len(seeds)  # of 27 cases each
    assert options or 0 < hidden < 12 * len(seeds)


@pytest.mark.parametrize("scoring", SCORINGS)
def test_scores_have_the_length_penalty_of_our_search(scoring):
    search = Search(length_penalty=0.6, scoring=scoring)
    assert penalty(7, search) == length_penalty_factor(7, 0.6, scoring)


def test_a_beam_that_is_not_shown_is_not_guessed():
    # One of the two best ends at the last free length. The beam that takes its place is not shown,
    # and may end better than the one that is shown.
    ended = Beam((1, END), -1.0, True)
    for total, hidden in ((-0.5, True), (-2.0, False)):
        end = BeamEnd(Search(2, 0.0, 1), limit=3, length=9)
        assert end.next == 2
        beam = Beam((2, 3), total, False)
        end.add([ended, beam], [Beam((2, 3, END), total - 1.0, True)])
        assert end.hidden is hidden
        assert end.found == (None if hidden else [ended])
