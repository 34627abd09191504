"""Which folder serves which task, and handlers that share batches."""

import json

import numpy as np
import pytest
from fastapi.testclient import TestClient

from keras_transformer.models.sentence import Embedding
from keras_transformer.serving import Catalogue, Replicas, create_app
from keras_transformer.serving.task_models import TASKS, TaskModel, tasks_of
from keras_transformer.tasks.text_embedder import TextEmbedder

OF = {
    "classes": ["classify", "embed"],
    "scores": ["rank", "classify", "embed"],
    "tags": ["tag", "embed"],
    "masks": ["fill", "embed"],
    "answers": ["answer", "embed"],
    "pictures": ["see"],
    "trees": ["parse"],
    "speech": ["transcribe"],
}


def test_which_folder_does_what(task_folders, tools, folders, writer_folder, tmp_path):
    assert {name: tasks_of(folder) for name, folder in task_folders.items()} == OF
    assert {task for found in OF.values() for task in found} | {"regress"} == set(TASKS)
    assert {name: sorted(model.tools) for name, model in tools.tools.items()} == {
        name: sorted(found) for name, found in OF.items()
    }
    for other in (folders[0], writer_folder, tmp_path, tmp_path / "none"):
        assert tasks_of(other) == []


def test_an_adapter_is_a_folder_too(tmp_path):
    (tmp_path / "adapter.safetensors").touch()
    config = {"format": 2, "adapter": {}, "tokenizer": "x", "task": "token_classification"}
    config["model"] = {"head": "token_classification"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    assert tasks_of(tmp_path) == ["tag", "embed"]


def test_tasks_of_a_folder_share_its_weights(tools):
    model = tools.tools["classes"]
    assert model.tools["embed"].model is model.tools["classify"].model


def test_the_settings_of_an_embedder_that_shares_its_weights(tools, tmp_path):
    known = tools.tools["masks"].tools["embed"]
    own = Embedding(prompts={"query": "the film "}, dimension=3)
    tool = TextEmbedder(known.model, known.tokenizer, "cls", own)
    tool.save(tmp_path)
    model = TaskModel.load(tmp_path)
    texts = ["a good film", "the"]
    expected = tool.embed(texts)
    assert sorted(model.tools) == ["embed", "fill"]
    assert np.allclose(model.handler("embed").search(texts, 1, 99), expected, atol=1e-5)
    catalogue = Catalogue([], tools=[model])
    with TestClient(create_app(lambda: catalogue)) as client:
        body = {"model": model.name, "input": texts, "prompt_name": "query"}
        data = client.post("/v1/embeddings", json=body).json()["data"]
        bad = client.post("/v1/embeddings", json=body | {"prompt_name": "x"})
    found = [x["embedding"] for x in data]
    assert np.allclose(found, tool.embed(texts, prompt_name="query"), atol=1e-5)
    assert not np.allclose(found, expected, atol=1e-3)
    assert bad.status_code == 400 and "one of query" in bad.json()["error"]["message"]


def test_equal_handlers_share_batches(tools):
    masks, again = tools.tools["masks"], TaskModel("again", tools.tools["masks"].tools)
    assert masks.handler("fill", top_k=3) == again.handler("fill", top_k=3)
    assert masks.handler("fill", top_k=3) != masks.handler("fill", top_k=4)
    assert masks.handler("embed") != tools.tools["tags"].handler("embed")


def test_costs(tools):
    costs = {
        "tags": ("tag", ["a good film", "a"], [5, 3]),
        "classes": ("classify", [("a", "good film")], [5]),
        "pictures": ("see", [np.zeros((8, 8, 3))], [5]),
        "speech": ("transcribe", [np.zeros(1600)], [6]),
    }
    for name, (task, items, expected) in costs.items():
        options = {"pairs": True} if task == "classify" else {}
        assert tools.tools[name].handler(task, **options).read(items) == (items, expected)


def test_bad_specifications(task_folders):
    with pytest.raises(ValueError, match="only translators have pairs"):
        Catalogue.load([f"en-de={task_folders['tags']}"])
    with pytest.raises(ValueError, match="different names"):
        Catalogue.load([task_folders["tags"], task_folders["tags"]])
    with pytest.raises(NotImplementedError, match="tags is no translator, and replicas serve"):
        Replicas([task_folders["tags"]], 2)
