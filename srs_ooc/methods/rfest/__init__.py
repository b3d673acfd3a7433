"""RFEST: features scored by what altering them does to trees: a command, and a closing stage."""
