"""RFEST: a closing stage that scores features by what altering them does to trees."""
