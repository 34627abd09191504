"""Versions of a model: which are served, and which of them answers."""

import random
import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest
from fastapi.testclient import TestClient

from keras_transformer.serving import Catalogue, create_app, replica
from keras_transformer.serving.versions import FILE, Version, Versions, versions_of
from keras_transformer.translate.translator import Translator

PLAN = """
[labels]
stable = 1
canary = 10

[shares]
1 = 0.75
10 = 0.25
"""


@pytest.fixture
def folder(tmp_path):
    """A folder of the versions 1, 2 and 10, and of what is no version."""
    for name in ("1", "2", "10", "old", "3b"):
        (tmp_path / name).mkdir()
    (tmp_path / "4").write_text("a file")
    return tmp_path


@pytest.fixture(scope="module")
def versioned(translators, tmp_path_factory):
    """Two versions of a translator: the second gives other translations."""
    place = tmp_path_factory.mktemp("versions") / "news"
    translators[0].save(place / "1")
    other = Translator(translators[1].model, translators[1].tokenizer, "en", "de")
    other.save(place / "2")
    (place / FILE).write_text("[labels]\nstable = 1\ncanary = 2\n[shares]\n1 = 1\n2 = 0\n")
    return place


@pytest.fixture(scope="module")
def served(versioned):
    with TestClient(create_app(lambda: Catalogue.load([versioned]))) as client:
        yield client


@pytest.mark.once("reads a file; no tensors")
def test_the_highest_version_is_served(folder, tmp_path):
    assert versions_of(folder) == [(folder / "10", Version("10"))]
    for own in (folder / "1", folder / "none"):
        assert versions_of(own) == [(own, Version("1"))]
    (folder / FILE).write_text("[labels]\nstable = 1\nold = 1\ncanary = 2")
    one, two = versions_of(folder)
    assert one == (folder / "1", Version("1", 0.0, ("stable", "old")))
    assert two == (folder / "2", Version("2", 1.0, ("canary",)))
    (folder / "2").rename(folder / "002")
    assert versions_of(folder)[1][0] == folder / "002"
    (folder / FILE).write_text(PLAN)
    assert [version.share for _, version in versions_of(folder)] == [0.75, 0.25]


@pytest.mark.once("reads a file; no tensors")
@pytest.mark.parametrize(
    "content, message",
    [
        ("[labels]\nx = 7", "a version in .* must be among the folders 1, 2, 10, got '7'"),
        ("[shares]\n7 = 1", "a version in .* must be among the folders 1, 2, 10, got '7'"),
        ("[shares]\n1 = 0.5\n2 = 0.4", "the sum of shares in .* must be 1"),
        ("[shares]\n1 = -1\n2 = 2", "the share of 1 in .* must be in \\[0, 1\\], got -1"),
        ("[shares]\n1 = nan", "the share of 1 in .* must be in"),
        ("[labels]\nx = true", "label x in .* must be the number of a version, got True"),
        ("[labels]\nx = '1'", "label x in .* must be the number of a version"),
        ("label = 1", "tables labels and shares only, got {'label': 1}"),
        ("labels = 1", "tables labels and shares only"),
        ("labels = ", "is not valid TOML"),
    ],
)
def test_broken_files_are_refused(folder, content, message):
    (folder / FILE).write_text(content)
    with pytest.raises(ValueError, match=message):
        versions_of(folder)


def models(*versions, pairs=(("en", "de"),)):
    return [
        SimpleNamespace(name="x", folder=Path(v.number), pairs=dict.fromkeys(pairs), default=None,
                        version=v)
        for v in versions
    ]  # fmt: skip


@pytest.mark.once("numbers only; no tensors")
def test_shares_decide_by_chance():
    random.seed(0)
    found = Versions(models(Version("1", 0.9), Version("2", 0.1), Version("3", 0.0)))
    counts = {"1": 0, "2": 0, "3": 0}
    for _ in range(2000):
        counts[found.chosen().version.number] += 1
    assert 150 < counts["2"] < 250 and counts["3"] == 0


@pytest.mark.once("names only; no tensors")
def test_versions_that_do_not_fit_are_refused():
    (other,) = models(Version("2"), pairs=[("en", "fr")])
    with pytest.raises(ValueError, match="must have the same languages.*in 2 and .*in 1"):
        Versions([*models(Version("1")), other])
    with pytest.raises(ValueError, match="different names, got 'x' twice"):
        Versions(models(Version("1"), Version("1")))


def test_versions_answer_by_number_label_and_share(served, translators, refused):
    texts = ["one two.", "six seven"]
    expected = [one.translate(texts) for one in translators]
    assert expected[0] != expected[1]
    path = "/v1/models/news"
    for which, number in (
        ("", 0),
        ("/versions/1", 0),
        ("/versions/2", 1),
        ("/labels/stable", 0),
        ("/labels/canary", 1),
    ):
        answer = served.post(f"{path}{which}:predict", json={"inputs": texts})
        assert answer.json()["outputs"] == expected[number], which
    answer = served.post("/translate", json={"q": texts[1], "source": "en", "target": "de"})
    assert answer.json()["translatedText"] == expected[0][1]
    metrics = served.get("/metrics").text
    assert 'sentences_total{model="news",version="2"} 4.0' in metrics

    def numbers(which):
        found = served.get(path + which).json()["model_version_status"]
        return [x["version"] for x in found]

    assert numbers("") == ["1", "2"] and numbers("/labels/canary") == ["2"]
    for which, number in (("", "2"), ("/labels/stable", "1"), ("/versions/1", "1")):
        spec = served.get(f"{path}{which}/metadata").json()["model_spec"]
        assert spec["version"] == number
    assert "stable, canary, got 'new'" in refused(
        served, 404, f"{path}/labels/new:predict", inputs=texts
    )
    assert "one of 1, 2, got '3'" in refused(
        served, 404, f"{path}/versions/3:predict", inputs=texts
    )


def test_a_reload_reads_the_shares_again(versioned, translators, tmp_path):
    folder = shutil.copytree(versioned, tmp_path / "news")
    app = create_app(lambda: Catalogue.load([folder]))
    with TestClient(app) as client:
        (folder / FILE).unlink()
        client.portal.call(app.state.service.reload)
        answer = client.post("/v1/models/news:predict", json={"inputs": ["six"]})
        assert answer.json()["outputs"] == translators[1].translate(["six"])
        assert client.get("/v1/models/news/versions/1").status_code == 404
        assert "there are none" in client.get("/v1/models/news/labels/stable").json()["error"]


def test_a_model_whose_folder_has_a_year_is_no_version(folders, tmp_path):
    folder = shutil.copytree(folders[0], tmp_path / "en-de")
    (folder / "2024").mkdir()
    assert versions_of(folder) == [(folder, Version("1"))]


def test_two_models_of_one_name_are_no_versions(versioned, folders, tmp_path):
    folder = shutil.copytree(folders[0], tmp_path / "news")
    (versioned / FILE).rename(versioned / "kept")
    try:
        with pytest.raises(ValueError, match="different names, got 'news' twice"):
            Catalogue.load([versioned, folder])  # version 2 and version 1
    finally:
        (versioned / "kept").rename(versioned / FILE)


def test_replicas_on_other_versions_answer_too(versioned, folders, tmp_path):
    folder = shutil.copytree(versioned, tmp_path / "news")
    (folder / FILE).unlink()
    models, compute = replica.load([str(folder)], None, {})
    assert [x["version"].number for x in models] == ["2"]
    sources, _ = compute("news", "2", ["en", "de"], "read", ["six"])
    asked = ["en", "de"], "search", sources, 1, 100
    assert compute("news", "1", *asked) == compute("news", "2", *asked)


def test_metrics_of_all_signatures(served):
    asked = {"signature_name": "nbest", "inputs": ["six"]}
    assert served.post("/v1/models/news/versions/2:predict", json=asked).is_success
    assert 'model=""' not in served.get("/metrics").text
