"""System helpers: files, start-up, optional packages, error messages."""
