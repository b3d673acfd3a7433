"""``python -m srs_ooc``: the command line."""

from srs_ooc.cli import main

if __name__ == "__main__":
    main()
