"""Fields of `config.json` that are absent, null or nonsense: as `transformers`, or an error."""

import dataclasses
import json

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from transformers import CONFIG_MAPPING

from keras_transformer.hub.families import FAMILIES
from keras_transformer.hub.families.fields import REQUIRED
from keras_transformer.hub.hugging_face_checkpoint import read_config, read_model, write_model
from keras_transformer.models import LLaMAConfig
from tests.hub.families.minimal import completed, minimal
from tests.hub.families.parity import edit

# Fields that `transformers` (5.23) does not know: what they once said, or say of other families.
SPLIT = {
    "n_positions", "tie_word_embeddings", "dense_act_fn", "is_gated_act", "task_specific_params",
}  # fmt: skip
UNKNOWN = {
    "m2m_100": {"is_decoder"},
    "whisper": {"is_decoder"},
    "bert": {"position_embedding_type"},
    "roberta": {"position_embedding_type"},
    "xlm-roberta": {"position_embedding_type"},
    "camembert": {"position_embedding_type"},
    "data2vec-text": {"position_embedding_type"},
    "ernie": {"position_embedding_type"},
    "mpnet": {"is_decoder", "add_cross_attention"},
    "albert": {
        "position_embedding_type", "is_decoder", "add_cross_attention",
    },
    "deberta-v2": {
        "share_att_key", "norm_rel_ebd", "position_buckets", "cls_dropout", "conv_kernel_size",
        "is_decoder", "add_cross_attention",
    },
    "modernbert": {
        "rope_scaling", "rope_theta", "global_attn_every_n_layers", "global_rope_theta",
        "local_rope_theta",
    },
    "eurobert": {"rope_scaling"},
    "electra": {"position_embedding_type"},
    "esm": {"hidden_act"},
    "llama": {"rope_scaling"},
    "mistral": {"rope_scaling", "attention_bias", "mlp_bias"},
    "smollm3": {"rope_scaling", "head_dim"},
    "qwen2": {"rope_scaling", "head_dim", "use_mrope"},
    "qwen3": {"rope_scaling", "use_mrope"},
    "mixtral": {"rope_scaling"},
    "qwen3_moe": {"rope_scaling", "head_dim"},
    "hunyuan_v1_dense": {"rope_scaling", "mlp_bias", "use_qk_norm", "use_cla"},
    "olmo2": {"rope_scaling", "head_dim"},
    "granite": {"rope_scaling", "head_dim"},
    "phi3": {"rope_scaling", "head_dim", "attention_bias"},
    "glm": {"rope_scaling"},
    "gemma": {"rope_scaling"},
    "gemma2": {"rope_scaling"},
    "gemma3_text": {"rope_scaling", "sliding_window_pattern", "rope_local_base_freq"},
    "t5": SPLIT,
    "mt5": SPLIT,
    "umt5": SPLIT,
    "t5gemma": {"is_decoder"},
}  # fmt: skip
OURS = {  # what they are called in our configs
    "pad_token_id": "pad_id", "bos_token_id": "bos_id", "eos_token_id": "eos_id",
    "decoder_start_token_id": "bos_id", "mask_token_id": "mask_id",
}  # fmt: skip


@pytest.mark.parametrize("kind", FAMILIES)
def test_defaults(kind):
    config, unknown = CONFIG_MAPPING[kind](), set()
    for name, field in FAMILIES[kind].fields.items():
        if not hasattr(type(config), name) and not hasattr(config, name):
            unknown.add(name)
        elif field.default is not REQUIRED and name not in UNKNOWN.get(kind, ()):
            stored = type(config).__dataclass_fields__.get(name)
            assert field.default == (stored.default if stored else getattr(config, name)), name
    assert unknown <= UNKNOWN.get(kind, set())


def settled(config):
    """Fields of a LLaMA: the numbers of heads stay, None means as many as divide the rest."""
    if not isinstance(config, LLaMAConfig):
        return config
    head_dim = config.head_dim or config.d_model // config.num_heads
    kv_heads = config.num_kv_heads or config.num_heads
    return dataclasses.replace(config, head_dim=head_dim, num_kv_heads=kv_heads)


@pytest.mark.parametrize("kind", FAMILIES)
def test_the_least_that_a_file_must_say(kind):
    config = minimal(kind)
    found = FAMILIES[kind].read(config, [])
    assert settled(found) == settled(FAMILIES[kind].read(completed(config), []))
    if kind == "llama":
        assert found.max_length == 2048
    if kind == "mistral":
        assert (found.window, found.num_kv_heads) == (4096, 8)
        config |= dict(sliding_window=None, num_key_value_heads=None)
        found = FAMILIES[kind].read(config, [])
        assert (found.window, found.num_kv_heads) == (None, None)
    if kind == "albert":
        assert found.activation == "gelu_tanh" and found.head_dropout == 0.1
    if kind in ("mt5", "umt5"):
        assert found.gated


# Some have no parts, and the text model inside another is not written.
@pytest.mark.parametrize("kind", sorted({*FAMILIES} - {"gpt2", "phi3", "modernbert", "gemma3"}))
def test_shapes_of_the_parts_of_a_weight(kind, tmp_path):
    """A row that one part has too many and the next too few."""
    family = FAMILIES[kind]
    config = family.read(minimal(kind), [])
    write_model(tmp_path, family.model(config), kind)
    rule = next(x for x in family.rules(config) if len(x.names) > 1 and x.layout != "same")
    first, second = rule.names[:2]

    def move(tensors):
        tensors[second] = np.concatenate([tensors[second], tensors[first][-1:]])
        tensors[first] = tensors[first][:-1].copy()

    edit(tmp_path, move)
    rows, columns = load_file(tmp_path / "model.safetensors")[first].shape
    message = rf"{first} must have the shape \({rows + 1}, {columns}\), got \({rows}, {columns}\)"
    with pytest.raises(ValueError, match=message):
        read_model(tmp_path)


@pytest.mark.parametrize(
    "kind,name",
    [
        ("whisper", "encoder_attention_heads"),
        ("marian", "encoder_attention_heads"),
        ("t5", "num_heads"),
        ("gpt2", "n_head"),
    ],
)
def test_two_numbers_of_heads(kind, name):
    """The second is another name of the first; that it is another number no weight shows."""
    config = minimal(kind) | dict(num_attention_heads=4)
    assert completed(config)[name] == 4
    with pytest.raises(ValueError, match=rf"{name} and num_att.* must be equal, got \[2, 4\]"):
        FAMILIES[kind].read(config, [])
    FAMILIES[kind].read(config | dict(num_attention_heads=2), [])


ABSENT = object()
STRANGE = (ABSENT, None, ["x"], {"x": "y"}, "x", -1, True)


@pytest.mark.parametrize("kind", FAMILIES)
def test_strange_values(kind, tmp_path):
    """Each field that is read, replaced by each of these: as `transformers`, or an error."""
    family, path = FAMILIES[kind], tmp_path / "config.json"
    whole, problems = completed(minimal(kind)), []
    usual = family.read(whole, [])
    tokens = {name for name in OURS if name in whole}
    for name in sorted(family.fields.keys() | tokens | {"quantization_config", "model_type"}):
        for value in STRANGE:
            config = {x: y for x, y in whole.items() if x != name}
            config |= {} if value is ABSENT else {name: value}
            path.write_text(json.dumps(config))
            try:
                found = family.read(read_config(tmp_path)[0], [])
            except ValueError as error:
                fits = name in str(error) or OURS.get(name, name) in str(error)
            except KeyError as error:  # `read_model` says of which file
                fits = error.args == (name,)
            except Exception:
                fits = False
            else:
                try:
                    expected = family.read(completed(config), [])
                except Exception:  # of all sorts
                    expected = usual
                # Where there is no token of a kind, another may do.
                fits = settled(found) == settled(expected) or name in tokens
            if not fits:
                problems.append((name, "absent" if value is ABSENT else value))
    assert not problems


def generating(kind):
    fields = dataclasses.fields(FAMILIES[kind].model.config_class)
    return "eos_id" in {field.name for field in fields}


GENERATING = [x for x in FAMILIES if generating(x) and x != "gemma3"]
# Of T5, no class says with which token the decoder begins: with padding (Raffel et al. 2020). An
# mBART-25 begins with a language, which the file does not name.
STARTS = {"t5": "pad_token_id", "mbart": "eos_token_id", "t5gemma": "bos_token_id"}


@pytest.mark.parametrize("kind", GENERATING)
def test_absent_tokens(kind):
    """Each alone, and all: the defaults of their config class."""
    base = minimal(kind) | dict(vocab_size=160_000)
    base |= dict(pad_token_id=4) if kind == "marian" else {}  # 0 is the default of the end
    if CONFIG_MAPPING[kind]().is_encoder_decoder:
        start = "decoder_start_token_id"
        tokens = {"pad_id": ["pad_token_id"], "bos_id": [start, STARTS.get(kind, start)]}
    else:  # `generate` pads with the token that ends a text, too
        tokens = {x: [f"{x[:3]}_token_id", "eos_token_id"] for x in ("pad_id", "bos_id")}
    tokens["eos_id"] = ["eos_token_id"]
    alone = [names[0] for names in tokens.values()]
    for absent in [*([name] for name in alone), alone]:
        config = {x: y for x, y in base.items() if x not in absent}
        theirs = CONFIG_MAPPING[kind].from_dict(dict(config)).to_dict()
        expected = {
            ours: next((theirs[x] for x in names if theirs.get(x) is not None), None)
            for ours, names in tokens.items()
        }
        if isinstance(ends := expected["eos_id"], list):  # GLM's class has several
            expected = {x: ends[0] if i == ends else i for x, i in expected.items()}
            expected["eos_id"] = tuple(ends)
        if None in expected.values():  # such as Qwen2, whose class has no default
            with pytest.raises(ValueError, match="eos_token_id is null or missing, but the model "):
                FAMILIES[kind].read(config, [])
        else:
            found = FAMILIES[kind].read(config, [])
            assert {x: getattr(found, x) for x in expected} == expected, absent


@pytest.mark.parametrize("kind", [x for x in GENERATING if x != "glm"])  # its class has ends
def test_no_end_is_refused(kind, tmp_path):
    path, message = tmp_path / "config.json", "a token that ends a text; set eos_token_id to its id"
    save_file({"x": np.zeros(1, "float32")}, tmp_path / "model.safetensors")
    path.write_text(json.dumps(minimal(kind) | dict(eos_token_id=None)))
    with pytest.raises(ValueError, match=rf"config.json .*eos_token_id is null or .*{message}"):
        read_model(tmp_path)
    (tmp_path / "generation_config.json").write_text(json.dumps(dict(eos_token_id=4)))
    assert FAMILIES[kind].read(read_config(tmp_path)[0], []).eos_id == 4  # it says one


@pytest.mark.parametrize("kind", sorted({*FAMILIES} - {*GENERATING, "gemma3"}))
def test_encoders_need_no_end(kind):
    base = minimal(kind)
    config = FAMILIES[kind].read(base, [])
    for name in ("eos_token_id", "bos_token_id", "decoder_start_token_id"):
        rest = {x: y for x, y in base.items() if x != name}
        for other in (rest, rest | {name: None}):
            FAMILIES[kind].table.check(other, "config.json")
            assert FAMILIES[kind].read(other, []) == config
