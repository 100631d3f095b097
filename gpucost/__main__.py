"""`python -m gpucost`."""

from gpucost.cli import main

if __name__ == "__main__":
    main()
