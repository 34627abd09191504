"""Fields that the `config.json` of any family may have: read, harmless, or refused.

A family reads the fields in its `Family.fields` and `Family.also_read`. Other known fields are in
the tables below or in `Family.harmless`; unknown ones give a warning.
"""

from __future__ import annotations

from keras_transformer.hub.families.fields import Field, exactly


def _words(*texts):
    return frozenset(" ".join(texts).split())


# Settings of generation. Folders from before `generation_config.json` have them in `config.json`.
GENERATION = _words(
    """
    assistant_confidence_threshold assistant_early_exit assistant_ensemble_weight
    assistant_lookbehind bad_words_ids begin_suppress_tokens cache_config cache_implementation
    compile_config constraints continuous_batching_config disable_compile diversity_penalty
    do_sample dola_layers early_stopping encoder_no_repeat_ngram_size encoder_repetition_penalty
    epsilon_cutoff eta_cutoff exponential_decay_length_penalty force_bos_token_to_be_generated
    force_words_ids forced_bos_token_id forced_decoder_ids forced_eos_token_id guidance_scale
    is_assistant length_penalty low_memory max_cache_len max_length max_matching_ngram_size
    max_new_tokens max_time min_length min_new_tokens min_p no_repeat_ngram_size
    num_assistant_tokens num_assistant_tokens_schedule num_beam_groups num_beams
    num_return_sequences output_logits output_scores penalty_alpha prefill_chunk_size
    prompt_lookup_num_tokens remove_invalid_values renormalize_logits repetition_penalty
    return_dict_in_generate sequence_bias speculation_type stop_strings suppress_tokens
    target_lookbehind temperature token_healing top_h top_k top_p typical_p use_mtp
    watermarking_config
    """
)

# Fields that other code reads, or only some of the families.
READ = _words(
    """
    model_type architectures id2label num_labels problem_type tokenizer_class quantization_config
    compression_config sentence_transformers sbert_ce_default_activation_function
    """
)

# Fields that do not change what a model computes from its weights, by the reason.
HARMLESS = {
    "programs and files": """
        transformers_version _name_or_path name_or_path auto_map dtype torch_dtype use_bfloat16
        attn_implementation experts_implementation finetuning_task output_past save_step
        unsloth_fixed unsloth_version transformers.js_config serialize_explicit_per_layer_config
    """,
    "training": """
        initializer_range init_std initializer_factor attention_dropout activation_dropout
        attention_probs_dropout_prob encoder_layerdrop decoder_layerdrop layerdrop embd_pdrop
        attn_pdrop resid_pdrop classifier_dropout classif_dropout pooler_dropout qa_dropout
        summary_first_dropout summary_last_dropout gradient_checkpointing
    """,
    "what is returned, and how it is computed": """
        output_attentions output_hidden_states return_dict use_return_dict torchscript use_cache
        tie_last_hidden_states chunk_size_feed_forward
    """,
    "switches before `transformers` 4.0, which `model_type` implies since then": """
        add_bias_logits add_final_layer_norm extra_pos_embeddings normalize_before
        normalize_embedding static_position_embeddings n_ctx
    """,
    "another spelling of `id2label`": "label2id",
    "defaults of pipelines": "prefix task_specific_params",
    "ids that the files of the tokenizer have": """
        bos_token_id eos_token_id pad_token_id sep_token_id cls_token_id unk_token_id mask_token_id
        decoder_start_token_id
    """,
    "no model of the family reads them": """
        is_decoder is_encoder_decoder add_cross_attention cross_attention_hidden_size
    """,
}

# Fields that change a model; for each, only the value without effect is accepted.
FIELDS = {
    "per_layer_config": Field("an empty object or null", lambda x: x == {}, None),
    "pruned_heads": Field("an empty object or null", lambda x: x in ({}, []), None),
    "tie_encoder_decoder": exactly(False, null=True),
}
ENCODER_DECODER = {"is_encoder_decoder": exactly(True), "is_decoder": exactly(False)}
ONE_STACK = {"is_encoder_decoder": exactly(False)}

KNOWN = GENERATION | READ | FIELDS.keys() | _words(*HARMLESS.values())
