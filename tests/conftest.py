"""What holds for all tests: nothing depends on the machine's speed, or on how they were started."""

import signal

from hypothesis import HealthCheck, settings

settings.register_profile(
    "any machine",
    deadline=None,
    max_examples=50,  # others in every run
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("any machine")

# A background job has SIGINT ignored and nohup's has SIGHUP ignored, and all that it starts has,
# too: tests that send them to a process would wait for ever.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)
