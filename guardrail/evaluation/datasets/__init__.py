"""Data sets measured item by item: read, measured, resumed, summed up."""
