"""Raw bytes, without a format: the roofline of the formats."""
