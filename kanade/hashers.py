"""How staff passwords are hashed."""

from django.contrib.auth.hashers import Argon2PasswordHasher


class Argon2(Argon2PasswordHasher):
    """Argon2id with 19 MiB and one lane: the default's 100 MiB a try invites exhaustion."""

    time_cost = 2
    memory_cost = 19_456
    parallelism = 1
