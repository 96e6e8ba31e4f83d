"""Privacy cost of the answers of an ensemble of teachers [papernot2017, papernot2018].

Every teacher is trained on a shard of its own and votes for one class per query; only noisy results
of the vote leave. One unit is in one shard: adding or removing its data changes one teacher. The
roster of units and the number of teachers are public and fixed. In the histogram of a query one
vote moves, as in both papers, or, where every shard holds one unit at most, one vote is given or
not: :class:`~privasr_k2.privacy.pate.sensitivity.Change`.

Data-independent costs are events, which go into a ledger. Costs that depend on the votes are
private: they come as :class:`~privasr_k2.privacy.pate.best_order.NotForRelease`.

[papernot2017] N. Papernot, M. Abadi, Ú. Erlingsson, I. Goodfellow and K. Talwar, Semi-supervised
knowledge transfer for deep learning from private training data, ICLR 2017, arXiv 1610.05755.
[papernot2018] N. Papernot, S. Song, I. Mironov, A. Raghunathan, K. Talwar and Ú. Erlingsson,
Scalable private learning with PATE, ICLR 2018, arXiv 1802.08908.
"""
