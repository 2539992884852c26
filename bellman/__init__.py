"""Experiments on LLM serving under congestion (beLLMan, arXiv 2510.15330)."""
