"""Finding made-up answers: the word after the one that is asked for."""

import json
import random

import pytest

from keras_transformer import QuestionAnswerer
from keras_transformer.training.question_answering import train


def test_a_run(tmp_path):
    generator = random.Random(0)
    keys = ["ga", "ge", "gi", "go"]
    words = "ba be bi bo bu da de di do du".split()
    data = []
    for title, count in (("train", 500), ("eval", 40)):
        paragraphs = []
        for number in range(count):
            context = generator.choices(words, k=6)
            key, answer = generator.choice(keys), "x" + generator.choice(words)
            at = generator.randrange(6)
            has_answer = number % 4 > 0
            context[at:at] = [key, answer] if has_answer else ["ba", "be"]
            context = " ".join(context)
            answers = [{"text": answer, "answer_start": context.find(answer)}] * has_answer
            asked = {"id": f"{title}-{number}", "question": f"{key} ?", "answers": answers}
            paragraphs.append({"context": context, "qas": [asked]})
        data.append({"title": title, "paragraphs": paragraphs})
    (tmp_path / "x.json").write_text(json.dumps({"data": data}))
    (tmp_path / "split.tsv").write_text("train\ttrain\neval\teval\n")
    sizes = dict(vocab_size=60, d_model=16, num_layers=1, num_heads=2, dropout=0.0, max_length=24)
    train(
        tmp_path / "x.json", tmp_path / "split.tsv", tmp_path / "run", **sizes, epochs=8,
        peak_learning_rate=1e-2, warmup_steps=20,
    )  # fmt: skip
    metrics = json.loads((tmp_path / "run" / "metrics.json").read_text())["eval"]
    assert metrics["questions"] == 40
    assert metrics["exact_match"] > 80

    answerer = QuestionAnswerer.load(tmp_path / "run")
    pairs = [(x["qas"][0]["question"], x["context"]) for x in data[1]["paragraphs"]]
    texts = [[y["text"] for y in x["qas"][0]["answers"]] for x in data[1]["paragraphs"]]
    found = answerer.answer(pairs, min_score=0)
    right = [
        [x.text for x in own] == own_texts for own, own_texts in zip(found, texts, strict=True)
    ]
    assert 100 * sum(right) / 40 == pytest.approx(metrics["exact_match"])
    assert sum(x for x, text in zip(right, texts, strict=True) if not text) >= 8  # of 10


def test_shared_words_find_what_the_question_names(tmp_path):
    """The answer is the word of the question; in testing, words that training never asked for."""
    generator = random.Random(0)
    words = "abcdefghijklmnop"
    data = []
    for title, own, count in (("train", words[:8], 400), ("eval", words[8:], 40)):
        paragraphs = []
        for number in range(count):
            asked = generator.choice(own)
            passage = generator.sample(sorted(set(words) - {asked}), 5)
            at = generator.randrange(6)
            passage[at:at] = [asked]
            answers = [{"text": asked, "answer_start": 2 * at}]
            asked = {"id": f"{title}-{number}", "question": asked, "answers": answers}
            paragraphs.append({"context": " ".join(passage), "qas": [asked]})
        data.append({"title": title, "paragraphs": paragraphs})
    (tmp_path / "x.json").write_text(json.dumps({"data": data}))
    (tmp_path / "split.tsv").write_text("train\ttrain\neval\teval\n")
    sizes = dict(vocab_size=60, d_model=16, num_layers=1, num_heads=2, dropout=0.0, max_length=16)
    learning = dict(peak_learning_rate=1e-2, warmup_steps=20)
    files, found = (tmp_path / "x.json", tmp_path / "split.tsv"), {}
    for name, marked in (("plain", False), ("marked", True)):
        train(*files, tmp_path / name, **sizes, **learning, epochs=6, shared_words=marked)
        metrics = json.loads((tmp_path / name / "metrics.json").read_text())["eval"]
        found[name] = metrics["exact_match"]
    assert found["marked"] > 90 and found["marked"] > found["plain"] + 20
    start = dict(start_from=tmp_path / "plain", shared_words=True, **learning)
    train(*files, tmp_path / "further", **start, epochs=1)
    assert QuestionAnswerer.load(tmp_path / "further").model.config.num_types == 3


@pytest.mark.parametrize(
    "split,message",
    [
        ("A\ttrain\n", "split.tsv must name each article, it lacks 'B'"),
        ("A\ttrain\nB\tdev\n", r"split.tsv: a label must be one of \('train', 'eval'\), got 'dev'"),
        ("A\ttrain\nB\n", "split.tsv, line 2: expected"),
        ("A\teval\nB\teval\n", "split.tsv must leave a question with an answer to 'train'"),
        ("A\ttrain\nB\ttrain\n", "split.tsv must leave a question to 'eval'"),
    ],
)
def test_bad_split(split, message, tmp_path):
    answers = [{"text": "ba", "answer_start": 0}]
    paragraphs = [{"context": "ba be", "qas": [{"id": "x", "question": "?", "answers": answers}]}]
    data = [{"title": title, "paragraphs": paragraphs} for title in "AB"]
    (tmp_path / "x.json").write_text(json.dumps({"data": data}))
    (tmp_path / "split.tsv").write_text(split)
    with pytest.raises(ValueError, match=message):
        train(tmp_path / "x.json", tmp_path / "split.tsv", tmp_path / "run")


def test_no_answer_is_left(tmp_path):
    context = "ba be bi bo bu da de di do du"
    answers = [{"text": "du", "answer_start": context.index("du")}]
    asked = {"id": "x", "question": "?", "answers": answers}
    data = [{"title": x, "paragraphs": [{"context": context, "qas": [asked]}]} for x in "AB"]
    (tmp_path / "x.json").write_text(json.dumps({"data": data}))
    (tmp_path / "split.tsv").write_text("A\ttrain\nB\teval\n")
    files = tmp_path / "x.json", tmp_path / "split.tsv", tmp_path / "run"
    sizes = dict(vocab_size=60, d_model=8, num_layers=1, num_heads=2)
    with pytest.raises(ValueError, match="max_length must leave an answer in its text, got 6"):
        train(*files, **sizes, max_length=6)
