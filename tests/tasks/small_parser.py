"""A parser of random weights: every answer is a tree all the same."""

from keras_transformer.config import TransformerConfig
from keras_transformer.data.trees import linearize, read_trees
from keras_transformer.models import Transformer
from keras_transformer.tasks.parser import Parser
from keras_transformer.text import WordTokenizer

TREES = "(S (NP (DT the) (NN cat)) (VP (VBD sat)) (. .)) (S (NP (DT a) (NN mat)) (VP (VBD is)))"
SENTENCES = ["the cat sat .", "a mat", "the mat is the cat is a mat", "a"]
MAX_LENGTH = 40


def make_parser(randomize):
    trees = read_trees(TREES)
    sentences, lines = [" ".join(x.words()) for x in trees], [linearize(x, True) for x in trees]
    words = WordTokenizer.train(sentences, lines, min_count=1)
    sides = words.source_vocab_size, words.target_vocab_size
    sizes = dict(d_model=8, d_ff=8, num_heads=2, num_encoder_layers=1, num_decoder_layers=1)
    config = TransformerConfig(*sides, **sizes, max_length=MAX_LENGTH, share_embeddings=False)
    return Parser(randomize(Transformer(config), 3.0), words)
