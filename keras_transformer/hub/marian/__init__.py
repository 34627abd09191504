"""Models of Marian, the C++ program: files, options, names of weights and vocabularies."""
