"""Engines of a translator: what runs its model, behind one interface."""
