"""Models, weights and shortlists in the formats of Marian, the C++ program."""
