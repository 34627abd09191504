"""Folders of small models of random weights, one for each task of a server."""

from keras_transformer import load_pretrained
from keras_transformer.models import BERT, BERTConfig, ViT, ViTConfig
from keras_transformer.tasks.image_classifier import ImageClassifier
from keras_transformer.tasks.image_format import ImageFormat
from keras_transformer.tasks.mask_filler import MaskFiller
from keras_transformer.tasks.question_answerer import QuestionAnswerer
from keras_transformer.tasks.text_classifier import TextClassifier
from keras_transformer.tasks.text_scorer import TextScorer
from keras_transformer.tasks.token_tagger import TokenTagger
from keras_transformer.text.text_tokenizer import TextTokenizer
from tests.pretrained_files import whisper_folder
from tests.tasks.small_parser import make_parser

SIZES = dict(d_model=16, d_ff=24, num_layers=1, num_heads=2, dropout=0.0)
ENCODERS = {
    "classes": (TextClassifier, "sequence_classification", ["no", "yes", "maybe"]),
    "scores": (TextScorer, "sequence_classification", ["fits"]),
    "tags": (TokenTagger, "token_classification", ["O", "B-person", "I-person"]),
    "masks": (MaskFiller, "masked_lm", ()),
    "answers": (QuestionAnswerer, "span_extraction", ()),
}


def make_folders(folder, randomize):
    """Write the folders; return name -> path."""
    tokenizer = TextTokenizer.train(["a good film", "the bad films"] * 9, "wordpiece", 40)
    objects = {}
    for seed, (name, (kind, head, labels)) in enumerate(ENCODERS.items()):
        own = dict(max_length=24, head=head, **({"labels": labels} if labels else {}))
        model = BERT(BERTConfig(tokenizer.vocab_size, **SIZES, **own))
        objects[name] = kind(randomize(model, seed=seed), tokenizer)
    vit = ViT(ViTConfig(3, image_size=8, patch_size=4, **SIZES))
    image_format = ImageFormat([0.5] * 3, [0.5] * 3)
    objects["pictures"] = ImageClassifier(randomize(vit), ["x", "y", "z"], image_format)
    objects["trees"] = make_parser(randomize)
    (folder / "whisper").mkdir()
    objects["speech"] = load_pretrained(whisper_folder(folder / "whisper"))
    for name, one in objects.items():
        one.save(folder / name)
    return {name: folder / name for name in objects}
