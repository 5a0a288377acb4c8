"""Training of the entailment model: pairs, perturbations, the loop, the export. Needs the extra ``[train]``."""
