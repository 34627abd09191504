"""A run of speech synthesis, from clips to a folder, with a judge."""

import pytest

from keras_transformer import Synthesizer
from keras_transformer.evaluation.assess import read_metrics
from keras_transformer.training import speech_recognition, speech_synthesis
from tests.backends import BACKEND
from tests.training.senses import write_clips


@pytest.mark.skipif(BACKEND != "torch", reason="the models and the loops have their own tests")
def test_synthesis(rng, tmp_path, capsys):
    write_clips(tmp_path / "fsdd", rng)
    options = dict(data_folder=tmp_path, epochs=1, batch_size=2, d_model=8, num_layers=1)
    speech_recognition.train(**options, output=tmp_path / "judge")
    judge = tmp_path / "judge"
    speech_synthesis.train(**options, output=tmp_path / "run", recognizer=judge)
    scores = read_metrics(tmp_path / "run")["test"]
    assert scores.keys() == {"real", "griffin_lim", "synthesized"}
    assert all(0 <= x <= 1 for x in scores.values())
    assert "synthesized: " in capsys.readouterr().out
    assert Synthesizer.load(tmp_path / "run").speakers == ("ann", "bob")
    with pytest.raises(ValueError, match="batch_size must be .* from 1 to 3, .*, got 9"):
        speech_synthesis.train(**options | dict(batch_size=9), output=tmp_path / "other")
