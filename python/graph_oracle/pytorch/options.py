"""Options of a request: strings, or lists of strings (docs/case_format.md)."""

from .errors import Refused

_UNITS = {"": 1.0, "B": 1 / 2**20, "KB": 1 / 2**10, "MB": 1.0, "GB": 2.0**10, "TB": 2.0**20}


def text(value):
    """An option as one string."""
    if isinstance(value, list):
        return ",".join(map(text, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value).strip()


def words(value):
    """An option as a list of words."""
    return [word.strip() for word in text(value).split(",") if word.strip()]


def choose(key, value, names):
    """What `names` has under the value."""
    value = text(value)
    if value not in names:
        raise Refused(f"option {key}={value}: this worker knows {', '.join(names)}")
    return names[value]


def yes(key, value):
    return choose(key, value, {"yes": True, "no": False, "true": True, "false": False})


def number(key, value, kind=int):
    try:
        return kind(text(value))
    except ValueError:
        raise Refused(f"option {key}={text(value)} is no number") from None


def megabytes(key, value):
    """Sizes as MB of 1024 * 1024 bytes: `64MiB`, `200B`, or a bare number of MB. A list of them."""
    found = []
    for word in words(value):
        digits = word.rstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
        factor = _UNITS.get(word[len(digits) :].replace("iB", "B"))
        if factor is None:
            raise Refused(f"option {key}={word} is no size")
        found.append(number(key, digits, float) * factor)
    return found


def known(options, keys):
    """Refused where an option is given that is not among `keys`."""
    for key in options:
        if key not in keys:
            raise Refused(f"option {key} is not one that this worker knows ({', '.join(keys)})")
