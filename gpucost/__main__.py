"""`python -m gpucost`."""

from gpucost.cli import run

if __name__ == "__main__":
    run()
