"""Limits of subtitles."""

import pytest

from keras_transformer.speech.cue_limits import Cue, CueLimits

pytestmark = pytest.mark.once("texts: no tensor")


def test_rate():
    cue = Cue(1.0, 2.0, ["abcde", "fghij"])
    assert CueLimits(rate=10).is_met_by(cue) and not CueLimits(rate=9.9).is_met_by(cue)


@pytest.mark.parametrize("name,value", [("characters", 0), ("lines", 0), ("rate", 0)])
def test_bad_limits(name, value):
    with pytest.raises(ValueError, match=f"{name} must be .*, got 0"):
        CueLimits(**{name: value})
