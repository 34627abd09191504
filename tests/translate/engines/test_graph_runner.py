"""The program beside exported ONNX graphs: its beam search against enumeration.

The graphs are written by hand: logits depend on all tokens so far, by way of the cache, and on the
source, so that a wrong order of the cache or a wrong source changes the translation.
"""

import itertools
import json

import numpy as np
import pytest

from keras_transformer.text import SentencePieceTokenizer

onnx = pytest.importorskip("onnx")
pytest.importorskip("onnxruntime")

from onnx import TensorProto, helper, numpy_helper  # noqa: E402

from keras_transformer.translate.engines.graph_runner import GraphTranslator  # noqa: E402

PAD, EOS, BOS, A, B, C = range(6)
TARGET = ["<pad>", "</s>", "<s>", "▁a", "▁b", "▁c"]
TABLE = np.random.default_rng(4).normal(0, 1.5, (60, 6)).astype("float32")
EFFECT = np.array([0, 0, 0, 0.3, -0.3, 0.1], "float32")
TEXTS = ["a", "b a", "c c b"]


def value(name, kind, *shape):
    return helper.make_tensor_value_info(name, kind, shape)


def save(path, nodes, inputs, outputs, constants):
    constants = [numpy_helper.from_array(x, name) for name, x in constants.items()]
    graph = helper.make_graph(nodes, "graph", inputs, outputs, constants)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.save(model, path)


def write_encoder(path):
    """Write the ids as keys (B, 1, S, 1), and a mask of those that are not padding."""
    nodes = [
        helper.make_node("Unsqueeze", ["source_ids", "axes"], ["ids"]),
        helper.make_node("Cast", ["ids"], ["cross_key_0"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["ids"], ["is_token"], to=TensorProto.BOOL),
        helper.make_node("Cast", ["is_token"], ["source_mask"], to=TensorProto.FLOAT),
    ]
    outputs = [value(x, TensorProto.FLOAT, "b", 1, "s", 1) for x in ("source_mask", "cross_key_0")]
    axes = {"axes": np.array([1, 3])}
    save(path, nodes, [value("source_ids", TensorProto.INT64, "b", "s")], outputs, axes)


def write_decoder(path):
    """Write TABLE[sum of all tokens] + EFFECT * sum of the source; the cache holds the tokens."""
    nodes = [
        helper.make_node("Unsqueeze", ["token_ids", "token_axes"], ["ids"]),
        helper.make_node("Cast", ["ids"], ["token"], to=TensorProto.FLOAT),
        helper.make_node("Concat", ["past_key_0", "token"], ["present_key_0"], axis=2),
        helper.make_node("ReduceSum", ["present_key_0", "axes"], ["sum"], keepdims=0),
        helper.make_node("Cast", ["sum"], ["row"], to=TensorProto.INT64),
        helper.make_node("Gather", ["table", "row"], ["from_target"], axis=0),
        helper.make_node("Mul", ["cross_key_0", "source_mask"], ["source"]),
        helper.make_node("ReduceSum", ["source", "source_axes"], ["source_sum"], keepdims=0),
        helper.make_node("Mul", ["source_sum", "effect"], ["from_source"]),
        helper.make_node("Add", ["from_target", "from_source"], ["logits"]),
    ]
    cross = [value(x, TensorProto.FLOAT, "b", 1, "s", 1) for x in ("source_mask", "cross_key_0")]
    inputs = [value("token_ids", TensorProto.INT64, "b", 1), *cross]
    inputs.append(value("past_key_0", TensorProto.FLOAT, "b", 1, "t", 1))
    outputs = [value("logits", TensorProto.FLOAT, "b", 6)]
    outputs.append(value("present_key_0", TensorProto.FLOAT, "b", 1, "u", 1))
    constants = dict(
        token_axes=np.array([1, 3]),
        axes=np.array([1, 2, 3]),
        source_axes=np.array([1, 2]),
        table=TABLE,
        effect=EFFECT,
    )
    save(path, nodes, inputs, outputs, constants)


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    """`translator(**facts)`: the program over the graphs, with changes of `translator.json`."""
    folder = tmp_path_factory.mktemp("graphs")
    write_encoder(folder / "encoder.onnx")
    write_decoder(folder / "decoder.onnx")
    texts = [" ".join(words) for words in itertools.product("abc", repeat=3)]
    tokenizer = SentencePieceTokenizer.train(texts, texts, vocab_size=16, byte_fallback=False)
    for name in ("source", "target"):
        (folder / f"{name}.spm").write_bytes(tokenizer.source_model)
    plain = dict(
        pad_id=PAD, bos_id=BOS, eos_id=EOS, unk_id=6, never_ids=[PAD, BOS], max_length=8,
        skipped_ids=[PAD, EOS, BOS], symbols="", source_frame=[[], [EOS]], target_frame=[[], [EOS]],
        source_pieces=[*TARGET, "<unk>", ">>x<<"], target_pieces=TARGET,
    )  # fmt: skip

    def build(**facts):
        (folder / "translator.json").write_text(json.dumps(plain | facts))
        return GraphTranslator(folder)

    return build


def source_of(program, text):
    pieces = program.source.encode(text, out_type=str)
    return [*(program.source_ids.get(piece, 6) for piece in pieces), EOS]


def log_probs(source, tokens):
    logits = TABLE[BOS + sum(tokens)].astype("float64") + EFFECT * sum(source)
    return logits - np.log(np.exp(logits).sum())


def ranked(source, limit, alpha, first=(), ends=(EOS,)):
    """Return the (score, tokens) of all target texts up to the limit, the best first."""
    found = []
    for size in range(limit):
        for words in itertools.product(sorted({A, B, C} - {*ends}), repeat=size):
            for ids in [(*words, end) for end in ends]:
                total = sum(log_probs(source, ids[:i])[x] for i, x in enumerate(ids))
                if ids[: len(first)] == first:
                    found.append((total / ((5 + len(ids)) / 6) ** alpha, ids[:-1]))
    return sorted(found, reverse=True)


def text_of(tokens):
    return " ".join(TARGET[i].strip("▁") for i in tokens)


@pytest.mark.parametrize("alpha", [0.0, 1.0])
@pytest.mark.parametrize("text", TEXTS)
def test_a_wide_beam_finds_the_best_of_all(translator, text, alpha):
    program = translator()
    source = source_of(program, text)
    options = dict(beam_size=40, length_penalty=alpha, max_extra_length=4 - len(source))
    _, best = ranked(source, 4, alpha)[0]
    assert program.translate(text, **options) == text_of(best)


def test_texts_have_different_translations(translator):
    program = translator()
    assert len({program.translate(text, max_extra_length=1) for text in TEXTS}) > 1


@pytest.mark.parametrize("text", TEXTS)
def test_a_beam_of_one_is_greedy(translator, text):
    program = translator()
    source, tokens = source_of(program, text), ()
    while len(tokens) < 3 and EOS not in tokens:
        tokens += (
            int(np.argmax(np.where(np.isin(range(6), (PAD, BOS)), -9, log_probs(source, tokens)))),
        )
    expected = text_of([token for token in tokens if token != EOS])
    options = dict(beam_size=1, length_penalty=0.0, max_extra_length=4 - len(source))
    assert program.translate(text, **options) == expected


def test_forced_tokens_and_several_ends(translator):
    program = translator(target_frame=[[C], [EOS]])
    source = source_of(program, "a")
    options = dict(beam_size=40, length_penalty=0.0, max_extra_length=4 - len(source))
    _, best = ranked(source, 4, 0.0, first=(C,))[0]
    assert program.translate("a", **options) == text_of(best)
    program = translator(eos_id=[EOS, B], skipped_ids=[PAD, EOS, BOS, B])
    _, best = ranked(source, 4, 0.0, ends=(EOS, B))[0]
    assert program.translate("a", **options) == text_of(best)


def test_a_symbol_is_one_token_of_the_source(translator):
    program = translator(symbols=">>.<<")
    source = [7, *source_of(program, "a")]
    options = dict(beam_size=40, length_penalty=0.0, max_extra_length=4 - len(source))
    _, best = ranked(source, 4, 0.0)[0]
    assert program.translate(">>x<<a", **options) == text_of(best)


def test_a_long_text_is_cut_and_an_empty_one_is_empty(translator):
    program = translator(max_length=5)
    source = [*source_of(program, "a b c a")[:4], EOS]
    _, best = ranked(source, 4, 0.0)[0]
    options = dict(beam_size=40, length_penalty=0.0, max_extra_length=9)
    assert program.translate("a b c a b c", **options) == text_of(best)
    assert program.translate("") == ""
