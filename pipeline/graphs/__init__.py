"""Tools that rewrite ONNX graphs and show that they stay the same function."""
