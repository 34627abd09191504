"""`keras-transformer answer`: questions and passages as lines with a tab, and as JSON."""

import dataclasses
import json

import pytest
from typer.testing import CliRunner

from keras_transformer import QuestionAnswerer, cli
from keras_transformer.models import BERT, BERTConfig
from keras_transformer.text.text_tokenizer import TextTokenizer

PAIRS = [("who ?", "a good film"), ("{ who", "bad films, a film"), ("who ?", "")]
LINES = "".join(f"{question}\t{passage}\n" for question, passage in PAIRS)


def run(*arguments, stdin="", status=0):
    result = CliRunner().invoke(cli.app, [str(a) for a in arguments], input=stdin)
    assert result.exit_code == status, result.output
    return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("answerer")
    tokenizer = TextTokenizer.train(["a good film", "bad films", "who ? {,"], "wordpiece", 50)
    sizes = dict(d_model=8, num_layers=1, num_heads=2, max_length=16, head="span_extraction")
    QuestionAnswerer(BERT(BERTConfig(tokenizer.vocab_size, **sizes)), tokenizer).save(folder)
    return folder


def test_lines(folder):
    found = QuestionAnswerer.load(folder).answer(PAIRS, 2)
    output = run("answer", folder, stdin=LINES).stdout
    assert output.split("\n") == [found[0][0].text, found[1][0].text, "", ""]
    output = run("answer", folder, "--top-k", 2, stdin=LINES).stdout
    assert output.split("\n") == [*("\t".join(x.text for x in own) for own in found), ""]
    least = found[0][0].score + 1e-3
    output = run("answer", folder, "--min-score", least, stdin=LINES.split("\n")[0]).stdout
    assert output == "\n"


def test_windows_begin_a_stride_apart(folder):
    asked = "who", "a good film bad films good a film bad a good films bad a film good"
    line = "\t".join(asked)
    scores = set()
    for stride in (1, 6):
        (found,) = QuestionAnswerer.load(folder).answer([asked], stride=stride)
        output = run("answer", folder, "--json", "--stride", stride, stdin=line).stdout
        (answer,) = json.loads(output)["answers"]
        assert answer["score"] == pytest.approx(found[0].score)
        scores.add(answer["score"])
    assert len(scores) == 2


def test_json(folder, tmp_path):
    records = [{"id": i, "question": x, "context": y} for i, (x, y) in enumerate(PAIRS)]
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps(x) + "\n" for x in records))
    run("answer", folder, "--json", "-i", path, "-o", tmp_path / "out.jsonl")
    lines = (tmp_path / "out.jsonl").read_text().splitlines()
    for record, line, own in zip(
        records, lines, QuestionAnswerer.load(folder).answer(PAIRS), strict=True
    ):
        answers = json.loads(line).pop("answers")
        assert json.loads(line) == record | {"answers": answers}
        for one, other in zip(answers, own, strict=True):
            assert one == dataclasses.asdict(other) | {"score": pytest.approx(other.score)}
    assert run("answer", folder, "-i", path).stdout == run("answer", folder, stdin=LINES).stdout


def test_bad_input_gets_one_line(folder):
    for arguments, stdin, message in (
        ((), "a\tb\nno tab\n", "line 2 must be a question, a tab and a passage"),
        ((), '{"question": "who"}\n', "line 1 must be a question, a tab and a passage"),
        ((), "who " * 20 + "\ta film\n", "questions must leave room for a passage"),
        (("--strict",), "who\t" + "film " * 20, "at most 16 tokens each"),
    ):
        (line,) = run("answer", folder, *arguments, stdin=stdin, status=2).stderr.splitlines()
        assert message in line
    (line,) = run("classify", folder, status=2).stderr.splitlines()
    assert "QuestionAnswerer and the command answer" in line


def test_an_option_out_of_range_is_named(folder):
    result = run("answer", folder, "--min-score", "nan", stdin=LINES, status=2)
    assert "min_score must be a finite number or None, got nan" in result.stderr
