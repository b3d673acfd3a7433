"""Section 4 of the paper, computable: how many iterations, and what can be found at all.

A pure library. Times: :class:`~srs_ooc.paper_theory.settings.Setting` with
:func:`~srs_ooc.paper_theory.times.expected_time` and its neighbours; rounds in
:mod:`~srs_ooc.paper_theory.rounds`. See docs/theory.md and docs/errata.md.
"""
