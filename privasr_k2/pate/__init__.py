"""Private aggregation of teacher ensembles (PATE) for end-to-end recognizers [yang2022].

[yang2022] C.-H. H. Yang, I-F. Chen, A. Stolcke, S. M. Siniscalchi, C.-H. Lee, An experimental study
on private aggregation of teacher ensemble learning for end-to-end speech recognition, SLT 2022.
"""
