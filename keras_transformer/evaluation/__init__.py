"""Scores of translations, spans and answers, and their reports."""
