"""Commands load checkpoints of Hugging Face as they are, each once imported into a cache."""

import inspect
import json

import pytest

from keras_transformer import CausalLM, Translator, cli, load_pretrained
from keras_transformer.cli.folders import SavedFolder, loadable
from keras_transformer.cli.serve import _loadable
from keras_transformer.export import hugging_face
from tests.hub.gguf.files import SIZES, model_of, write_model

GIVEN = ["--max-extra-length", 4]


@pytest.fixture(scope="module")
def checkpoint(folder, tmp_path_factory):
    return hugging_face(folder, tmp_path_factory.mktemp("hub") / "opus-mt")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "keras_transformer" / "imported"


def test_a_checkpoint_in_place_of_a_saved_folder(run, checkpoint, cache, tmp_path):
    expected = load_pretrained(checkpoint).translate(["one two", "two"], max_extra_length=4)
    result = run("translate", checkpoint, *GIVEN, stdin="one two\ntwo\n")
    assert result.stdout.splitlines() == expected
    [line] = result.stderr.splitlines()
    assert line.startswith(f"keras-transformer: importing {checkpoint} into {cache}")
    both = ["--ensemble", checkpoint, *GIVEN]
    result = run("translate", checkpoint, *both, stdin="one two\ntwo\n")
    assert result.stdout.splitlines() == expected and result.stderr == ""  # it is there
    (tmp_path / "x.tsv").write_text("one\ttwo\n")
    assert "bleu" in run("evaluate", checkpoint, "--source", tmp_path / "x.tsv", *GIVEN).stdout
    message = run("classify", checkpoint, stdin="one\n", status=2).stderr
    assert "is not a saved text classifier but a translator: use Translator and" in message


def test_a_server_takes_it_too(checkpoint, cache, folder, monkeypatch):
    monkeypatch.chdir(checkpoint.parent)
    place = _loadable("en-de=opus-mt")
    assert place.startswith(f"en-de={cache}") and place.endswith("/opus-mt")
    assert _loadable("opus-mt") == place.removeprefix("en-de=")
    assert _loadable(str(folder)) == str(folder) and _loadable("absent") == "absent"


def test_python_names_the_command(checkpoint, tmp_path, monkeypatch):
    message = "checkpoint of type marian: `keras-transformer import .*opus-mt saved_models/opus-mt`"
    with pytest.raises(ValueError, match=message):
        Translator.load(checkpoint)
    with pytest.raises(ValueError, match=message):
        Translator.load(checkpoint, engine="ctranslate2")
    monkeypatch.chdir(tmp_path)
    message = "no such folder, .*; a model of that name on .*`keras-transformer import gpt2 saved_"
    with pytest.raises(ValueError, match=message):
        CausalLM.load("gpt2")


def test_without_a_network_the_command_is_named(run, failure, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    for command in ("translate", "generate", "serve"):
        message = failure(run(command, "nobody/nothing", stdin="a\n", status=2))
        assert "run `keras-transformer import nobody/nothing saved_models/nothing` where" in message
    (tmp_path / "nobody").mkdir()  # so this is a typing error
    message = failure(run("translate", "nobody/nothing", stdin="a\n", status=2))
    assert message.endswith("nobody/nothing is not a saved translator: there is no such folder")


def test_what_is_no_checkpoint_is_left_alone(folder, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model": {}}))
    for path in (folder, tmp_path, tmp_path / "absent"):
        assert loadable(path) == path


def test_every_command_that_loads_a_model_does():
    found = {}
    for command in [*cli.app.registered_commands, *cli.plot.registered_commands]:
        for parameter in inspect.signature(command.callback, eval_str=True).parameters.values():
            for info in getattr(parameter.annotation, "__metadata__", ()):
                if info.metavar == "FOLDER":
                    name = command.name or command.callback.__name__
                    found[name, parameter.name] = info.parser is SavedFolder
    assert len(found) > 25
    # One is written, the other is described as it is.
    assert {x for x, loads in found.items() if not loads} == {("import", "out"), ("info", "folder")}


def test_a_gguf_file_in_place_of_a_saved_folder(run, cache, tmp_path, monkeypatch):
    path = write_model(tmp_path / "tiny.gguf", "llama", model_of("llama", **SIZES))
    assert (
        f"{path} is a GGUF file, of llama.cpp; `keras-transformer import"
        in run("info", path).stdout
    )
    expected = load_pretrained(path).generate(["To be"], max_new_tokens=4)
    result = run("generate", path, "To be", "--max-new-tokens", 4)
    assert result.stdout == f"To be{expected[0]}\n"
    place = loadable(path)
    assert place.name == "tiny" and place.is_relative_to(cache)
    monkeypatch.chdir(tmp_path)
    run("import", "tiny.gguf", "saved")
    assert CausalLM.load("saved").generate(["To be"], max_new_tokens=4) == expected
    assert "there is no file none.gguf" in run("generate", "none.gguf", "x", status=2).stderr
