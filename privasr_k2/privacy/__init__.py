"""Mechanisms, accounting, ledger, plan and audits: every epsilon of the project."""
