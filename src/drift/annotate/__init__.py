"""Labelling texts while a model learns: `drift.Annotation` in Python, `drift annotate` in the browser."""
