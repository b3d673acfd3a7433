"""What the command line does, as calls that print nothing; ``srs_ooc`` itself exports them."""
