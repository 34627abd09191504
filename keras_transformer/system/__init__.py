"""The ground: files, start-up, optional packages, errors in one line."""
