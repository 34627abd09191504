"""Engines: Keras, CTranslate2, PyTorch's compiler and exported models behind one interface."""
