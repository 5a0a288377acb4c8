"""Data sets to evaluate: JSON lines, CSV and Parquet, read row by row."""

from guardrail.evaluation.items.fields import FIELDS
from guardrail.evaluation.items.item import Item
from guardrail.evaluation.items.source import Items

__all__ = ["FIELDS", "Item", "Items"]
