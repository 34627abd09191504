"""Checkpoints of Hugging Face's families: what `transformers` computes, we compute."""

import json
import shutil

import numpy as np
import pytest
import torch
import transformers
from keras import ops
from safetensors.numpy import load_file, save_file
from safetensors.torch import save_file as save_tensors

from keras_transformer.checkpoints.hugging_face import Checkpoint, read_model, write_model
from keras_transformer.ops import BACKEND, compiled
from keras_transformer.search import Search

VOCABULARY = 53
BART = dict(
    vocab_size=VOCABULARY,
    d_model=16,
    encoder_layers=2,
    decoder_layers=2,
    encoder_ffn_dim=24,
    decoder_ffn_dim=24,
    encoder_attention_heads=4,
    decoder_attention_heads=4,
    max_position_embeddings=64,
)
MARIAN = BART | dict(pad_token_id=52, decoder_start_token_id=52, eos_token_id=0)
T5 = dict(vocab_size=VOCABULARY, d_model=16, d_kv=6, d_ff=24, num_layers=2, num_heads=3)
T5 |= dict(decoder_start_token_id=0)


def marian(**changes):
    return transformers.MarianMTModel(transformers.MarianConfig(**MARIAN | changes))


def m2m(**changes):
    config = transformers.M2M100Config(**BART | changes)
    return transformers.M2M100ForConditionalGeneration(config)


def mbart(**changes):
    config = transformers.MBartConfig(**BART | dict(decoder_start_token_id=2) | changes)
    return transformers.MBartForConditionalGeneration(config)


def pegasus():
    sizes = BART | dict(activation_function="relu", scale_embedding=True)
    config = transformers.PegasusConfig(**sizes, decoder_start_token_id=0)
    return transformers.PegasusForConditionalGeneration(config)


def t5(**changes):
    return transformers.T5ForConditionalGeneration(transformers.T5Config(**T5 | changes))


def t5_untied(**changes):
    model = t5(tie_word_embeddings=False, **changes)
    model.lm_head.weight = torch.nn.Parameter(torch.empty(VOCABULARY, 16))
    return model


def mt5():
    config = transformers.MT5Config(**T5 | dict(feed_forward_proj="gated-gelu"))
    return transformers.MT5ForConditionalGeneration(config)


MODELS = {
    "marian": lambda: marian(activation_function="swish", scale_embedding=True),
    "marian-unscaled-gelu": lambda: marian(d_model=24, encoder_layers=1, decoder_layers=3),
    "marian-two-vocabularies": lambda: marian(
        decoder_vocab_size=VOCABULARY - 12,
        share_encoder_decoder_embeddings=False,
        pad_token_id=40,
        decoder_start_token_id=40,
    ),
    "m2m_100": m2m,
    "m2m_100-wide": lambda: m2m(d_model=24, encoder_ffn_dim=40, decoder_ffn_dim=40),
    "mbart": lambda: mbart(scale_embedding=True),
    "mbart-relu": lambda: mbart(activation_function="relu", decoder_layers=1),
    "pegasus": pegasus,
    "t5": t5,
    "t5-far": lambda: t5(
        relative_attention_num_buckets=8, relative_attention_max_distance=9, num_decoder_layers=1
    ),
    "t5-gated": lambda: t5(feed_forward_proj="gated-gelu"),
    "t5-begins-with-another": lambda: t5(pad_token_id=1, eos_token_id=2),
    "t5-gated-untied": lambda: t5_untied(feed_forward_proj="gated-silu"),
    "mt5": mt5,
}


@pytest.fixture(scope="module", params=MODELS)
def pair(request, tmp_path_factory):
    """A random model of `transformers`, its folder, and ours read from there."""
    torch.manual_seed(0)
    theirs = MODELS[request.param]().eval()
    with torch.no_grad():
        for name, weight in theirs.named_parameters():
            is_norm = weight.ndim == 1 and name.endswith("weight")
            if not name.endswith("embed_positions.weight") or request.param.startswith("mbart"):
                weight.normal_(1.0 if is_norm else 0.0, 0.3)
        if hasattr(theirs, "final_logits_bias"):
            theirs.final_logits_bias.normal_()
    folder = tmp_path_factory.mktemp(request.param)
    theirs.save_pretrained(folder)
    return theirs, folder, read_model(folder, dtype="float32")


def batch(config):
    """Two sources, one padded, and targets that begin as the decoder's do."""
    rng = np.random.default_rng(0)
    least, most = 3, min(config.source_vocab_size, config.target_vocab_size) - 15
    source, target = rng.integers(least, most, (3, 11)), rng.integers(least, most, (3, 7))
    source[1, 6:] = config.pad_id
    source[2, 10:] = config.pad_id
    target[:, 0] = config.bos_id
    return source.astype("int32"), target.astype("int32")


SEARCHED = ("marian", "m2m_100", "mbart", "t5-gated-untied")
if BACKEND == "torch":  # elsewhere each model and search is a compilation
    SEARCHED = tuple(MODELS)


def test_encoder_and_logits(pair):
    theirs, _, ours = pair
    source, target = batch(ours.config)
    mask = torch.tensor(source != ours.config.pad_id)
    with torch.no_grad():
        expected = theirs(
            input_ids=torch.tensor(source).long(),
            attention_mask=mask.long(),
            decoder_input_ids=torch.tensor(target).long(),
        )
    logits = ops.convert_to_numpy(ours({"source_ids": source, "target_ids": target}))
    np.testing.assert_allclose(logits, expected.logits, atol=1e-4, rtol=1e-4)
    embedded = ours.source_embedding(ops.convert_to_tensor(source))
    keys = ops.convert_to_tensor(mask.numpy()[:, None, None])
    memory = ops.convert_to_numpy(ours.encoder(embedded, attention_mask=keys))
    encoded = expected.encoder_last_hidden_state
    np.testing.assert_allclose(memory[mask], encoded[mask], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("beam_size,length_penalty", [(1, 0.0), (4, 1.0), (3, 2.0)])
def test_generation(pair, beam_size, length_penalty):
    theirs, folder, ours = pair
    if folder.name.rstrip("0") not in SEARCHED:
        pytest.skip("searched on PyTorch alone, to save time")
    config, room = ours.config, 12
    source, _ = batch(config)
    expected = theirs.generate(
        input_ids=torch.tensor(source).long(),
        attention_mask=torch.tensor(source != config.pad_id).long(),
        num_beams=beam_size,
        do_sample=False,
        length_penalty=length_penalty,
        max_length=room + 1,
        forced_eos_token_id=config.eos_id,
        bad_words_ids=[[config.pad_id]],
    ).numpy()[:, 1:]
    search = compiled(
        Search(beam_size, length_penalty, scoring="transformers").function(ours), ours
    )
    limits = ops.convert_to_tensor(np.full(len(source), room, "int32"))
    found, _ = search(ops.convert_to_tensor(source), limits)
    found = ops.convert_to_numpy(found)[:, 0]
    for mine, other in zip(found.tolist(), expected.tolist(), strict=True):
        assert _until_end(mine, config) == _until_end(other, config)


def _until_end(ids, config):
    assert config.eos_id in ids
    return ids[: ids.index(config.eos_id)]


def test_round_trip(pair, tmp_path):
    theirs, folder, ours = pair
    write_model(tmp_path, ours)
    before = load_file(folder / "model.safetensors")
    if theirs.config.model_type == "pegasus":  # it writes its sinusoids, too
        before = {x: y for x, y in before.items() if not x.endswith("embed_positions.weight")}
    assert set(Checkpoint(tmp_path).names()) == set(before)
    for name, value in before.items():
        np.testing.assert_array_equal(load_file(tmp_path / "model.safetensors")[name], value)
    again = type(theirs).from_pretrained(tmp_path).eval()
    source, target = (torch.tensor(x).long() for x in batch(ours.config))
    inputs = dict(input_ids=source, decoder_input_ids=target)
    with torch.no_grad():
        np.testing.assert_array_equal(again(**inputs).logits, theirs(**inputs).logits)


@pytest.fixture
def folder(tmp_path):
    """A small Marian checkpoint, whole."""
    torch.manual_seed(0)
    marian(encoder_layers=1, decoder_layers=1).save_pretrained(tmp_path)
    return tmp_path


def logits(model):
    source, target = batch(model.config)
    return ops.convert_to_numpy(model({"source_ids": source, "target_ids": target}))


def edit(folder, change):
    path = folder / "model.safetensors"
    tensors = load_file(path)
    change(tensors)
    save_file(tensors, path, metadata={"format": "pt"})


def test_shards_and_pickles_hold_the_same(folder, tmp_path_factory):
    expected = logits(read_model(folder))
    tensors = load_file(folder / "model.safetensors")
    pickled = tmp_path_factory.mktemp("pickled")
    shutil.copy(folder / "config.json", pickled)
    weights = {name: torch.tensor(value) for name, value in tensors.items()}
    for archive in (True, False):  # the second as PyTorch before 1.6 wrote them
        path = pickled / "pytorch_model.bin"
        torch.save(weights, path, _use_new_zipfile_serialization=archive)
        np.testing.assert_array_equal(logits(read_model(pickled)), expected)
    path.unlink()
    places = {}
    for i, part in enumerate((sorted(weights)[::2], sorted(weights)[1::2])):
        places |= dict.fromkeys(part, f"pytorch_model-{i}.bin")
        torch.save({name: weights[name] for name in part}, pickled / f"pytorch_model-{i}.bin")
    (pickled / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": places}))
    np.testing.assert_array_equal(logits(read_model(pickled)), expected)
    names = sorted(tensors)
    parts = {"one.safetensors": names[::2], "two.safetensors": names[1::2]}
    for shard, part in parts.items():
        save_file({name: tensors[name] for name in part}, folder / shard)
    places = {name: shard for shard, part in parts.items() for name in part}
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": places}))
    (folder / "model.safetensors").unlink()
    np.testing.assert_array_equal(logits(read_model(folder)), expected)
    places["of_nobody"] = "two.safetensors"
    index.write_text(json.dumps({"weight_map": places}))
    with pytest.raises(ValueError, match="two.safetensors lacks of_nobody, which the index says"):
        read_model(folder)
    (folder / "two.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="its shard two.safetensors is missing"):
        read_model(folder)


def test_sixteen_bits(folder):
    half = {
        k: torch.tensor(v).bfloat16() for k, v in load_file(folder / "model.safetensors").items()
    }
    save_tensors(half, folder / "model.safetensors", metadata={"format": "pt"})
    model = read_model(folder, dtype="float32")
    expected = half["model.encoder.layers.0.fc1.weight"].float().numpy().T
    kernel = model.encoder.blocks[0].feed_forward.hidden.kernel
    np.testing.assert_array_equal(ops.convert_to_numpy(kernel), expected)


def test_tied_copies_and_computed_tables_are_left_out(folder):
    expected = logits(read_model(folder))

    def copies(tensors):
        tensors["lm_head.weight"] = tensors["model.shared.weight"].copy()
        tensors["model.encoder.embed_positions.weight"] = np.zeros((64, 16), "float32")

    edit(folder, copies)
    np.testing.assert_array_equal(logits(read_model(folder)), expected)
    edit(folder, lambda tensors: tensors.pop("model.shared.weight"))
    np.testing.assert_array_equal(logits(read_model(folder)), expected)

    def another(tensors):
        copy = tensors["lm_head.weight"] + 1
        tensors["model.decoder.embed_tokens.weight"] = copy

    edit(folder, another)
    with pytest.raises(ValueError, match="must be equal: they are one weight"):
        read_model(folder)


def test_what_the_first_t5s_had_besides(tmp_path):
    t5().save_pretrained(tmp_path)

    def besides(tensors):
        tensors["lm_head.weight"] = tensors["shared.weight"].copy()
        unused = "decoder.block.0.layer.1.EncDecAttention.relative_attention_bias.weight"
        tensors[unused] = np.zeros((32, 3), "float32")

    edit(tmp_path, besides)
    model = read_model(tmp_path)
    assert model.config.tie_output and model.config.scale_output
    write_model(tmp_path / "mt5", read_model(tmp_path), kind="t5")


def test_forced_first_tokens(tmp_path):
    torch.manual_seed(0)
    theirs = m2m(init_std=0.5).eval()
    theirs.save_pretrained(tmp_path)
    ours = read_model(tmp_path, dtype="float32")
    source, _ = batch(ours.config)
    expected = theirs.generate(
        input_ids=torch.tensor(source).long(),
        attention_mask=torch.tensor(source != ours.config.pad_id).long(),
        num_beams=3,
        length_penalty=1.0,
        max_length=13,
        forced_bos_token_id=7,
        forced_eos_token_id=ours.config.eos_id,
        bad_words_ids=[[ours.config.pad_id]],
    ).numpy()[:, 1:]
    search = compiled(Search(3, 1.0, scoring="transformers").function(ours), ours)
    inputs = source, np.full(len(source), 12, "int32"), np.full((len(source), 1), 7, "int32")
    found = ops.convert_to_numpy(search(*map(ops.convert_to_tensor, inputs))[0])[:, 0]
    for mine, other in zip(found.tolist(), expected.tolist(), strict=True):
        assert mine[0] == 7
        assert _until_end(mine, ours.config) == _until_end(other, ours.config)


@pytest.mark.parametrize(
    "change,message",
    [
        (lambda x: x.update({"model.x": x["final_logits_bias"]}), "what no rule takes: model.x"),
        (lambda x: x.pop("final_logits_bias"), "lack final_logits_bias"),
        (
            lambda x: x.update(final_logits_bias=x["final_logits_bias"][:, :9].copy()),
            r"final_logits_bias in .* must make \(53,\), the shape of .*bias, got \(9,\)",
        ),
        (
            lambda x: x.update({"lm_head.weight": x["model.shared.weight"] + 1}),
            "lm_head.weight and model.shared.weight in .* must be equal",
        ),
    ],
)
def test_weights_that_do_not_fit(folder, change, message):
    edit(folder, change)
    with pytest.raises(ValueError, match=message):
        read_model(folder)


def configure(folder, **changes):
    path = folder / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_configs_that_do_not_fit(folder):
    configure(folder, encoder_ffn_dim=48)
    with pytest.raises(ValueError, match=r"encoder_ffn_dim and decoder_ffn_dim must be equal"):
        read_model(folder)
    configure(folder, encoder_ffn_dim=24, activation_function="mish")
    with pytest.raises(ValueError, match="activation must be one of .*'swish'.*, got 'mish'"):
        read_model(folder)
    configure(folder, activation_function="gelu", eos_token_id=[0, 1])
    with pytest.raises(ValueError, match=r"eos_token_id must be one token's number, got \[0, 1\]"):
        read_model(folder)
    configure(folder, eos_token_id=[0], decoder_start_token_id=None)
    assert read_model(folder).config.bos_id == 52
    configure(folder, model_type="bart")
    with pytest.raises(ValueError, match="model_type in .* must be one of .*'marian'.*'bart'"):
        read_model(folder)
    (folder / "config.json").write_text('{"model_type": "marian"}')
    with pytest.raises(ValueError, match="config.json lacks '"):
        read_model(folder)
    (folder / "config.json").unlink()
    with pytest.raises(FileNotFoundError, match="has no config.json"):
        read_model(folder)


def test_broken_files(folder):
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match="no whole safetensors file"):
        read_model(folder)
    path.unlink()
    with pytest.raises(FileNotFoundError, match="holds no weights"):
        read_model(folder)
    (folder / "pytorch_model.bin").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    with pytest.raises(ValueError, match="pytorch_model.bin cannot be read"):
        read_model(folder)


def test_models_that_cannot_be_written(tiny_transformer, tmp_path):
    ours = tiny_transformer()
    with pytest.raises(ValueError, match="cannot be written .* marian: it has .*epsilon=1e-05"):
        write_model(tmp_path / "out", ours)
    with pytest.raises(
        ValueError, match="checkpoint. marian: it has positions='sinusoidal_halves'"
    ):
        write_model(tmp_path / "out", ours, kind="marian")
    with pytest.raises(ValueError, match="checkpoint. t5: its models are T5s"):
        write_model(tmp_path / "out", ours, kind="t5")
    with pytest.raises(ValueError, match="kind must be one of .* or None, got 'bart'"):
        write_model(tmp_path / "out", ours, kind="bart")
    assert not (tmp_path / "out").exists()
