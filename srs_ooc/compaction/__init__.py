"""From the selected features of a run to nested small sets, with their accuracy held out."""
