"""Fields in the files of a folder of sentence-transformers: read, harmless, or refused."""

from __future__ import annotations

from keras_transformer.system.foreign_fields import FieldTable

# Fields of the classes of sentence-transformers 6.2 and of their older versions.
_NONE: tuple[None, dict] = (None, {})
_TEXT = ({"text": {"method": "forward", "method_output_name": "last_hidden_state"}}, None)
_SCORES = ({"text": {"method": "forward", "method_output_name": "logits"}}, None)
_PER_CALL = dict.fromkeys(
    (
        "processing_kwargs", "query_length", "document_length", "query_expansion", "model_args",
        "model_kwargs", "tokenizer_args", "processor_kwargs", "config_args", "config_kwargs",
        "tokenizer_name_or_path",
    ),
    _NONE,
)  # fmt: skip
_READ = ("max_seq_length", "do_lower_case")
_HARMLESS = ("unpad_inputs", "backend", "cache_dir")
OF_TRANSFORMER = FieldTable(
    read=_READ,
    harmless=_HARMLESS,
    refused=_PER_CALL
    | dict(
        transformer_task=("feature-extraction",),
        modality_config=_TEXT,
        module_output_name=("token_embeddings", None),
    ),
)
OF_SCORER = FieldTable(
    read=_READ,
    harmless=_HARMLESS,
    refused=_PER_CALL
    | dict(
        transformer_task=("sequence-classification",),
        modality_config=_SCORES,
        module_output_name=("scores", None),
    ),
)
OF_SETTINGS = FieldTable(
    read=("prompts", "default_prompt_name", "similarity_fn_name", "truncate_dim", "activation_fn"),
    harmless=("__version__", "requirements", "keep_in_fp32_modules"),
    refused={"model_type": ("SentenceTransformer", "CrossEncoder")},
)
OF_MODULE = FieldTable(
    read=("path", "type"), harmless=("idx", "name"), refused={"kwargs": ([], None)}
)
LEGACY_POOLINGS = {  # in the order in which several vectors are concatenated
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
OF_POOLING = FieldTable(
    read=(
        "embedding_dimension", "word_embedding_dimension", "pooling_mode", "include_prompt",
        *LEGACY_POOLINGS,
    ),
)  # fmt: skip
_SENTENCE = dict.fromkeys(("module_input_name", "module_output_name"), ("sentence_embedding", None))
OF_DENSE = FieldTable(
    read=("in_features", "out_features", "bias", "activation_function", "use_residual"),
    refused=_SENTENCE,
)
OF_LAYER_NORM = FieldTable(read=("dimension",))
OF_NORMALIZE = FieldTable(read=(), refused=_SENTENCE)
OF_DROPOUT = FieldTable(read=(), harmless=("dropout",))
