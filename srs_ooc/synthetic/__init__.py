"""Tables with a known truth, generated in bounded memory; ``registry`` lists the problems."""
