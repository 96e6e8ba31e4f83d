"""Public encoders: networks that others trained on speech, read from their files.

:class:`privasr_k2.encoders.common.PublicEncoder` is the interface, and
:func:`privasr_k2.encoders.loading.load_encoder` reads one. A new family is one file of
``privasr_k2/encoders/families/``, or a plugin (:mod:`privasr_k2.plugins`).
"""
