"""For every test: no property is timed, and what other tests left in memory is not counted."""

from examples import number
from hypothesis import HealthCheck, settings

from srs_ooc.base.budget import process_nbytes, program_nbytes

settings.register_profile(
    "untimed",
    deadline=None,
    max_examples=number(settings().max_examples),
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=settings().derandomize,  # as the environment asked
)
settings.load_profile("untimed")

# A process is measured once, when its size is first asked for: now, before tests make it grow.
process_nbytes()
program_nbytes(0)
