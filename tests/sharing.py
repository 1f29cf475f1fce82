"""How ranks share files and arrays, in the word that names of cases have for it."""

from pffbench.case import files_word


def keys_of(word):
    """Return the keys of a case for a word, such as ``one-per_rank``, or for a list of words."""
    if isinstance(word, list | tuple):
        each = [keys_of(one) for one in word]
        arrays = [one["arrays"] for one in each if one["files"] != "per_rank"]
        return {
            "files": list(dict.fromkeys(one["files"] for one in each)),
            "arrays": list(dict.fromkeys(arrays)) or "per_rank",
        }
    files, _, arrays = word.partition("-")
    assert files in ("one", "per_rank"), word
    return {"files": files, "arrays": arrays or "per_rank"}


def word_of(parameters):
    """Return the word for the parameters of a record."""
    return files_word(parameters["files"], parameters.get("arrays", "shared"))
