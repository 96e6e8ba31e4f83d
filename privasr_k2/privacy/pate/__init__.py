"""Privacy cost of the answers of an ensemble of teachers [papernot2017, papernot2018].

Every teacher is trained on a shard of its own and votes for one class per query; only noisy results
of the vote leave. One unit is in one shard, so adding, removing or changing one unit changes one
teacher: in the histogram of a query it takes one vote from a class and gives it to another. The
number of teachers is public and fixed. All bounds of this package are for that relation, which both
papers use: the vector of counts moves by at most sqrt(2) in L2 and 2 in L1, the largest count by at
    most 1.

Data-independent costs are events (:mod:`~privasr_k2.privacy.pate.gnmax`,
:mod:`~privasr_k2.privacy.pate.lnmax`): they go into a ledger. Costs that depend on the votes are
themselves
private: they come as :class:`~privasr_k2.privacy.pate.best_order.NotForRelease`.

[papernot2017] N. Papernot, M. Abadi, Ú. Erlingsson, I. Goodfellow and K. Talwar, Semi-supervised
knowledge transfer for deep learning from private training data, ICLR 2017, arXiv 1610.05755.
[papernot2018] N. Papernot, S. Song, I. Mironov, A. Raghunathan, K. Talwar and Ú. Erlingsson,
Scalable private learning with PATE, ICLR 2018, arXiv 1802.08908.
"""
