"""Settings for every test: how long an example takes is not what is tested."""

from hypothesis import settings

settings.register_profile("drift", deadline=None)
settings.load_profile("drift")
