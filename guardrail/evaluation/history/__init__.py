"""Scores of live traffic: a share of the runs, scored off the path, in one file that many processes write."""
