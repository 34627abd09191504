"""System helpers: files, locks, child processes, start-up, optional packages, error messages."""
