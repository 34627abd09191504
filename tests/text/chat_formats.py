"""Chat templates in the formats of five families, and tokenizers that know their tokens.

Each has what makes its family's templates special: dates, default system messages, trimmed texts,
other names of roles, loops that are left, marks around replies.
"""

from __future__ import annotations

import transformers
from tokenizers import processors

from keras_transformer.text.text_tokenizer import TextTokenizer

MESSAGES = [
    {"role": "user", "content": " Who wrote “Hamlet”? <b>&\n\n"},
    {"role": "assistant", "content": "Shakespeare did.\n  In 1600."},
    {"role": "user", "content": "犬 and then?"},
]

LLAMA_3 = """\
{{- bos_token }}
{%- set date = strftime_now("%d %b %Y") if strftime_now is defined else "26 Jul 2024" %}
{%- set system = "" %}
{%- if messages[0]["role"] == "system" %}
    {%- set system = messages[0]["content"] | trim %}
    {%- set messages = messages[1:] %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\nToday Date: " + date + "\\n\\n" }}
{{- system + "<|eot_id|>" }}
{%- for message in messages %}
    {{- "<|start_header_id|>" + message["role"] + "<|end_header_id|>\\n\\n" }}
    {{- message["content"] | trim + "<|eot_id|>" }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- "<|start_header_id|>assistant<|end_header_id|>\\n\\n" }}
{%- endif %}
"""
QWEN = """\
{%- if tools %}
    {%- for tool in tools %}{{- tool | tojson }}{%- endfor %}
{%- endif %}
{%- if messages[0].role != "system" %}
    {{- "<|im_start|>system\\nYou are a helpful assistant.<|im_end|>\\n" }}
{%- endif %}
{%- set state = namespace(last=messages | length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages | length - 1) - loop.index0 %}
    {%- if message.role == "user" and message.content is string %}
        {%- set state.last = index %}
        {%- break %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {{- "<|im_start|>" ~ message.role ~ "\\n" ~ message.content ~ "<|im_end|>\\n" }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- "<|im_start|>assistant\\n" }}
{%- endif %}
"""
SMOLLM = """\
{% for message in messages %}
{% if loop.first and messages[0]['role'] != 'system' %}
{{- '<|im_start|>system\\nYou are SmolLM.<|im_end|>\\n' }}
{% endif %}
{{- '<|im_start|>' + message['role'] + '\\n' -}}
{% if message['role'] == 'assistant' %}
{% generation %}{{- message['content'] + '<|im_end|>' -}}{% endgeneration %}
{% else %}
{{- message['content'] + '<|im_end|>' -}}
{% endif %}
{{- '\\n' -}}
{% endfor %}
{% if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' -}}
{% endif %}
"""
ORDER = """\
{%- if messages[0].role == 'system' %}
    {{- raise_exception('System role not supported') }}
{%- endif %}
{%- for message in messages %}
    {%- if (message.role == 'user') != (loop.index0 % 2 == 0) %}
        {{- raise_exception('Conversation roles must alternate') }}
    {%- endif %}
{%- endfor %}
"""
GEMMA = f"""\
{{{{ bos_token }}}}{ORDER}
{{%- for message in messages %}}
    {{%- set role = 'model' if message['role'] == 'assistant' else message['role'] %}}
    {{{{- '<start_of_turn>' + role + '\\n' + message['content'] | trim + '<end_of_turn>\\n' }}}}
{{%- endfor %}}
{{%- if add_generation_prompt %}}
    {{{{- '<start_of_turn>model\\n' }}}}
{{%- endif %}}
"""
MISTRAL = f"""\
{{{{ bos_token }}}}{ORDER}
{{%- for message in messages %}}
    {{%- if message['role'] == 'user' %}}
        {{{{- '[INST] ' + message['content'].strip() + ' [/INST]' }}}}
    {{%- else %}}
        {{{{- ' ' + message['content'].strip() + eos_token }}}}
    {{%- endif %}}
{{%- endfor %}}
"""
PHI_3 = """\
{% for message in messages %}{{ '<|' + message['role'] + '|>\\n' + message['content'] + '<|end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|assistant|>\\n' }}{% else %}{{ eos_token }}{% endif %}
"""  # noqa: E501

# The template, the special tokens, BOS, EOS, the token that ends a turn, and whether the tokenizer
# itself begins each text with BOS.
FORMATS = {
    "llama-3": (
        LLAMA_3, "<|begin_of_text|> <|start_header_id|> <|end_header_id|> <|eot_id|>",
        "<|begin_of_text|>", "<|eot_id|>", "<|eot_id|>", True,
    ),
    "qwen": (
        QWEN, "<|im_start|> <|im_end|>", None, "<|endoftext|>", "<|im_end|>", False,
    ),
    "smollm": (
        SMOLLM, "<|im_start|> <|im_end|>", "<|im_start|>", "<|im_end|>", "<|im_end|>", False,
    ),
    "gemma": (
        GEMMA, "<bos> <eos> <start_of_turn> <end_of_turn>", "<bos>", "<eos>", "<end_of_turn>", True,
    ),
    "mistral": (MISTRAL, "<s> </s> [INST] [/INST]", "<s>", "</s>", "</s>", True),
    "phi-3": (
        PHI_3, "<s> <|user|> <|assistant|> <|end|>", "<s>", "<|endoftext|>", "<|end|>", False,
    ),
}  # fmt: skip


def write_folder(name, folder, texts=("Who wrote Hamlet? Shakespeare did. and then",)):
    """Write a tokenizer with the template of a family, as `transformers` saves it; return it."""
    template, tokens, bos, eos, _, framed = FORMATS[name]
    tokenizer = TextTokenizer.train(texts, "bytes", 300).with_special_tokens(tokens.split())
    library = tokenizer._tokenizer
    if framed:
        library.post_processor = processors.TemplateProcessing(
            single=f"{bos} $A", special_tokens=[(bos, library.token_to_id(bos))]
        )
    named = {"eos_token": eos} | ({"bos_token": bos} if bos else {})
    theirs = transformers.PreTrainedTokenizerFast(
        tokenizer_object=library, chat_template=template, **named
    )
    theirs.save_pretrained(folder)
    return theirs
