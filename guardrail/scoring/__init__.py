"""From segments and passages to verdicts: ROUGE, evidence, entailment, clashes, ΔR, faithfulness."""
