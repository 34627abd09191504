"""From speech to text and back."""
