"""Analysis of trained models: attention, word alignment, plots, reports of errors."""
