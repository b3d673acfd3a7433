"""What holds for every test: no property is timed, so a slow machine fails none."""

from hypothesis import HealthCheck, settings

settings.register_profile(
    "untimed",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    derandomize=settings().derandomize,  # as the environment asked
)
settings.load_profile("untimed")
