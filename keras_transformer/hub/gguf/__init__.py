"""GGUF, the file format of llama.cpp: a model, its tokenizer and its settings in one file."""
