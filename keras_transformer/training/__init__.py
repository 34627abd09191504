"""The training flows behind the command line, and their recipes."""
