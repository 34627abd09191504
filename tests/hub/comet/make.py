"""Make the tiny COMET models of this folder, and the scores that `unbabel-comet` gives them.

    python tests/hub/comet/make.py

It needs an environment of its own with unbabel-comet 2.2.7 and transformers 4.57, which conflict
with the versions that this package is tested with. The weights are random.
"""

import json
import os
from pathlib import Path

import sentencepiece
import torch
import transformers
import yaml
from comet.models import load_from_checkpoint, str2model

HERE = Path(__file__).parent
ENCODER = HERE / "encoder"
SAMPLES = [
    {"src": "the old man loves the dog", "mt": "der alte Mann liebt den Hund",
     "ref": "der alte Mann mag den Hund"},
    {"src": "the dog", "mt": "der Hund", "ref": "der Hund"},
    {"src": "she does not see two cats", "mt": "sie sieht zwei Katzen",
     "ref": "sie sieht zwei Katzen nicht"},
    {"src": "a cat sleeps " * 9, "mt": "eine Katze liebt " * 9, "ref": "eine Katze mag " * 9},
    {"src": "the dog sleeps", "mt": "der Hund", "ref": "den Hund mag sie nicht"},
]  # fmt: skip
COMMON = dict(
    encoder_model="XLM-RoBERTa", pretrained_model=str(ENCODER), hidden_sizes=[24, 12],
    nr_frozen_epochs=0.3, load_pretrained_weights=False,
)  # fmt: skip
MODELS = {
    "regression": dict(
        class_identifier="regression_metric", layer_transformation="sparsemax", layer_norm=False
    ),
    "referenceless": dict(
        class_identifier="referenceless_regression_metric", layer_transformation="softmax",
        layer_norm=True, pool="cls", final_activation="Sigmoid",
    ),
    "one_layer": dict(class_identifier="regression_metric", layer=2, pool="max"),
    "kiwi": dict(
        class_identifier="unified_metric", input_segments=["mt", "src"], layer_norm=True,
        sent_layer="mix", layer_transformation="sparsemax", word_layer=2, word_level_training=True,
    ),
    "unified": dict(
        class_identifier="unified_metric", input_segments=["mt", "src", "ref"], layer_norm=False,
        sent_layer="mix", layer_transformation="sparsemax_patch",
    ),
}  # fmt: skip


def make_encoder() -> None:
    """Write the config and the tokenizer of the encoder."""
    ENCODER.mkdir(exist_ok=True)
    texts = [text for sample in SAMPLES for text in sample.values()]
    prefix = ENCODER / "sentencepiece.bpe"
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_prefix=str(prefix), vocab_size=90,
        normalization_rule_name="identity", hard_vocab_limit=False,
    )  # fmt: skip
    prefix.with_suffix(".bpe.vocab").unlink()
    size = len(transformers.XLMRobertaTokenizerFast.from_pretrained(ENCODER))
    config = transformers.XLMRobertaConfig(
        vocab_size=size, hidden_size=16, intermediate_size=32, num_hidden_layers=3,
        num_attention_heads=2, max_position_embeddings=42, type_vocab_size=1,
        layer_norm_eps=1e-5, initializer_range=0.3,
    )  # fmt: skip
    config.save_pretrained(ENCODER)


def make_model(name: str, options: dict) -> None:
    """Write the checkpoint of a model, its settings, and its scores."""
    folder = HERE / name
    (folder / "checkpoints").mkdir(parents=True, exist_ok=True)
    settings = COMMON | options
    kind = settings["class_identifier"]
    model = str2model[kind](**{k: x for k, x in settings.items() if k != "class_identifier"})
    torch.manual_seed(1)
    for weight in model.parameters():  # layers with equal shares would not show their order
        weight.data += 0.3 * torch.randn_like(weight)
    stored = {k: x for k, x in settings.items() if k != "load_pretrained_weights"}
    checkpoint = {
        "state_dict": model.state_dict(),
        "hyper_parameters": stored,
        "pytorch-lightning_version": "1.8.6",
        "epoch": 1,
        "global_step": 1,
    }
    path = folder / "checkpoints" / "model.ckpt"
    (folder / "hparams.yaml").write_text(yaml.safe_dump(stored))
    torch.save(checkpoint, path)
    scores = {"with_reference": scored(path, SAMPLES)}
    if kind == "unified_metric":
        alone = [{k: sample[k] for k in ("src", "mt")} for sample in SAMPLES]
        scores["without_reference"] = scored(path, alone)
    # The folder of the encoder on this machine is not written: its files lie beside the settings.
    stored["pretrained_model"] = "xlm-roberta-large"
    (folder / "hparams.yaml").write_text(yaml.safe_dump(stored))
    torch.save(checkpoint, path)
    text = json.dumps({"samples": SAMPLES, **scores}, indent=1, ensure_ascii=False)
    (folder / "scores.json").write_text(text + "\n")


def scored(path: Path, samples: list[dict[str, str]]) -> list[float]:
    """Return the scores of the samples in one batch, by the checkpoint at `path`."""
    model = load_from_checkpoint(str(path)).eval()
    with torch.no_grad():
        batch = model.prepare_sample(samples, stage="predict")
        return model.predict_step(batch)["scores"].tolist()


if __name__ == "__main__":
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    make_encoder()
    for name, options in MODELS.items():
        torch.manual_seed(0)
        make_model(name, options)
