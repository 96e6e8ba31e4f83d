"""Families of public encoders: each module adds itself to ``encoders.common.FAMILIES``."""
