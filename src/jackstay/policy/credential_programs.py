"""Which programs serve credentials, and in which form do they only look?"""

from msgspec import Struct

Words = tuple[str | None, ...]


class Form(Struct, frozen=True, gc=False):
    """How a credential program is called when it changes nothing.

    Its first plain word (or pair of words, joined by a blank) is one of `words`, or one of its options is in
    `needs`; and none of its options begins with one of `never`.
    """

    words: frozenset[str] = frozenset()
    needs: frozenset[str] = frozenset()
    never: tuple[str, ...] = ()


def _form(words: str = "", needs: str = "", never: str = "") -> Form:
    return Form(frozenset(words.split("|")) - {""}, frozenset(needs.split()), tuple(never.split()))


_GPG = _form(
    needs="-d --decrypt -k -K --list-keys --list-secret-keys --fingerprint --verify --list-packets --version",
    never="-o --output -e -c -s --encrypt --symmetric --sign --clear --detach --import --export --delete --gen "
    "--quick --full --edit --recv --send --refresh --update --card --change --store --enarmor --dearmor --make",
)

# Second seed §16.3.5; what each program's looking forms are is from its manual.
PROGRAMS: dict[str, Form] = {
    "gpg": _GPG,
    "gpg2": _GPG,
    "pass": _form("show|ls|list|find|search|grep"),
    "gopass": _form("show|ls|list|find|search|grep"),
    "keepassxc-cli": _form("show|ls|search|locate|db-info"),
    "kpcli": _form(),
    "secret-tool": _form("lookup|search"),
    "op": _form("read|whoami|item get|item list|vault get|vault list|account list", never="--out-file -o"),
    "bw": _form("get|list|status", never="--output"),
    "rbw": _form("get|list|unlocked"),
    "lpass": _form("show|ls|status"),
    "vault": _form("read|list|status|kv get|kv list"),
    "ssh-add": _form(needs="-l -L"),
    "age": _form(needs="-d --decrypt", never="-o --output"),
    "sops": _form("decrypt", needs="-d --decrypt", never="-i --in-place --output"),
}


def is_credential(words: Words) -> bool:
    """Does a simple command run a credential program?"""
    return _name(words) in PROGRAMS


def only_looks(words: Words) -> bool:
    """Is it called in a form that reads secrets and changes nothing? In doubt it is not."""
    form = PROGRAMS.get(_name(words))
    if form is None or None in words:
        return False
    given = [word for word in words[1:] if word is not None]
    options = [word for word in given if word.startswith("-")]
    if any(option.startswith(form.never) for option in options) and form.never:
        return False
    plain = [word for word in given if not word.startswith("-")]
    named = bool(plain) and (plain[0] in form.words or " ".join(plain[:2]) in form.words)
    return named or bool(form.needs.intersection(options))


def _name(words: Words) -> str:
    return (words[0] or "").rsplit("/", 1)[-1] if words else ""
