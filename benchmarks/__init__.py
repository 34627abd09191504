"""Measurements: speed and quality, each with the command that made it."""
