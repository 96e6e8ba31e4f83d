"""Every epsilon of the project: mechanisms, accounting, ledger, plan, audits. Recipes compute
none.
"""
