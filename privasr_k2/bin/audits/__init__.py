"""Attacks of each kind of release and training; ``audit`` chooses one by its inputs."""
