"""Labels: softmax, sigmoid and identity of `transformers`' pipelines, on random models."""

import json

import numpy as np
import pytest
import torch
import transformers
from PIL import Image
from typer.testing import CliRunner

from keras_transformer import ImageClassifier, TextClassifier, cli, load_pretrained
from keras_transformer.hub.hugging_face_checkpoint import read_model, write_model
from keras_transformer.tasks.labels import Label, Value, labelled
from keras_transformer.training.fine_tuning import fine_tuned
from tests.backends import cases

PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] good bad film the a ##s".split()
TEXTS = ["a good film", "the bad films the film", "bad"]
SINGLE, MULTI = "single_label_classification", "multi_label_classification"
SIZES = dict(
    hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24,
    initializer_range=0.5,
)  # fmt: skip
# Problem and labels of the checkpoint. `transformers` refuses one label that excludes others.
PROBLEMS = [(None, "xyz"), (SINGLE, "xyz"), (MULTI, "xyz"), ("regression", "xyz")]
PROBLEMS += [(None, "x"), (MULTI, "x"), ("regression", "x")]
MODELS = [("Bert", *one) for one in PROBLEMS] + [
    (family, *one) for family in ("Roberta", "DistilBert") for one in PROBLEMS[2:4]
]


def write_text_model(folder, family, problem, names, **more):
    """A classifier of `transformers` with its tokenizer."""
    torch.manual_seed(len(names))
    labels = dict(enumerate(names))
    length = 22 if family == "Roberta" else 20  # the first two positions of a RoBERTa are not used
    options = dict(max_position_embeddings=length, problem_type=problem, id2label=labels)
    if family == "DistilBert":
        options |= dict(dim=16, n_layers=1, n_heads=2, hidden_dim=24, initializer_range=0.5)
    else:
        options |= SIZES
    config = getattr(transformers, f"{family}Config")(
        vocab_size=len(PIECES), pad_token_id=0, **options, **more
    )
    getattr(transformers, f"{family}ForSequenceClassification")(config).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(PIECES))
    transformers.BertTokenizerFast(str(folder / "vocab.txt")).save_pretrained(folder)
    return folder


def numbers(found):
    """The probability or the value of each label."""
    return {x.label: x.probability if isinstance(x, Label) else x.value for x in found}


def of_pipeline(task, folder, inputs):
    pipe = transformers.pipeline(task, model=str(folder))
    return [{x["label"]: x["score"] for x in pipe(one, top_k=10)} for one in inputs]


@pytest.mark.once("made of parts that are tested under each backend")
@pytest.mark.parametrize("family,problem,names", cases(MODELS, *MODELS[2:4]))
def test_texts_as_the_pipeline_has_them(family, problem, names, tmp_path):
    source = write_text_model(tmp_path / "source", family, problem, names)
    load_pretrained(source).save(tmp_path / "ours")
    classifier = TextClassifier.load(tmp_path / "ours")
    found = classifier.classify(TEXTS, threshold=None if problem == "regression" else 0)
    for own, expected in zip(found, of_pipeline("text-classification", source, TEXTS), strict=True):
        assert numbers(own) == pytest.approx(expected, abs=1e-5)
        assert [type(x) for x in own] == [Value if problem == "regression" else Label] * len(names)
    write_model(tmp_path / "back", classifier.model)
    assert read_model(tmp_path / "back").config == classifier.model.config
    assert json.loads((tmp_path / "back/config.json").read_text())["problem_type"] == problem


@pytest.mark.parametrize("problem", cases([None, MULTI, "regression"], MULTI))
def test_images_as_the_pipeline_has_them(problem, tmp_path):
    torch.manual_seed(0)
    config = transformers.ViTConfig(
        **SIZES, image_size=8, patch_size=4, id2label=dict(enumerate("xyz")), problem_type=problem
    )
    transformers.ViTForImageClassification(config).save_pretrained(tmp_path / "source")
    transformers.ViTImageProcessorPil(size={"height": 8, "width": 8}).save_pretrained(
        tmp_path / "source"
    )
    pixels = np.random.default_rng(0).integers(0, 256, (8, 8, 3)).astype("uint8")
    Image.fromarray(pixels).save(tmp_path / "x.png")
    load_pretrained(tmp_path / "source").save(tmp_path / "ours")
    classifier = ImageClassifier.load(tmp_path / "ours")
    threshold = None if problem == "regression" else 0
    (found,) = classifier.classify([pixels], threshold=threshold)
    image = str(tmp_path / "x.png")
    (expected,) = of_pipeline("image-classification", tmp_path / "source", [image])
    assert numbers(found) == pytest.approx(expected, abs=1e-5)
    write_model(tmp_path / "back", classifier.model)
    assert read_model(tmp_path / "back").config == classifier.model.config
    asked = ["see", str(tmp_path / "ours"), image]
    line = CliRunner().invoke(cli.app, asked).stdout
    shown = classifier.classify([pixels])[0][: 1 if problem is None else 3]
    many = [part for own in numbers(shown).items() for part in own]
    digits = {"regression": "{:.6g}"}.get(problem, "{:.4f}")
    cells = [x if isinstance(x, str) else digits.format(x) for x in many]
    assert line == "\t".join([*cells, image]) + "\n"


@pytest.mark.once("lists: no tensor differs")
def test_labels_above_a_threshold():
    row = np.array([0.4, 0.9, 0.6], "float32")
    assert [x.label for x in labelled("xyz", row, MULTI, None)] == ["y", "z"]
    assert [x.label for x in labelled("xyz", row, MULTI, 0.7)] == ["y"]
    assert [x.label for x in labelled("xyz", row, SINGLE, None)] == ["y", "z", "x"]
    assert labelled("x", row[:1], MULTI, None) == [Label("x", pytest.approx(0.4))]
    assert labelled("xy", row[:2], "regression", None)[0] == Value("x", pytest.approx(0.4))


@pytest.mark.once("texts and commands: no tensor differs")
def test_commands_and_arguments(tmp_path):
    for problem in (MULTI, "regression"):
        source = write_text_model(tmp_path / f"{problem}-source", "Bert", problem, "xyz")
        load_pretrained(source).save(tmp_path / problem)
    texts = "\n".join(TEXTS)

    def run(*arguments):
        return CliRunner().invoke(cli.app, [str(x) for x in arguments], input=texts)

    classifier = TextClassifier.load(tmp_path / MULTI)
    for options in ({}, {"threshold": 0.2}, {"threshold": 1}):
        found = classifier.classify(TEXTS, **options)
        more = [part for name, x in options.items() for part in (f"--{name}", x)]
        lines = run("classify", tmp_path / MULTI, *more).stdout.split("\n")
        shown = ["\t".join(f"{x.label}\t{x.probability:.4f}" for x in own) for own in found]
        assert lines == [*shown, ""]
    regression = TextClassifier.load(tmp_path / "regression")
    first = run("classify", tmp_path / "regression", "--json").stdout.splitlines()[0]
    (values,) = regression.classify(TEXTS[:1])
    shown_values = [x["value"] for x in json.loads(first)["labels"]]
    assert shown_values == pytest.approx([x.value for x in values], abs=1e-5)
    with pytest.raises(ValueError, match="threshold must be None: the model is a regression"):
        regression.classify(TEXTS, threshold=0.5)
    with pytest.raises(ValueError, match="threshold must be a number from 0 to 1, or None, got 2"):
        classifier.classify(TEXTS, threshold=2)
    info = run("info", tmp_path / MULTI).stdout
    assert "problem_type" in info and MULTI in info
    assert f"| problem_type | {MULTI} |" in (tmp_path / MULTI / "README.md").read_text()
    # A new head has its own meaning, unless it is told.
    other = classifier.model.with_head("sequence_classification", labels=("a", "b"))
    assert other.config.problem_type is None
    assert fine_tuned(classifier.model, "sequence_classification").config.problem_type is None
