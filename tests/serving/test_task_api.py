"""Each route answers 32 clients with what the object says alone, and refuses bad requests."""

import dataclasses
import io
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from fastapi.testclient import TestClient
from PIL import Image

from keras_transformer.serving import Catalogue, Settings, create_app
from keras_transformer.serving.task_models import TaskModel
from keras_transformer.tasks.text_classifier import TextClassifier

VOCABULARY = ["a", "good", "bad", "film", "the"]
TEXTS = [" ".join(VOCABULARY[i % 5 :: 1 + i % 3] * (1 + i % 4)) for i in range(32)]
DOCUMENTS = TEXTS[:7]
MASKED = [f"{text} [MASK] film" for text in TEXTS]
WORDS = ["the cat sat .", "a mat", "a", "the mat is a cat"]


@pytest.fixture(scope="module")
def client(tools):
    with TestClient(create_app(lambda: tools, Settings(most_characters=500))) as one:
        yield one


def plain(found):
    return [dataclasses.asdict(x) for x in found] if isinstance(found, list) else str(found)


def close(found, expected):
    """Whether values are the same, numbers to 1e-4."""
    if isinstance(expected, dict):
        return found.keys() == expected.keys() and all(close(found[x], expected[x]) for x in found)
    if isinstance(expected, list | tuple):
        return len(found) == len(expected) and all(map(close, found, expected))
    if isinstance(expected, float):
        return found == pytest.approx(expected, abs=1e-4)
    return found == expected


CASES = {
    "classify": (
        "classes",
        "labels",
        lambda i: dict(texts=[TEXTS[i]], model="classes"),
        lambda x, i: x.classify([TEXTS[i]]),
    ),
    "tag": (
        "tags",
        "entities",
        lambda i: dict(texts=TEXTS[i : i + 2]),
        lambda x, i: x.tag(TEXTS[i : i + 2]),
    ),
    "fill": (
        "masks",
        "candidates",
        lambda i: dict(texts=[MASKED[i]], top_k=2 + i % 2),
        lambda x, i: x.fill([MASKED[i]], 2 + i % 2),
    ),
    "answer": (
        "answers",
        "answers",
        lambda i: dict(questions=[dict(question="the film", passage=TEXTS[i] * 3)], top_k=2),
        lambda x, i: x.answer([("the film", TEXTS[i] * 3)], 2),
    ),
    "parse": (
        "trees",
        "trees",
        lambda i: dict(texts=[WORDS[i % 4]]),
        lambda x, i: x.parse([WORDS[i % 4]]),
    ),
}


@pytest.mark.parametrize("route", CASES)
def test_32_clients_get_what_the_object_says_alone(client, tools, route):
    name, field, asked, alone = CASES[route]
    tool = tools.tools[name].tools[route]

    def ask(i):
        return client.post(f"/v1/{route}", json=asked(i)).json()

    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(ask, range(32)))
    for i, answer in enumerate(answers):
        expected = {"model": name, field: [plain(x) for x in alone(tool, i)]}
        assert close(answer, expected), (answer, expected)


def test_pairs(client, tools):
    pairs = [["a good", "film"], ["the", "bad film"]]
    both = client.post("/v1/classify", json={"texts": pairs, "model": "classes"}).json()["labels"]
    alone = tools.tools["classes"].tools["classify"].classify([tuple(x) for x in pairs])
    assert close(both, [plain(x) for x in alone])


@pytest.mark.parametrize("problem", ["multi_label_classification", "regression"])
def test_labels_of_other_problems(tools, problem):
    known = tools.tools["classes"].tools["classify"]
    labels = {"labels": ("x", "y", "z"), "problem_type": problem}
    model = known.model.with_head("sequence_classification", **labels)
    tool = TextClassifier(model, known.tokenizer)
    catalogue = Catalogue([], tools=[TaskModel("topics", {"classify": tool})])
    with TestClient(create_app(lambda: catalogue)) as one:
        found = one.post("/v1/classify", json={"texts": TEXTS}).json()["labels"]
        body = {"texts": TEXTS, "threshold": 0.25}
        above = one.post("/v1/classify", json=body)
    assert close(found, [plain(x) for x in tool.classify(TEXTS)])
    if problem == "regression":
        assert above.status_code == 400 and "a regression" in above.json()["error"]
    else:
        expected = tool.classify(TEXTS, threshold=0.25)
        assert close(above.json()["labels"], [plain(x) for x in expected])


def test_reranking(client, tools):
    """The form of Jina, Cohere and vLLM."""
    scorer = tools.tools["scores"].tools["rank"]
    expected = scorer.rank("a good film", DOCUMENTS)
    best = expected[:2]
    body = {"query": "a good film", "documents": DOCUMENTS}
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: client.post("/v1/rerank", json=body).json(), range(8)))
    for answer in answers:
        assert answer["model"] == "scores" and answer["usage"]["total_tokens"] > 0
        results = answer["results"]
        scores = [x["relevance_score"] for x in results]
        assert close(scores, [x.score for x in expected])
        assert sorted(x["index"] for x in results) == list(range(len(DOCUMENTS)))
        assert all(x["document"]["text"] == DOCUMENTS[x["index"]] for x in results)
    few = body | {
        "top_n": 2,
        "return_documents": False,
        "documents": [{"text": x} for x in DOCUMENTS],
    }
    found = client.post("/v1/rerank", json=few).json()["results"]
    fields = [{"index": x.index, "relevance_score": x.score} for x in best]
    assert close(found, fields)
    for change, status in (
        ({"documents": []}, 400),
        ({"top_n": 0}, 400),
        ({"model": "tags"}, 404),
        ({"documents": ["a" * 200] * 3}, 413),
    ):
        assert client.post("/v1/rerank", json=body | change).status_code == status


def test_images(client, tools):
    generator = np.random.default_rng(0)
    arrays = [generator.integers(0, 256, (9, 7, 3)).astype("uint8") for _ in range(32)]
    files = []
    for array in arrays:
        file = io.BytesIO()
        Image.fromarray(array).save(file, "PNG")
        files.append(("file", ("x.png", file.getvalue())))
    alone = [plain(x) for x in tools.tools["pictures"].tools["see"].classify(arrays)]

    def ask(i):
        return client.post("/v1/see", files=files[i : i + 2], data={"model": "pictures"}).json()

    with ThreadPoolExecutor(32) as pool:
        answers = list(pool.map(ask, range(32)))
    for i, answer in enumerate(answers):
        assert close(answer, {"model": "pictures", "labels": alone[i : i + 2]})
    broken = client.post("/v1/see", files=[files[0], ("file", ("y.png", b"no image"))])
    assert broken.status_code == 400 and "file 'y.png'" in broken.json()["error"]


def test_bad_requests(client):
    for route, body, status, message in (
        ("tag", {"texts": ["a"], "model": "classes"}, 404, "one of those for tag: tags"),
        ("tag", {"texts": []}, 400, "texts: List should have at least 1 item"),
        ("tag", {"texts": ["a"], "top": 1}, 400, "top: Extra inputs"),
        ("tag", {"texts": ["a" * 501]}, 413, "at most 500 characters"),
        ("tag", {}, 400, "texts: Field required"),
        ("fill", {"texts": ["a film"]}, 400, "texts must have one [MASK] each"),
        ("fill", {"texts": ["a [MASK]"], "top_k": 0}, 400, "top_k"),
        ("classify", {"texts": ["a", ["b", "c"]]}, 400, "texts"),
        ("classify", {"texts": ["a"], "threshold": 1.5}, 400, "threshold"),
        ("answer", {"questions": [{"question": "a"}]}, 400, "questions"),
    ):
        response = client.post(f"/v1/{route}", json=body)
        assert response.status_code == status, response.text
        assert message in response.json()["error"]


def test_a_model_that_is_not_served(tools):
    catalogue = Catalogue([], tools=[tools.tools["trees"]])
    with TestClient(create_app(lambda: catalogue)) as one:
        response = one.post("/v1/tag", json={"texts": ["a"]})
    assert response.status_code == 400 and "for tag: none" in response.json()["error"]
