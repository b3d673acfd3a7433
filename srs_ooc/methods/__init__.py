"""Methods beside SRS, as packages from outside would add them: by ``srs_ooc.extend`` alone."""
