"""The prompt of a summary: the document first, so that a prefix cache may keep it, then the ask."""


def summary_prompt(document_text: str, asked_words: int) -> str:
    """Return the user message that asks for a summary of at most `asked_words` words."""
    return f"{document_text}\n\nSummarize the text above in at most {asked_words} words."
