"""The prompt of a summary: the document first, so that a prefix cache may keep it, then the ask."""

TEMPLATE = "{document}\n\nSummarize the text above in {sentences}, at most {asked_words} words."
CONCISE_TEMPLATE = "{document}\n\nSummarize the text above. Be concise."
"""The prompt that names no number."""
WORDS_PER_SENTENCE = 22
"""Small models obey a number of sentences better than a number of words, so the prompt says both.

SmolLM2-135M (8 papers, greedy): asked for 27 and 75 words it wrote 93 and 200 by the words alone,
65 and 140 with the sentences.
"""


def summary_prompt(document_text: str, asked_words: int | None) -> str:
    """Return the user message that asks for at most `asked_words` words; None: to be concise."""
    if asked_words is None:
        return CONCISE_TEMPLATE.format(document=document_text)
    count = max(1, round(asked_words / WORDS_PER_SENTENCE))
    sentences = "one sentence" if count == 1 else f"{count} sentences"
    return TEMPLATE.format(document=document_text, sentences=sentences, asked_words=asked_words)
