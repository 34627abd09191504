"""Searches of published checkpoints: the `generation_config.json` that is beside their weights."""

import json

import pytest
import torch
import transformers

from keras_transformer import load_pretrained

ENGLISH = ["The old man sees the dog.", "A dog sleeps here.", "I see 3 dogs, don't I?"]
GERMAN = ["Der alte Mann sieht den Hund.", "Ein Hund schläft hier.", "Ich sehe 3 Hunde."]


@pytest.mark.once("a value of a bias; the searches are those of the other tests")
def test_a_search_as_the_authors_of_opus_mt_have_it(pretrained_folder, tmp_path):
    theirs = pretrained_folder("marian", tmp_path, ENGLISH * 20, GERMAN * 20)
    with torch.no_grad():  # as in released models: padding has a logit of 0
        theirs.model.shared.weight[-1] = 0
    theirs.save_pretrained(tmp_path)
    pad, end = theirs.config.pad_token_id, theirs.config.eos_token_id
    facts = dict(
        bad_words_ids=[[pad]], decoder_start_token_id=pad, eos_token_id=end, pad_token_id=pad,
        forced_eos_token_id=end, max_length=24, num_beams=3, renormalize_logits=True,
    )  # fmt: skip
    (tmp_path / "generation_config.json").write_text(json.dumps(facts))
    theirs = transformers.MarianMTModel.from_pretrained(tmp_path).eval()
    translator = load_pretrained(tmp_path)
    tokenizer = transformers.MarianTokenizer.from_pretrained(tmp_path)
    for text in ENGLISH:
        inputs = tokenizer([text], return_tensors="pt")
        found = theirs.generate(**inputs, output_scores=True, return_dict_in_generate=True)
        (best, *_) = translator.nbest([text])[0]
        assert best.text == tokenizer.decode(found.sequences[0], skip_special_tokens=True)
        assert best.score == pytest.approx(found.sequences_scores[0].item(), abs=1e-5)
