"""The benchmark beside LSTMs: as many weights on both sides, times by length, what is kept."""

import pytest

from benchmarks import recurrent

pytestmark = pytest.mark.once("runs what other tests run under each backend")


def test_times_of_models_of_one_size(monkeypatch):
    made, make = [], recurrent.model_of
    monkeypatch.setattr(recurrent, "model_of", lambda *given: made.append(make(*given)) or made[-1])
    monkeypatch.setattr(recurrent, "ROUNDS", 1)
    found = recurrent.growth([3])
    one, other = (model.count_params() for model in made)
    assert one != other and abs(one - other) < 0.02 * one
    for task in ("training", "decoding"):
        ((ours, theirs),) = found[task]
        assert ours > 0 and theirs > 0


def test_what_is_measured_is_kept(tmp_path):
    path = tmp_path / "room/a.json"
    assert recurrent.kept(path, lambda: [1.5]) == [1.5]
    assert recurrent.kept(path, lambda: pytest.fail("measured again")) == [1.5]
