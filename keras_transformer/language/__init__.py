"""Language models that continue texts, chat and judge answers."""
