"""Networks: encoders and heads."""
