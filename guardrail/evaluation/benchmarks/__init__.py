"""The guard measured on answers that people have labelled, beside what others have published."""
