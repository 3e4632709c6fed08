"""A trained model as an HTTP service: JSON in, predictions out."""
