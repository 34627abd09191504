"""Scores of translations, spans and answers, and reports of them."""
