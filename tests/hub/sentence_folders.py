"""Folders of sentence-transformers, and vectors beside theirs."""

import json

import numpy as np
import sentence_transformers
import tokenizers
import torch
import transformers
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.sentence_transformer.modules import Dropout, LayerNorm, Pooling

from keras_transformer import TextEmbedder, load_pretrained

PIECES = "[PAD] [UNK] [CLS] [SEP] [MASK] good bad film the a ##s query : GOOD".split()
TEXTS = ["a good film", "the bad films the good film a film", "bad", "A GOOD film"]
PROMPTS = {"query": "query : ", "document": "the : "}


def write_source(folder):
    """Write a bare BERT that tells case, by `transformers`; return the folder."""
    config = transformers.BertConfig(
        vocab_size=len(PIECES), hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
        intermediate_size=24, max_position_embeddings=16, initializer_range=0.5,
    )  # fmt: skip
    torch.manual_seed(0)
    transformers.BertModel(config).save_pretrained(folder)
    (folder / "vocab.txt").write_text("\n".join(PIECES))
    tokenizer = transformers.BertTokenizerFast(str(folder / "vocab.txt"), do_lower_case=False)
    tokenizer.save_pretrained(folder)
    return folder


def write_decoder(folder, model, **options):
    """Write a bare decoder, whose tokenizer pads with the token that ends each text."""
    end = "<|end|>"
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = tokenizers.decoders.ByteLevel()
    alphabet = tokenizers.pre_tokenizers.ByteLevel.alphabet()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=280, special_tokens=[end], initial_alphabet=alphabet
    )
    tokenizer.train_from_iterator(TEXTS, trainer)
    tokenizer.post_processor = tokenizers.processors.Sequence(
        [
            tokenizers.processors.ByteLevel(trim_offsets=False),
            tokenizers.processors.TemplateProcessing(
                single=f"$A {end}", pair=f"$A {end} $B {end}", special_tokens=[(end, 0)]
            ),
        ]
    )
    fast = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token=end, eos_token=end, padding_side="left"
    )
    fast.save_pretrained(folder)
    config = getattr(transformers, f"{model}Config")(
        vocab_size=len(fast), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        num_key_value_heads=1, head_dim=8, intermediate_size=24, max_position_embeddings=64,
        pad_token_id=0, bos_token_id=0, eos_token_id=0, tie_word_embeddings=True,
        initializer_range=0.5, **options,
    )  # fmt: skip
    torch.manual_seed(0)
    getattr(transformers, f"{model}Model")(config).save_pretrained(folder)
    return folder


def written(source, folder, modules=(), transformer=None, **options):
    """The folder of a SentenceTransformer with these modules, by default a pooling."""
    torch.manual_seed(1)
    first = Transformer(str(source), **(transformer or {}))
    modules = [make() for make in modules] or [Pooling(16)]
    model = sentence_transformers.SentenceTransformer(modules=[first, *modules], **options)
    model.save(str(folder))
    return folder


def edit(path, **changes):
    facts = json.loads(path.read_text()) if path.is_file() else {}
    path.write_text(json.dumps(facts | changes))


def check(folder, tmp_path, texts=TEXTS, theirs=None, **asked):
    """Our vectors, imported and saved, are those of sentence-transformers."""
    theirs = theirs or sentence_transformers.SentenceTransformer(str(folder))
    load_pretrained(folder).save(tmp_path / "ours")
    found = TextEmbedder.load(tmp_path / "ours")
    vectors = found.embed(texts, normalize=False, **asked)
    expected = theirs.encode(texts, batch_size=2, **asked)
    assert found.dimension == vectors.shape[1] == expected.shape[1]
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    return found, theirs


def write_whole(folder, source):
    """Write a folder with every module; return it."""
    modules = [
        lambda: Pooling(16), lambda: Dense(16, 8), lambda: LayerNorm(8), Normalize, Dropout
    ]  # fmt: skip
    return written(source, folder, modules, prompts=PROMPTS)
