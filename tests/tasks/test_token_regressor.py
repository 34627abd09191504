"""TokenRegressor: a number for each word, from training to the command and the server."""

import json

import keras
import numpy as np
import pytest
from fastapi.testclient import TestClient
from keras import ops
from typer.testing import CliRunner

from keras_transformer import TokenRegressor, TokenTagger, cli
from keras_transformer.models import BERT, BERTConfig
from keras_transformer.serving import Catalogue, create_app
from keras_transformer.text.text_tokenizer import TextTokenizer

TEXTS = ["ba be, du", "", "du du ba"]


@pytest.fixture(scope="module")
def regressor(randomize):
    keras.utils.set_random_seed(0)
    tokenizer = TextTokenizer.train(["ba be du go lo , ."] * 9, "wordpiece", 60)
    sizes = dict(d_model=8, d_ff=12, num_layers=1, num_heads=2, max_length=16)
    head = dict(head="token_classification", labels=("time",), problem_type="regression")
    model = BERT(BERTConfig(tokenizer.vocab_size, **sizes, **head))
    return TokenRegressor(randomize(model), tokenizer)


def test_the_number_of_each_word_is_that_of_its_first_piece(regressor):
    found = regressor.regress(TEXTS)
    assert [[x.text for x in row] for row in found] == [
        ["ba", "be", ",", "du"],
        [],
        ["du"] * 2 + ["ba"],
    ]
    assert [(x.start, x.end) for x in found[0]] == [(0, 2), (3, 5), (5, 6), (7, 9)]
    ((ids, starts),) = regressor.tokenizer.encode_places(
        TEXTS[:1], [[(0, 2), (3, 5), (5, 6), (7, 9)]]
    )
    values = ops.convert_to_numpy(regressor.model({"token_ids": np.array([ids])}))[0, starts, 0]
    np.testing.assert_allclose([x.value for x in found[0]], values, rtol=1e-4, atol=1e-5)
    with pytest.warns(UserWarning, match="it is cut"):
        assert len(regressor.regress(["ba " * 30])[0]) == 14
    with pytest.raises(ValueError, match="at most 16 tokens each"):
        regressor.regress(["ba " * 30], strict=True)


@pytest.mark.once("requests and lines: the tensors are those of the other test")
def test_the_command_and_the_server_give_the_same(regressor, tmp_path):
    regressor.save(tmp_path / "times")
    expected = [
        [x.__dict__ for x in row] for row in TokenRegressor.load(tmp_path / "times").regress(TEXTS)
    ]
    arguments = ["regress", str(tmp_path / "times"), "--json"]
    result = CliRunner().invoke(cli.app, arguments, input="\n".join(TEXTS) + "\n")
    records = [json.loads(line) for line in result.stdout.splitlines()]
    assert records == [dict(text=x, values=y) for x, y in zip(TEXTS, expected, strict=True)]
    line = CliRunner().invoke(cli.app, arguments[:2], input="ba\n").stdout
    assert line.startswith("ba=") and float(line[3:]) == pytest.approx(
        regressor.regress(["ba"])[0][0].value, rel=1e-4
    )
    with TestClient(create_app(lambda: Catalogue.load([tmp_path / "times"]))) as client:
        answer = client.post("/v1/regress", json={"texts": TEXTS}).json()
        tagged = client.post("/v1/tag", json={"texts": TEXTS})
    assert answer["model"] == "times" and tagged.status_code == 400
    for row, own in zip(answer["values"], expected, strict=True):
        assert [x | {"value": 0} for x in row] == [x | {"value": 0} for x in own]
        assert [x["value"] for x in row] == pytest.approx([x["value"] for x in own], abs=1e-4)


@pytest.mark.once("no tensor")
def test_what_it_is_not(regressor, tmp_path):
    with pytest.raises(ValueError, match="'token_classification' .use TokenRegressor and the comm"):
        TokenTagger(regressor.model, regressor.tokenizer)
    regressor.save(tmp_path)
    with pytest.raises(ValueError, match="token tagger but a token regressor: use TokenRegressor"):
        TokenTagger.load(tmp_path)
    for changes, message in (
        (dict(labels=("x", "y")), r"the model's labels must be one .*, got \('x', 'y'\)"),
        (dict(problem_type=None), "with problem_type 'regression' .use TokenTagger.* got 'token_c"),
    ):
        model = regressor.model.with_head(
            "token_classification", **(dict(problem_type="regression") | changes)
        )
        with pytest.raises(ValueError, match=message):
            TokenRegressor(model, regressor.tokenizer)
