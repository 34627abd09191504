"""The least that a `config.json` of each family must say."""

import copy
import json

from transformers import CONFIG_MAPPING

IDS = dict(pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=3)
BART = dict(
    vocab_size=30, d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
    decoder_attention_heads=2, encoder_ffn_dim=24, decoder_ffn_dim=24,
)  # fmt: skip
BERT = dict(
    vocab_size=30, hidden_size=16, num_hidden_layers=1, num_attention_heads=2,
    intermediate_size=24, max_position_embeddings=20,
)  # fmt: skip
DINO = "dinov2", "dinov2_with_registers"
IMAGES = "vit", "deit", *DINO
LLAMA = {name: value for name, value in BERT.items() if name != "max_position_embeddings"}
T5 = dict(vocab_size=30, d_model=16, d_ff=24, num_layers=1, num_heads=2, d_kv=8)
GEMMA = LLAMA | dict(num_attention_heads=4)
SIZES = {
    "marian": BART,
    "pegasus": BART,
    "m2m_100": BART,
    "mbart": BART | dict(max_position_embeddings=20),
    "t5": T5,
    "bart": BART | dict(max_position_embeddings=20),
    "mt5": T5,
    "umt5": T5,
    "gpt2": dict(vocab_size=30, n_embd=16, n_layer=1, n_head=2, n_positions=20),
    "llama": LLAMA | dict(num_attention_heads=4),
    "mistral": LLAMA | dict(num_attention_heads=8),
    "smollm3": LLAMA | dict(num_attention_heads=4),
    "qwen2": LLAMA | dict(num_attention_heads=32, hidden_size=64),
    "qwen3": LLAMA | dict(num_attention_heads=32),
    "mixtral": LLAMA | dict(num_attention_heads=8, num_local_experts=4),
    "qwen3_moe": LLAMA
    | dict(num_attention_heads=8, num_hidden_layers=2, num_experts=8, moe_intermediate_size=12),
    "hunyuan_v1_dense": LLAMA | dict(num_attention_heads=4, head_dim=4),
    "phi3": LLAMA,
    "olmo2": LLAMA | dict(num_attention_heads=4),
    "granite": LLAMA | dict(num_attention_heads=4),
    "glm": LLAMA | dict(num_attention_heads=4),
    "gemma": LLAMA | dict(num_attention_heads=16),
    "gemma2": GEMMA,
    "gemma3_text": GEMMA,
    "gemma3": dict(text_config=GEMMA),
    "bert": BERT,
    "roberta": BERT,
    "xlm-roberta": BERT,
    "camembert": BERT,
    "data2vec-text": BERT,
    "ernie": BERT,
    "mpnet": BERT | dict(pad_token_id=1),
    "distilbert": dict(
        vocab_size=30, dim=16, n_layers=1, n_heads=2, hidden_dim=24, max_position_embeddings=20
    ),
    "deberta-v2": BERT
    | dict(
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        share_att_key=True,
        norm_rel_ebd="layer_norm",
        position_buckets=4,
        position_biased_input=False,
    ),
    "modernbert": BERT | dict(num_hidden_layers=3),
    "eurobert": BERT,
    "electra": BERT | dict(embedding_size=8),
    "albert": BERT | dict(embedding_size=8),
    "esm": BERT | dict(mask_token_id=4, position_embedding_type="rotary"),
    **{kind: {name: BERT[name] for name in list(BERT)[1:5]} for kind in ("vit", "deit")},
    **{kind: dict(mlp_ratio=2, **{x: BERT[x] for x in list(BERT)[1:4]}) for kind in DINO},
    "t5gemma": dict(encoder=GEMMA, decoder=GEMMA),
    "whisper": BART | dict(num_mel_bins=8, max_source_positions=10, max_target_positions=12),
}


def minimal(kind):
    """Sizes and special tokens."""
    ids = {} if kind in IMAGES else IDS
    return dict(model_type=kind) | ids | SIZES[kind]


def completed(config):
    """Return the fields of a `config.json` as `transformers` reads and checks them."""
    found = CONFIG_MAPPING[config["model_type"]].from_dict(copy.deepcopy(config)).to_dict()
    return json.loads(json.dumps(found))
