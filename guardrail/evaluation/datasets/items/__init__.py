"""Data sets to evaluate: JSON lines, CSV and Parquet, read row by row."""

from guardrail.evaluation.datasets.items.fields import FIELDS
from guardrail.evaluation.datasets.items.item import Item
from guardrail.evaluation.datasets.items.source import Items

__all__ = ["FIELDS", "Item", "Items"]
