"""`keras-transformer import` and `generate`: prompts in, texts out."""

import json

import pytest
import torch
import transformers
from typer.testing import CliRunner

from keras_transformer import CausalLM, cli
from keras_transformer.text.text_tokenizer import TextTokenizer

PROMPTS = ["To be", "The slings"]
SHORT = ["--max-new-tokens", "6"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A GPT-2 in Hugging Face's layout, imported."""
    source, target = (tmp_path_factory.mktemp(name) for name in ("gpt2", "imported"))
    tokenizer = TextTokenizer.train(["To be, or not to be", "The slings and arrows"], "bytes", 270)
    torch.manual_seed(3)
    config = transformers.GPT2Config(
        vocab_size=tokenizer.vocab_size, n_embd=16, n_layer=1, n_head=2, n_positions=32,
        initializer_range=0.4, bos_token_id=0, eos_token_id=5, pad_token_id=0,
    )  # fmt: skip
    transformers.GPT2LMHeadModel(config).save_pretrained(source)
    tokenizer.save(source)
    assert run("import", source, target).stdout == f"{target}\n"
    return target


def run(*arguments, stdin="", status=0):
    result = CliRunner().invoke(cli.app, [str(a) for a in arguments], input=stdin)
    assert result.exit_code == status, result.output
    return result


def test_texts(folder):
    writer = CausalLM.load(folder)
    found = writer.generate(PROMPTS, max_new_tokens=6)
    result = run("generate", folder, *SHORT, stdin="\n".join(PROMPTS) + "\n")
    expected = [before + text for before, text in zip(PROMPTS, found, strict=True)]
    one_line = [text.replace("\r", " ").replace("\n", " ") for text in expected]
    assert result.stdout.split("\n") == [*one_line, ""]
    # One that is given is shown as it comes, with its line ends.
    shown = run("generate", folder, PROMPTS[0], *SHORT).stdout_bytes
    assert shown.decode() == expected[0] + "\n"
    # Also if nothing is generated.
    assert run("generate", folder, PROMPTS[0], *SHORT, "--stop", found[0][0]).stdout == "To be\n"
    draws = dict(temperature=0.9, top_k=20, top_p=0.9, min_p=0.01, repetition_penalty=1.2, seed=7)
    (drawn,) = writer.generate(PROMPTS[:1], max_new_tokens=6, **draws)
    options = [f"--{name.replace('_', '-')}={value}" for name, value in draws.items()]
    assert (
        run("generate", folder, PROMPTS[0], *SHORT, *options).stdout_bytes
        == f"To be{drawn}\n".encode()
    )


def test_bad_input_gets_one_line(folder, tmp_path):
    for arguments, message in (
        ((tmp_path, "a"), "is not a saved language model"),
        ((folder, "a" * 40), "fewer than 32 tokens"),
        ((folder, "a", "--top-p", "2"), "top_p must be in (0, 1], got 2.0"),
        ((folder, "a", "--beam-size", "2", "--temperature", "1"), "temperature needs beam_size=1"),
    ):
        result = run("generate", *arguments, status=2)
        lines = result.stderr.splitlines()
        assert message in lines[-1] and (len(lines) == 1 or lines[0].startswith("Usage:"))
    result = run("translate", folder, status=2)
    assert "is not a saved translator but a language model: use CausalLM and" in result.stderr
    (tmp_path / "config.json").write_text(json.dumps(dict(model_type="gpt2")))
    result = run("import", tmp_path, tmp_path / "out", "--target-language", "de", status=2)
    assert "target_language must be None" in result.stderr
