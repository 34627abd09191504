"""Pictures of training: positions, the learning rate, a run's history."""

import numpy as np
import pytest

from keras_transformer.analysis import plots
from keras_transformer.layers import sinusoids
from keras_transformer.optimizers import WarmupSchedule

pytest.importorskip("matplotlib")


def test_positions(drawn):
    figure = plots.positional_encoding(8, 5)
    np.testing.assert_array_equal(figure.axes[0].images[0].get_array(), sinusoids(5, 8))
    drawn(figure)
    with pytest.raises(ValueError, match="d_model must be even"):
        plots.positional_encoding(7, 5)


def test_the_papers_rate():
    figure = plots.learning_rate(WarmupSchedule.paper(512, 100), 400)
    steps, rates = figure.axes[0].lines[0].get_data()
    by_hand = 512**-0.5 * np.minimum(steps**-0.5, steps * 100**-1.5)
    np.testing.assert_allclose(rates, by_hand, rtol=1e-5)
    assert steps[0] == 1 and steps[-1] == 400 and 100 in steps


LOGS = [dict(loss=3.0, val_loss=4.0, seconds=9.0), dict(loss=2.0, val_loss=3.0, seconds=9.0)]


@pytest.mark.parametrize("form", ["logs", "history", "csv"])
def test_history_of_all_forms(form, tmp_path, drawn):
    path = tmp_path / "log.csv"
    path.write_text("epoch,loss,val_loss\n0,3.0,4.0\n1,2.0,3.0\n")
    history = dict(logs=LOGS, history=dict(loss=[3.0, 2.0], val_loss=[4.0, 3.0]), csv=path)[form]
    figure = plots.training_history(history)
    (axes,) = figure.axes
    assert axes.get_title() == "loss"
    assert [list(line.get_ydata()) for line in axes.lines] == [[3.0, 2.0], [4.0, 3.0]]
    assert list(axes.lines[0].get_xdata()) == [1, 2]
    drawn(figure)


def test_a_history_of_nothing():
    with pytest.raises(ValueError, match="history must be the metrics of at least one epoch"):
        plots.training_history([])
