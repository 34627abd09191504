"""Language models that continue texts or chat, and reward models that score answers."""
