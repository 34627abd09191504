"""What `info` says of each kind of folder; `cli/test_convert.py` tests other folders."""

import pytest

from keras_transformer import CausalLM, ImageClassifier, Rewarder, TextClassifier, Transcriber
from keras_transformer.models import (
    BERT,
    GPT,
    BERTConfig,
    GPTConfig,
    RewardModel,
    Speech,
    SpeechConfig,
    ViT,
    ViTConfig,
)
from keras_transformer.pretrained import PretrainedModel
from keras_transformer.saved.description import describe
from keras_transformer.speech.hearing import Hearing
from keras_transformer.tasks.image_format import ImageFormat
from keras_transformer.text.text_tokenizer import TextTokenizer
from tests.tasks.small_parser import make_parser

pytestmark = pytest.mark.once("files: no tensor is read")

SIZES = dict(d_model=8, num_layers=1, num_heads=2)


@pytest.fixture(scope="module")
def tokenizer():
    return TextTokenizer.train(["a b"], "characters")


def described(thing, folder):
    thing.save(folder)
    return describe(folder)


def test_language_models_and_reward_models(tokenizer, tmp_path):
    model = GPT(GPTConfig(9, **SIZES, max_length=8), dtype="bfloat16")
    facts = described(CausalLM(model, tokenizer), tmp_path / "writer")
    assert facts["task"] == "causal_lm" and facts["family"] == "GPT"
    assert facts["used by"] == "CausalLM and the command generate"
    assert facts["precision"] == "bfloat16" and facts["max_length"] == 8
    assert facts["parameters"] == f"{model.count_params():,}"
    facts = described(Rewarder(RewardModel.on(model), tokenizer), tmp_path / "reward")
    assert facts["family"] == "RewardModel on GPT" and facts["used by"] == "Rewarder"
    assert facts["vocab_size"] == 9 and "base" not in facts


def test_encoders(tokenizer, tmp_path):
    sizes = SIZES | dict(vocab_size=9, max_length=8, labels=("no", "yes"))
    bert = BERT(BERTConfig(**sizes, head="sequence_classification"))
    classifier = TextClassifier(bert, tokenizer, letters_per_word=2)
    facts = described(classifier, tmp_path / "classifier")
    embedder = "TextEmbedder and the command embed"
    assert facts["used by"] == f"TextClassifier and the command classify, {embedder}"
    assert facts["labels"] == ["no", "yes"] and facts["letters_per_word"] == 2
    assert facts["tokenizer"] == "TextTokenizer" and facts["family"] == "BERT"
    facts = described(PretrainedModel(bert.with_head("masked_lm"), tokenizer), tmp_path / "bert")
    assert facts["task"] == "pretrained"
    assert facts["used by"] == f"MaskFiller and the command fill, {embedder}"
    bare = PretrainedModel(bert.with_head("pooled"), tokenizer)
    assert described(bare, tmp_path / "bare")["used by"] == embedder


def test_images_and_speech(tokenizer, tmp_path):
    vit = ViT(ViTConfig(2, image_size=4, patch_size=4, num_channels=1, **SIZES))
    classifier = ImageClassifier(vit, ["no", "yes"], ImageFormat([0.1], [0.3]))
    classifier.save(tmp_path / "vit")
    facts = described(ImageClassifier.load(tmp_path / "vit", "int8"), tmp_path / "eight")
    assert facts["used by"] == "ImageClassifier and the command see"
    assert facts["classes"] == ["no", "yes"] and facts["mean"] == [0.1]
    assert facts["precision"] == "int8" and "tokenizer" not in facts
    ids = dict(pad_id=6, bos_id=7, eos_id=0, max_frames=24, max_length=8)
    blocks = dict(num_encoder_layers=1, num_decoder_layers=1, d_model=8, num_heads=2)
    speech = Speech(SpeechConfig(8, num_mels=4, **blocks, **ids))
    facts = described(
        Transcriber(speech, tokenizer, Hearing(8000, suppressed=(1,))), tmp_path / "s"
    )
    assert facts["sample_rate"] == 8000 and "suppressed" not in facts
    assert facts["used by"] == "Transcriber and the command transcribe"


def test_parsers(randomize, tmp_path):
    facts = described(make_parser(randomize), tmp_path)
    assert facts["task"] == "parsing" and facts["used by"] == "Parser and the command parse"
    assert facts["family"] == "Transformer" and facts["tokenizer"] == "WordTokenizer"
    assert facts["precision"] == "float32"
