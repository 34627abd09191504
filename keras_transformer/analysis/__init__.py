"""What a trained model attends to: attention, alignments, pictures."""
