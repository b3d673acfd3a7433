"""Methods that live outside the core: each imports ``srs_ooc.extend``, and nothing else of it."""
