"""Policies on drafts made by hand."""

import pytest

from keras_transformer.translate.live import AlignAtt, LocalAgreement, WaitK, policy_named
from keras_transformer.translate.live.policies import Draft

pytestmark = pytest.mark.once("lists: no tensor")


def made(text, distances=()):
    return Draft(text.split(), lambda: list(distances))


def test_wait_k():
    """Ma et al. 2019, equation 3: g(t) = min(k + t - 1, |x|)."""
    policy, drafts = WaitK(3), [made("a b c d e")]
    assert [policy.stable(drafts, read) for read in range(1, 6)] == [0, 0, 1, 2, 3]
    assert not policy.may_write(2, 0) and policy.may_write(3, 0) and not policy.may_write(3, 1)


def test_align_att():
    """Papi et al. 2023: a word that attends to one of the last f tokens ends the writing."""
    drafts = [made("a b c d", [3, 2, 1, 4])]
    assert [AlignAtt(f).stable(drafts, 9) for f in (1, 2, 3, 4)] == [4, 2, 1, 0]


def test_local_agreement():
    drafts = [made("a b c"), made("a b d e"), made("a b d")]
    assert LocalAgreement(2).stable(drafts[:1], 1) == 0
    assert LocalAgreement(2).stable(drafts[1:], 1) == 3
    assert LocalAgreement(3).stable(drafts[1:], 1) == 0
    assert LocalAgreement(3).stable(drafts, 1) == 2
    assert LocalAgreement(3).num_drafts == 3


def test_names():
    assert policy_named("wait-k", 5) == WaitK(5)
    assert policy_named("align-att") == AlignAtt()
    assert policy_named("local-agreement", 3) == LocalAgreement(3)
    with pytest.raises(ValueError, match=r"policy must be one of \['wait-k', .*, got 'fast'"):
        policy_named("fast")


@pytest.mark.parametrize("kind,name,least", [(WaitK, "k", 1), (AlignAtt, "f", 1)])
def test_bad_numbers(kind, name, least):
    with pytest.raises(ValueError, match=f"{name} must be .*at least {least}, got 0"):
        kind(0)


def test_an_agreement_needs_two():
    with pytest.raises(ValueError, match="n must be .*at least 2, got 1"):
        LocalAgreement(1)
