"""`keras-transformer classify`, `tag` and `fill`: lines in, lines out."""

import json

import pytest
from typer.testing import CliRunner

from keras_transformer import MaskFiller, TextClassifier, TokenTagger, cli
from keras_transformer.models import BERT, BERTConfig
from keras_transformer.text.text_tokenizer import TextTokenizer
from tests.tasks.encoder_folders import classifier_folder, tagger_folder

TEXTS = ["ba good", "bad be bo", ""]


def run(*arguments, stdin="", status=0):
    result = CliRunner().invoke(cli.app, [str(a) for a in arguments], input=stdin)
    assert result.exit_code == status, result.output
    return result


@pytest.fixture(scope="module")
def sentiment(tmp_path_factory):
    return classifier_folder(tmp_path_factory.mktemp("classifier"))


@pytest.fixture(scope="module")
def entities(tmp_path_factory):
    return tagger_folder(tmp_path_factory.mktemp("tagger"))


def test_classes(sentiment, tmp_path):
    found = TextClassifier.load(sentiment).classify(TEXTS)
    stdin = "\n".join(TEXTS) + "\n"
    lines = run("classify", sentiment, stdin=stdin).stdout.splitlines()
    assert lines == [f"{own[0].label}\t{own[0].probability:.4f}" for own in found]
    assert [line[0] for line in lines[:2]] == ["1", "0"]
    (tmp_path / "in.txt").write_text(stdin)
    run("classify", sentiment, "--json", "-i", tmp_path / "in.txt", "-o", tmp_path / "out.jsonl")
    records = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [x["text"] for x in records] == TEXTS
    for record, own in zip(records, found, strict=True):
        assert [x["label"] for x in record["labels"]] == [x.label for x in own]
        assert record["labels"][0]["probability"] == pytest.approx(own[0].probability)


def test_entities(entities):
    text = "ba mister Ga, mister Ga Lo."
    own, _, other = TokenTagger.load(entities).tag([text, "", "be"])
    assert {"Ga", "Ga Lo"} <= {x.text for x in own}
    result = run("tag", entities, stdin=f"{text}\n\nbe\n")
    lines = ["\t".join(f"{x.label}={x.text}" for x in found) for found in (own, (), other)]
    assert result.stdout.split("\n") == [*lines, ""]
    record = json.loads(run("tag", entities, "--json", stdin=text).stdout)
    places = [(x["start"], x["end"]) for x in record["entities"]]
    assert record["text"] == text and places == [(x.start, x.end) for x in own]


def test_masks(tmp_path):
    tokenizer = TextTokenizer.train(["a good film", "bad films"], "wordpiece", 40)
    sizes = dict(d_model=8, num_layers=1, num_heads=2, max_length=16)
    filler = MaskFiller(BERT(BERTConfig(tokenizer.vocab_size, **sizes)), tokenizer)
    filler.save(tmp_path)
    texts = ["a [MASK] film", "[MASK]"]
    found = filler.fill(texts, 3)
    result = run("fill", tmp_path, "--top-k", 3, stdin="\n".join(texts))
    lines = result.stdout.splitlines()
    assert lines == ["\t".join(x.token for x in own) for own in found]
    (record, _) = run("fill", tmp_path, "--json", stdin="\n".join(texts)).stdout.splitlines()
    record = json.loads(record)
    assert record["text"] == texts[0] and len(record["candidates"]) == 5
    assert record["candidates"][0]["probability"] == pytest.approx(found[0][0].probability)
    (line,) = run("fill", tmp_path, stdin="a film\n", status=2).stderr.splitlines()
    assert "texts must have one [MASK] each, in the first 16 tokens, got 0 in 'a film'" in line


def test_bad_input_gets_one_line(sentiment, entities, tmp_path):
    for arguments, stdin, message in (
        (("classify", entities), "", "a token tagger: use TokenTagger and the command tag"),
        (("tag", sentiment), "", "a text classifier: use TextClassifier and the command cl"),
        (("tag", tmp_path), "", "is not a saved token tagger: it has no config.json"),
        (("classify", sentiment, "--strict"), "ba " * 30, "at most 24 tokens each"),
        (("classify", sentiment), "ba\tbe\n", "texts must be strings, not pairs"),
    ):
        (line,) = run(*arguments, stdin=stdin, status=2).stderr.splitlines()
        assert message in line
    cut = run("classify", sentiment, stdin="ba " * 30)
    assert "warning: texts must have at most 24 tokens" in cut.stderr and cut.stdout
