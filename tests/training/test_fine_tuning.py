"""Where runs start from: kept heads, new ones, LoRA, and the adapter that a run leaves."""

import dataclasses

import keras
import numpy as np
import pytest

from keras_transformer import (
    Adapters,
    CausalLM,
    ImageEmbedder,
    TextClassifier,
    Transcriber,
    load_pretrained,
)
from keras_transformer.evaluation.assess import read_metrics
from keras_transformer.hub.hugging_face_checkpoint import write_model
from keras_transformer.models import Speech, SpeechConfig, ViT, ViTConfig, merged
from keras_transformer.saved.contents import read_config
from keras_transformer.saved.folder import load_model, load_with_tokenizer, save_folder
from keras_transformer.speech.hearing import Hearing
from keras_transformer.tasks.image_format import ImageFormat
from keras_transformer.text.text_tokenizer import TextTokenizer
from keras_transformer.training import (
    image_classification,
    language_model,
    masked_language_model,
    protein,
    speech_recognition,
)
from keras_transformer.training.fine_tuning import (
    check_lora,
    fine_tuned,
    fine_tuned_vit,
    read_encoder,
    save_run,
)
from tests.backends import sample
from tests.pretrained import test_pretrained_encoders as encoders
from tests.tiny import tiny
from tests.training import senses
from tests.training import test_protein as biology

structures = biology.structures
LABELS = ("x", "y", "z")


def values(model):
    return {x.path: np.array(keras.ops.convert_to_numpy(x)) for x in model.weights}


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base")
    tokenizer = TextTokenizer.train(["a b c d e f g"], "characters")
    save_folder(folder, tiny("bert", pad_id=1), tokenizer, {"task": "pretrained"})
    return folder


@pytest.mark.once("tests/models/test_lora.py trains under each")
def test_lora_trains_the_products_and_the_head(base, tmp_path):
    start, tokenizer = read_encoder(base)
    head = dict(labels=LABELS, dropout=0.0, head_dropout=0.0)
    model = fine_tuned(start, "sequence_classification", lora_rank=2, **head)
    before = values(model)
    old = values(start)
    assert all(np.array_equal(old[x], y) for x, y in before.items() if x in old)
    model.compile(keras.optimizers.Adam(0.05), keras.losses.SparseCategoricalCrossentropy(True))
    ids = np.random.default_rng(0).integers(2, 8, (9, 4)).astype("int32")
    model.fit({"token_ids": ids}, np.arange(9) % 3, epochs=2, verbose=0)
    changed = {x for x, y in values(model).items() if not np.array_equal(before[x], y)}
    expected = {x.path for x in model.weights if "lora" in x.name}
    expected |= {f"{x}/{y}" for x in ("pooler", "classifier") for y in ("kernel", "bias")}
    assert changed == expected

    classifier = TextClassifier(model, tokenizer)
    save_run(classifier.save, tmp_path / "run", base, 2)
    (first,) = classifier.classify(["abc"])
    for folder in (tmp_path / "run", tmp_path / "run" / "adapter"):
        model = TextClassifier.load(folder).model
        for path, value in values(model).items():
            np.testing.assert_allclose(value, values(merged(classifier.model))[path], atol=1e-6)
    (again,) = TextClassifier(model, tokenizer).classify(["abc"])
    assert [x.label for x in again] == [x.label for x in first]
    size, whole = (
        sum(x.stat().st_size for x in folder.iterdir() if x.is_file())
        for folder in (tmp_path / "run" / "adapter", tmp_path / "run")
    )
    assert size < whole
    Adapters(start.with_head("sequence_classification", **head)).load(tmp_path / "run" / "adapter")


@pytest.mark.once("made of parts that are tested under each backend")
def test_a_head_with_the_same_labels_is_kept(base):
    start, _ = read_encoder(base)
    trained = fine_tuned(start, "token_classification", labels=LABELS)
    kept = fine_tuned(trained, "token_classification", labels=LABELS, dropout=0.3, precision=None)
    assert kept.config.dropout == 0.3 and kept is not trained
    for path, value in values(kept).items():
        np.testing.assert_array_equal(value, values(trained)[path])
    other = fine_tuned(trained, "token_classification", labels=("a", "b"))
    assert other.output_shape[-1] == 2
    assert fine_tuned(start, "masked_lm").config.head == "masked_lm"


def test_a_vit_gets_positions_for_other_sizes(tmp_path, randomize):
    sizes = dict(d_model=8, d_ff=8, num_layers=1, num_heads=2, patch_size=4)
    start = randomize(ViT(ViTConfig(5, image_size=8, **sizes)))
    ImageEmbedder(start, ImageFormat([0.5] * 3, [0.5] * 3)).save(tmp_path)
    model = fine_tuned_vit(tmp_path, (16, 8, 3), 2, dropout=0.0, lora_rank=2)
    found, old = values(model), values(start)
    assert found["embedding/positions"].shape == (1 + 4 * 2, 8)
    assert found["head/kernel"].shape == (8, 2)
    for path, value in old.items():
        if path not in ("embedding/positions", "head/kernel", "head/bias"):
            np.testing.assert_array_equal(found[path], value)
    trained = {x.path for x in model.trainable_weights if "lora" not in x.name}
    assert trained == {"head/kernel", "head/bias", "embedding/positions"}
    for shape, message in (
        ((8, 8, 1), "the channels of the images must be 3, as of .*, got 1"),
        ((9, 8, 3), "image_size must be one or two multiples of patch_size=4"),
    ):
        with pytest.raises(ValueError, match=message):
            fine_tuned_vit(tmp_path, shape, 2, dropout=0.0)


def test_bad_input(base, tmp_path):
    with pytest.raises(ValueError, match="lora_rank must be 0 without --start-from: .*, got 2"):
        check_lora(2, None)
    with pytest.raises(ValueError, match="lora_rank must be a whole number of at least 0, got -1"):
        check_lora(-1, base)
    check_lora(0, None)
    save_folder(tmp_path, tiny("llama"), None, {"task": "x"})
    with pytest.raises(ValueError, match="is not a saved ViT but a LLaMA"):
        fine_tuned_vit(tmp_path, (8, 8, 3), 2, dropout=0.0)
    with pytest.raises(ValueError, match="is not a saved encoder: it has no tokenizer.json"):
        read_encoder(tmp_path)


def write_lines(folder):
    """Lines of words that BERT's pieces know, and of residues."""
    (folder / "lines.txt").write_text("the good film\na bad film\nLAGVLA\nVVGL\n")
    return [folder / "lines.txt"], folder / "lines.txt"


RUNS = encoders.SCRIPTS | {"masks": (masked_language_model, write_lines)}
ENCODERS = [(encoders.write_bert, task) for task in RUNS]
ENCODERS += [(encoders.write_roberta, "masks"), (encoders.write_albert, "masks")]
ENCODERS += [(encoders.write_esm, "tokens")]
ENCODERS += [(encoders.write_distilbert, "texts"), (encoders.write_electra, "questions")]
ENCODERS += [(encoders.write_xlm_roberta, "tokens"), (encoders.write_deberta, "masks")]
EVERY = [*ENCODERS, (encoders.write_roberta, "texts"), (encoders.write_albert, "tokens")]
EVERY += [(encoders.write_esm, "masks")]


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """`imported(write)`: the folder of an imported encoder."""
    folders = {}

    def start(write):
        if write not in folders:
            source, folders[write] = (tmp_path_factory.mktemp(name) for name in ("a", "b"))
            write(source)
            load_pretrained(source).save(folders[write])
        return folders[write]

    return start


ONCE = pytest.mark.once("scripts know no backend; tests/models/test_lora.py trains under each")
STEPS = dict(epochs=1, warmup_steps=1, peak_learning_rate=0.05)


@ONCE
@pytest.mark.parametrize("encoder,task", sample(EVERY, *ENCODERS))
def test_scripts_leave_an_adapter_of_each_encoder(encoder, task, imported, tmp_path):
    start, output, (script, write) = imported(encoder), tmp_path / "run", RUNS[task]
    files = write(tmp_path)
    script.train(*files, output=output, start_from=start, lora_rank=2, **STEPS)
    base, tokenizer = load_with_tokenizer(start, "encoder")
    whole, adapter = (
        load_with_tokenizer(folder, "encoder")[0] for folder in (output, output / "adapter")
    )
    assert whole.config == adapter.config and whole.config.head != "hidden"
    found, expected, old = values(adapter), values(whole), values(base)
    for path, value in found.items():
        np.testing.assert_allclose(value, expected[path], atol=1e-6)
    kernel = "encoder/block_0/feed_forward/hidden/kernel"
    kernel = kernel if kernel in old else next(x for x in old if x.endswith("hidden/kernel"))
    assert np.abs(found[kernel] - old[kernel]).max() > 1e-3
    np.testing.assert_array_equal(
        found["embedding/tokens/embeddings"], old["embedding/tokens/embeddings"]
    )
    assert tokenizer.fingerprint() == TextTokenizer.read(output / "adapter").fingerprint()
    card = (output / "adapter" / "README.md").read_text("utf-8")
    assert f"| adapter base | {start.name} |" in card and "| adapter rank | 2 |" in card
    assert "| lora_rank | 2 |" in card and f"| `{files[-1].name}` |" in card  # of the run


@ONCE
def test_a_protein_tagger_by_lora(structures, imported, tmp_path):
    options = dict(lora_rank=2, **biology.STEPS | STEPS)
    start = imported(encoders.write_esm)
    protein.train(structures, tmp_path / "run", start_from=start, **options)
    adapter, _ = load_with_tokenizer(tmp_path / "run" / "adapter", "tagger")
    assert adapter.config.labels == ("C", "E", "H")
    with pytest.raises(ValueError, match="pretraining_epochs must be 0 with --lora-rank"):
        protein.train(
            structures, tmp_path / "other", start_from=start, pretraining_epochs=1, **options
        )


@ONCE
@pytest.mark.parametrize("lora_rank", sample([0, 2], 2))
def test_images_from_a_vit(lora_rank, rng, tmp_path):
    senses.write_digits(tmp_path / "mnist", rng)
    sizes = dict(d_model=8, d_ff=8, num_layers=1, num_heads=2, patch_size=14, num_channels=1)
    save_folder(tmp_path / "vit", ViT(ViTConfig(3, image_size=42, **sizes)), None, {"task": "x"})
    options = dict(data_folder=tmp_path, epochs=1, batch_size=8, start_from=tmp_path / "vit")
    image_classification.train(output=tmp_path / "run", lora_rank=lora_rank, **options)
    folders = [tmp_path / "run"] + [tmp_path / "run" / "adapter"] * (lora_rank > 0)
    models = [load_model(x, read_config(x, "model"), None, None) for x in folders]
    for model in models:
        assert model.config.num_classes == 10 and model.config.image_size == (28, 28)
        for path, value in values(model).items():
            np.testing.assert_allclose(value, values(models[0])[path], atol=1e-6)
    assert (tmp_path / "run" / "adapter").exists() == (lora_rank > 0)


@ONCE
@pytest.mark.parametrize("lora_rank", sample([0, 2], 2))
def test_a_llama_in_hugging_faces_layout(lora_rank, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("to be or not to be that is the question\n" * 20)
    tokenizer = TextTokenizer.train([text.read_text()], "characters")
    write_model(tmp_path / "llama", tiny("llama"))
    tokenizer.save(tmp_path / "llama")
    options = dict(text=[text], output=tmp_path / "run", length=16, rows=8, warmup_steps=1)
    options |= dict(start_from=tmp_path / "llama", lora_rank=lora_rank, peak_learning_rate=0.05)
    language_model.train(**options, steps=4, steps_per_epoch=4)
    found = CausalLM.load(tmp_path / "run")
    start = CausalLM.from_pretrained(tmp_path / "llama")
    lines = ["to be or not"]
    assert found.score(lines)[0] > start.score(lines)[0]
    if lora_rank:
        adapted = CausalLM.load(tmp_path / "run" / "adapter")
        np.testing.assert_allclose(adapted.score(lines), found.score(lines), atol=1e-4)


def write_whisper(folder):
    """A tiny Whisper of two languages, which pads its clips."""
    special = ["<|startoftranscript|>", "<|en|>", "<|de|>", "<|transcribe|>", "<|translate|>"]
    tokenizer = TextTokenizer.train(["zero one two three four five"], "bytes", 300)
    tokenizer = tokenizer.with_special_tokens([*special, "<|notimestamps|>"])
    end = tokenizer.id_of("<|endoftext|>")
    ids = dict(pad_id=end, bos_id=tokenizer.id_of(special[0]), eos_id=end)
    sizes = dict(d_model=8, num_encoder_layers=1, num_decoder_layers=1, num_heads=2, num_mels=8)
    config = SpeechConfig(tokenizer.vocab_size, **sizes, **ids, max_frames=64, max_length=16)
    transcriber = Transcriber(Speech(config), tokenizer, Hearing(16000))
    transcriber.save(folder)
    return transcriber


@ONCE
@pytest.mark.parametrize("lora_rank", sample([0, 2], 2))
def test_speech_from_a_whisper(lora_rank, rng, tmp_path):
    start = write_whisper(tmp_path / "whisper")
    assert sorted(start.languages) == ["de", "en"]
    senses.write_clips(tmp_path / "fsdd", rng)
    options = dict(data_folder=tmp_path, epochs=1, batch_size=2, start_from=tmp_path / "whisper")
    speech_recognition.train(output=tmp_path / "run", lora_rank=lora_rank, **options)
    assert read_metrics(tmp_path / "run")["test"]["clips"] == 2
    found = Transcriber.load(tmp_path / "run")
    assert found.hearing == dataclasses.replace(start.hearing, pads_clips=False)
    assert found.tokenizer.fingerprint() == start.tokenizer.fingerprint()
    if lora_rank:
        adapter = Transcriber.load(tmp_path / "run" / "adapter")
        for path, value in values(adapter.model).items():
            np.testing.assert_allclose(value, values(found.model)[path], atol=1e-6)
    config = dataclasses.replace(start.model.config, max_length=6)
    Transcriber(Speech(config), start.tokenizer, start.hearing).save(tmp_path / "whisper")
    with pytest.raises(ValueError, match="tokens of the longest text must be at most 6, the limit"):
        speech_recognition.train(output=tmp_path / "run", **options)
