"""Labels of classifiers: their names by number, and what one of them is."""

import pytest

from keras_transformer.hub.families.label_fields import (
    label_fields,
    labels_of,
    problem_type_of,
)

pytestmark = pytest.mark.once("plain values")
PLAIN = dict(id2label=None, num_labels=2, problem_type=None)


def test_labels():
    assert labels_of(PLAIN | dict(num_labels=3)) == ("LABEL_0", "LABEL_1", "LABEL_2")
    with pytest.raises(ValueError, match="num_labels must be at most 1048576, got 1000000000000"):
        labels_of(PLAIN | dict(num_labels=10**12))  # it took all memory
    names = {"10": "c", "2": "b", "0": None}
    assert labels_of(PLAIN | dict(id2label=names)) == ("LABEL_0", "b", "c")
    with pytest.raises(
        ValueError, match="id2label must map class numbers to names, got {'x': 'a'}"
    ):
        labels_of(PLAIN | dict(id2label={"x": "a"}))


@pytest.mark.parametrize("kind", [None, "regression", "multi_label_classification"])
@pytest.mark.parametrize("count", [1, 2])
def test_problem_types_there_and_back(kind, count):
    labels = tuple("abc"[:count])
    fields = PLAIN | label_fields(labels, kind)
    assert problem_type_of(fields) == kind and labels_of(fields) == labels


def test_activations_of_cross_encoders():
    own = {"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Sigmoid"}}
    assert problem_type_of(PLAIN | own | dict(num_labels=2)) == "multi_label_classification"
    assert problem_type_of(PLAIN | own | dict(num_labels=1)) is None
    own = {"sentence_transformers": {"activation_fn": "torch.nn.modules.activation.Tanh"}}
    with pytest.raises(ValueError, match="activation_fn must be one of .*Tanh"):
        problem_type_of(PLAIN | own)
