"""Objects that load imported encoders of each family: they find what `transformers` computes."""

import numpy as np
import pytest
import torch
import transformers

from keras_transformer import (
    MaskFiller,
    QuestionAnswerer,
    TextClassifier,
    TextEmbedder,
    TokenTagger,
    load_pretrained,
)
from keras_transformer.text.text_tokenizer import TextTokenizer
from tests.backends import cases

PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] good bad film the a who".split()
TEXT = "the good film"
SMALL = dict(
    hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=24,
    max_position_embeddings=20, initializer_range=0.5,
)  # fmt: skip
DISTILBERT = dict(
    dim=16, n_layers=1, n_heads=2, hidden_dim=24, max_position_embeddings=18, initializer_range=0.5
)
FAMILIES = {  # names of classes, and options
    "distilbert": ("DistilBert", DISTILBERT),
    "electra": ("Electra", SMALL | dict(embedding_size=8)),
    "albert": ("Albert", SMALL | dict(embedding_size=8)),
    "xlm-roberta": ("XLMRoberta", SMALL | dict(type_vocab_size=1, pad_token_id=0)),
    "mpnet": ("MPNet", SMALL | dict(pad_token_id=1)),
}
LABELS = dict(id2label={0: "O", 1: "B-x", 2: "B-y"}, label2id={"O": 0, "B-x": 1, "B-y": 2})


@pytest.fixture(scope="module", params=cases(FAMILIES, "distilbert"))
def imported(request, tmp_path_factory):
    """`imported(head, labels)`: the model of `transformers`, and our imported folder of it."""
    name, options = FAMILIES[request.param]

    def imported(end, **labels):
        source, folder = (tmp_path_factory.mktemp(x) for x in ("source", "imported"))
        (source / "vocab.txt").write_text("\n".join(PIECES))
        TextTokenizer.read(source).save(source)
        torch.manual_seed(0)
        config = getattr(transformers, f"{name}Config")(vocab_size=len(PIECES), **options, **labels)
        theirs = getattr(transformers, name + end)(config).eval()
        theirs.save_pretrained(source)
        load_pretrained(source).save(folder)
        return theirs, folder

    return imported


@torch.no_grad()
def outputs(theirs, tokenizer, *texts):
    if len(texts) == 1:
        (ids,) = tokenizer.encode(texts, special=("[MASK]",))
        return ids, theirs(input_ids=torch.tensor([ids]))
    ((ids, types, _),) = tokenizer.encode_pairs([texts], 1000)
    inputs = dict(input_ids=torch.tensor([ids]))
    if getattr(theirs.config, "type_vocab_size", 1) > 1:
        inputs["token_type_ids"] = torch.tensor([types])
    return ids, theirs(**inputs)


@pytest.mark.once("made of parts that are tested under each backend")
def test_classes_and_tags(imported):
    theirs, folder = imported("ForSequenceClassification", **LABELS)
    classifier = TextClassifier.load(folder)
    _, expected = outputs(theirs, classifier.tokenizer, TEXT)
    odds = dict(zip(("O", "B-x", "B-y"), expected.logits[0].softmax(-1).tolist(), strict=True))
    (found,) = classifier.classify([TEXT])
    assert {x.label: x.probability for x in found} == pytest.approx(odds, abs=1e-4)

    theirs, folder = imported("ForTokenClassification", **LABELS)
    tagger = TokenTagger.load(folder)
    _, expected = outputs(theirs, tagger.tokenizer, TEXT)
    best = expected.logits[0, 1:-1].softmax(-1).max(-1)
    (found,) = tagger.tag_words([TEXT.split()])
    assert [x.label for x in found] == [("O", "B-x", "B-y")[i] for i in best.indices]
    assert [x.probability for x in found] == pytest.approx(best.values.tolist(), abs=1e-4)


@pytest.mark.once("made of parts that are tested under each backend")
def test_vectors_and_masks(imported):
    theirs, folder = imported("Model")
    embedder = TextEmbedder.load(folder)
    _, expected = outputs(theirs, embedder.tokenizer, TEXT)
    vector = expected.last_hidden_state[0].mean(0).numpy()
    found = embedder.embed([TEXT])[0]
    np.testing.assert_allclose(found, vector / np.linalg.norm(vector), atol=1e-4)

    theirs, folder = imported("ForMaskedLM")
    filler = MaskFiller.load(folder)
    ids, expected = outputs(theirs, filler.tokenizer, "the [MASK] film")
    best = expected.logits[0, ids.index(4)].softmax(-1).topk(3)
    (found,) = filler.fill(["the [MASK] film"], 3)
    assert [x.token for x in found] == [PIECES[i] for i in best.indices]
    assert [x.probability for x in found] == pytest.approx(best.values.tolist(), abs=1e-4)


def test_answers(imported):
    theirs, folder = imported("ForQuestionAnswering")
    answerer = QuestionAnswerer.load(folder)
    ids, expected = outputs(theirs, answerer.tokenizer, "who", TEXT)
    start, end = expected.start_logits[0], expected.end_logits[0]
    first, words = len(ids) - 4, TEXT.split()
    scores = {
        " ".join(words[i : j + 1]): float(start[first + i] + end[first + j] - start[0] - end[0])
        for i in range(3)
        for j in range(i, 3)
    }
    (found,) = answerer.answer([("who", TEXT)], top_k=len(scores))
    assert {x.text: x.score for x in found} == pytest.approx(scores, abs=1e-3)
