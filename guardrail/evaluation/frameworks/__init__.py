"""The metrics of this package as metric objects of other evaluation frameworks: ragas and deepeval."""
