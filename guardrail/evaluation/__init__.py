"""Measuring the guard on labelled data, through the same code that serves requests."""
