"""Encoders and vision models for one task each: classes, tags, answers, vectors, trees."""
