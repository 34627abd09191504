"""What a config says of a classifier's outputs."""

import pytest

from keras_transformer.models import BERTConfig, ViTConfig
from keras_transformer.models.problems import MULTI, REGRESSION, SINGLE, problem_of

pytestmark = pytest.mark.once("configs: no tensor differs")


def test_an_open_problem():
    assert problem_of(None, 1) == MULTI and problem_of(None, 3) == SINGLE
    for problem in (SINGLE, MULTI, REGRESSION):
        assert problem_of(problem, 3) == problem


def test_bad_values():
    config = BERTConfig(9, problem_type=REGRESSION, labels=("x",))
    assert BERTConfig.from_dict(config.to_dict()).problem_type == REGRESSION
    with pytest.raises(ValueError, match="problem_type must be one of .*, got 'multi_label'"):
        BERTConfig(9, problem_type="multi_label")
    with pytest.raises(ValueError, match="problem_type must be 'multi_.*for one label, got"):
        ViTConfig(1, problem_type=SINGLE)
