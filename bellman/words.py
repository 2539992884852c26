"""What a word is, everywhere in this project: budgets, banks, records and scores count alike."""


def count_words(text: str) -> int:
    """Count whitespace-separated words, what a reader of "at most N words" would count."""
    return len(text.split())
