"""Compare language models that translate with `transformers`, under each backend.

    python -m benchmarks.prompted_models [--save]

A tiny model with random weights stands for each family, with a tokenizer and a chat template in the
family's format. "prompts" counts the texts whose prompt has the ids of `apply_chat_template`;
"logits" is the largest difference of the logits after the prompts; "greedy" and "beam 4" count the
texts with the same hypotheses of up to 12 tokens; "scores" is the largest difference of the scores
of all four hypotheses.
"""

from __future__ import annotations

import argparse
import json
import operator
import os
import subprocess
import sys
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np

from benchmarks import contest

BACKENDS = ("tensorflow", "jax", "torch")
TEXTS = ["A dog sleeps on the couch.", "Yes!", "犬 and 42 cats;\nnobody knows why."]
PAIR = dict(source_language="en", target_language="de")
LENGTH = 12
SIZES = dict(
    hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
    num_key_value_heads=2, max_position_embeddings=1000, initializer_range=0.4,
)  # fmt: skip
CHATML = (
    "{{ bos_token }}{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n"
    "{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
GEMMA = (
    "{{ bos_token }}{% for m in messages %}<start_of_turn>"
    "{{ 'model' if m.role == 'assistant' else m.role }}\n{{ m.content | trim }}<end_of_turn>\n"
    "{% endfor %}{% if add_generation_prompt %}<start_of_turn>model\n{% endif %}"
)
HUNYUAN = (
    "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}<|user|>{{ m.content }}"
    "{% else %}<|assistant|>{{ m.content }}{{ eos_token }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
CHATS = {
    CHATML: ["<|im_start|>", "<|im_end|>"],
    GEMMA: ["<start_of_turn>", "<end_of_turn>"],
    HUNYUAN: ["<|user|>", "<|assistant|>"],
    None: [],
}
ALPHA = dict(rope_type="dynamic", alpha=1000.0, rope_theta=1e4, factor=1.0)
DENSE = ("HunYuanDenseV1", dict(head_dim=8, rope_parameters=ALPHA), HUNYUAN)
WINDOW = dict(head_dim=8, sliding_window=16)
# For each model its prompt, and the class, further sizes and chat template of its family.
FAMILIES = {
    "TranslateGemma (Gemma 3)": ("translate-gemma", "Gemma3", WINDOW, GEMMA),
    "Hunyuan-MT": ("hunyuan-mt", *DENSE),
    "HY-MT1.5": ("hy-mt", *DENSE),
    "Hy-MT2 (dense)": ("hy-mt2", *DENSE),
    "TowerInstruct (LLaMA 2)": ("tower", "Llama", {}, CHATML),
    "Tower+ 9B (Gemma 2)": ("tower-plus", "Gemma2", WINDOW, GEMMA),
    "Tower+ 2B, 72B (Qwen 2.5)": ("tower-plus", "Qwen2", {}, CHATML),
    "EuroLLM (LLaMA)": ("eurollm", "Llama", {}, CHATML),
    "Seed-X (Mistral)": ("seed-x", "Mistral", dict(sliding_window=None), None),
    "SalamandraTA (LLaMA)": ("salamandra-ta", "Llama", {}, CHATML),
}


def written(folder: Path, kind: str, options: dict, chat: str | None) -> tuple:
    """Write a checkpoint with random weights and its tokenizer; return both, of `transformers`."""
    import torch
    import transformers
    from tokenizers import processors

    from keras_transformer.text.text_tokenizer import TextTokenizer

    tokens = ["<s>", "</s>", *CHATS[chat]]
    library = TextTokenizer.train(TEXTS, "bytes", 300).with_special_tokens(tokens)._tokenizer
    library.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", library.token_to_id("<s>"))]
    )
    tokenizer = transformers.PreTrainedTokenizerFast(
        tokenizer_object=library, chat_template=chat, bos_token="<s>", eos_token="</s>"
    )
    tokenizer.save_pretrained(folder)
    ids = dict(pad_token_id=0, bos_token_id=1, eos_token_id=tokenizer.eos_token_id)
    torch.manual_seed(1)
    config_class = getattr(transformers, f"{kind}{'Text' if kind == 'Gemma3' else ''}Config")
    config = config_class(**SIZES | options | ids | dict(vocab_size=len(tokenizer)))
    model = getattr(transformers, f"{kind}ForCausalLM")(config).eval()
    model.generation_config = transformers.GenerationConfig(**ids)
    model.save_pretrained(folder)
    return model, tokenizer


def expected(model, tokenizer, prompt_name: str) -> dict:
    """Return what `transformers` makes of the texts: ids, logits, tokens and scores."""
    import torch

    from keras_transformer.text.translation_prompt import TranslationPrompt, filled

    prompt = TranslationPrompt.read(prompt_name)
    ends = map(tokenizer.convert_tokens_to_ids, ("<|im_end|>", "<end_of_turn>", "</s>"))
    ends = [x for x in ends if x is not None]
    results: dict = dict(ids=[], logits=[], greedy=[], beam=[], scores=[])
    for text in TEXTS:
        content = filled(prompt.template, prompt.fields_of("en", "de") | {"text": text})
        if prompt.chat:
            messages = [{"role": "user", "content": content}]
            asked = dict(add_generation_prompt=True, return_dict=False)
            ids = tokenizer.apply_chat_template(messages, **asked)
        else:
            ids = tokenizer(content)["input_ids"]
        batch = torch.tensor([ids])
        with torch.no_grad():
            results["logits"].append(model(batch).logits[0, -1].tolist())
            for name, beams in (("greedy", 1), ("beam", 4)):
                output = model.generate(
                    batch, max_new_tokens=LENGTH, num_beams=beams, num_return_sequences=beams,
                    do_sample=False, eos_token_id=ends, output_scores=True,
                    return_dict_in_generate=True,
                )  # fmt: skip
                rows = output.sequences[:, len(ids) :].tolist()
                texts = tokenizer.batch_decode(rows, skip_special_tokens=True)
                results[name].append([x.strip() for x in texts])
        results["ids"].append(ids)
        results["scores"].append(output.sequences_scores.tolist())
    return results


def compare(room: Path) -> None:
    """Print, as JSON, the cells of each family under this backend."""
    from keras_transformer.language.causal_lm import CausalLM
    from keras_transformer.pretrained import load_pretrained
    from keras_transformer.translate.translator import Translator

    cells = {}
    for number, (name, (prompt, *_)) in enumerate(FAMILIES.items()):
        theirs = json.loads((room / f"{number}.json").read_text("utf-8"))
        ours = load_pretrained(room / str(number), **PAIR, prompt=prompt)
        uncut = replace(ours.prompt, stop=())  # `transformers` cuts no explanations off
        CausalLM(ours.model, ours.tokenizer, ours.template, ours.search, uncut).save(room / "ours")
        translator = Translator.load(room / "ours")
        ids = translator.tokenizer.encode_source(TEXTS)
        predict = translator.model.model.predict
        logits = [predict({"token_ids": np.array([x], "int32")}, verbose=0)[0, -1] for x in ids]
        options = dict(max_length=LENGTH)
        greedy, beam = (translator.nbest(TEXTS, beam_size=x, **options) for x in (1, 4))
        scores = [[x.score for x in row] for row in beam]
        outputs = dict(ids=ids, greedy=_texts(greedy), beam=_texts(beam))
        prompts, *texts = (sum(map(operator.eq, x, theirs[y])) for y, x in outputs.items())
        numbers = dict(logits=logits, scores=scores)
        logit, score = (np.abs(np.subtract(x, theirs[y])).max() for y, x in numbers.items())
        count = [f"{x} of {len(TEXTS)}" for x in (prompts, *texts)]
        cells[name] = [count[0], f"{logit:.0e}", *count[1:], f"{score:.0e}"]
    print(json.dumps(cells))


def _texts(lists):
    return [[x.text for x in hypotheses] for hypotheses in lists]


def main() -> None:
    """Write the checkpoints, compare each backend with `transformers` and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", action="store_true", help="write the table to results/")
    parser.add_argument("--under", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.under:
        warnings.simplefilter("ignore")
        return compare(options.under)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        room = Path(folder)
        for number, (prompt, *family) in enumerate(FAMILIES.values()):
            results = expected(*written(room / str(number), *family), prompt)
            (room / f"{number}.json").write_text(json.dumps(results), "utf-8")
        for backend in BACKENDS:
            command = [sys.executable, "-m", "benchmarks.prompted_models", "--under", folder]
            environment = {**os.environ, "KERAS_BACKEND": backend}
            done = subprocess.run(command, env=environment, capture_output=True, text=True)
            if done.returncode:
                sys.exit(done.stderr)
            cells = json.loads(done.stdout.splitlines()[-1])
            rows += [[name, backend, *row] for name, row in cells.items()]
    header = ["model", "backend", "prompts", "logits", "greedy", "beam 4", "scores"]
    rows.sort(key=lambda row: [*FAMILIES].index(row[0]))
    table = contest.table(header, rows)
    contest.report("prompted-models", "Language models that translate", [table], options.save)


if __name__ == "__main__":
    main()
