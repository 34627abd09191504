"""Fields in the files of a folder of sentence-transformers: read, harmless, or refused."""

from __future__ import annotations

from keras_transformer.system.foreign_fields import FieldTable

# The tables below have the fields of sentence-transformers 6.2 and of older versions.
_NONE: tuple[None, dict] = (None, {})
_PER_CALL = dict.fromkeys(
    (
        "processing_kwargs", "query_length", "document_length", "query_expansion", "model_args",
        "model_kwargs", "tokenizer_args", "processor_kwargs", "config_args", "config_kwargs",
        "tokenizer_name_or_path",
    ),
    _NONE,
)  # fmt: skip


def _of_encoder(task, method_output, module_output):
    """Return the table of a Transformer module's fields, given its task and its outputs' names."""
    outputs = {"text": {"method": "forward", "method_output_name": method_output}}
    return FieldTable(
        read=("max_seq_length", "do_lower_case"),
        harmless=("unpad_inputs", "backend", "cache_dir"),
        refused=_PER_CALL
        | dict(
            transformer_task=(task,),
            modality_config=(outputs, None),
            module_output_name=(module_output, None),
        ),
    )


OF_TRANSFORMER = _of_encoder("feature-extraction", "last_hidden_state", "token_embeddings")
OF_SCORER = _of_encoder("sequence-classification", "logits", "scores")
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
ACTIVATIONS = {  # their name -> ours
    "torch.nn.modules.linear.Identity": "linear",
    "torch.nn.modules.activation.Tanh": "tanh",
    "torch.nn.modules.activation.ReLU": "relu",
    "torch.nn.modules.activation.Sigmoid": "sigmoid",
    "torch.nn.modules.activation.SiLU": "silu",
    "torch.nn.modules.activation.GELU": "gelu",
}
DENSE_WEIGHTS = {  # tensors of Dense -> weights of a `Step`, transposed
    "linear.weight": "kernel",
    "linear.bias": "bias",
    "residual.weight": "residual",
}
_SENTENCE = dict.fromkeys(("module_input_name", "module_output_name"), ("sentence_embedding", None))
OF_DENSE = FieldTable(
    read=("in_features", "out_features", "bias", "activation_function", "use_residual"),
    refused=_SENTENCE,
)
OF_LAYER_NORM = FieldTable(read=("dimension",))
OF_NORMALIZE = FieldTable(read=(), refused=_SENTENCE)
OF_DROPOUT = FieldTable(read=(), harmless=("dropout",))
