"""Evaluation: scores of translations, summaries, spans and answers, and tests of significance."""
