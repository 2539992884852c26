"""Text that somebody else's server wrote, made fit for records and terminals."""


def whole_characters(text: str) -> str:
    """Join the two halves of a surrogate pair, and replace a half that is alone by U+FFFD.

    JSON can carry such halves, UTF-8 cannot: a file of records would refuse them.
    """
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def printable(text: str, longest: int) -> str:
    """Return the text in one line of at most `longest` characters (then "..."), all visible.

    What no terminal should get (escape sequences, text direction, halves of characters) becomes
    U+FFFD. Rich's markup is not touched: print it with `markup=False`.
    """
    start = whole_characters(text[: 4 * longest])
    line = " ".join(start.split())
    cut = len(line) > longest or len(text) > 4 * longest
    visible = "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in line[:longest])
    return visible + "..." if cut else visible
