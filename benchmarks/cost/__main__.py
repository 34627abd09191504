"""Runs `python -m benchmarks.cost`."""

from benchmarks.cost import main

if __name__ == "__main__":
    main()
