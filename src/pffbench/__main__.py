"""`python -m pffbench`."""

from pffbench.cli import main

if __name__ == "__main__":
    main()
