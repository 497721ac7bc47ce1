"""Does this client of a data store only ask?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from . import effects as fx
from .effects import READERS, Call, Judge
from .facts import Word
from .operands import options
from .options import Seen, scan
from .table import Entry, Spec, prepare

_ASKS: Final = re.compile(
    r"\s*(?:select|show|values|table|describe|desc|explain(?!\s+\(?analy))\b", re.IGNORECASE
)
_SQL_TOKEN: Final = re.compile(r"'(?:[^'\\]|'')*'|\"[^\"\\]*\"|([A-Za-z_][\w.]*)(\s*\()?|[\s\S]")
_SQL_FUNCTIONS: Final = frozenset(
    ("count", "sum", "min", "max", "avg", "now", "version", "length", "lower", "upper", "coalesce", "round",
     "date_trunc", "current_database", "in", "values", "as", "and", "or", "not", "over", "filter", "exists",
     "any", "all", "case", "when", "from", "where", "on", "using", "join", "by", "extract", "cast", "abs",
     "ceil", "floor", "concat", "substring", "substr", "trim", "left", "right", "replace", "nullif",
     "greatest", "least", "to_char", "age", "date", "time", "string_agg", "array_agg", "json_agg",
     "row_number", "rank", "dense_rank", "lag", "lead", "pg_size_pretty", "pg_database_size",
     "pg_total_relation_size", "pg_relation_size", "pg_table_size", "pg_is_in_recovery", "current_schema",
     "current_user", "database", "user", "typeof", "ifnull", "sqlite_version", "group_concat", "total",
     "strftime", "datetime", "julianday", "hex", "like", "between", "limit", "order", "group", "select")
)  # fmt: skip
_SQL_CHANGES: Final = frozenset(
    ("insert", "update", "delete", "drop", "alter", "create", "truncate", "grant", "revoke", "copy", "into",
     "call", "do", "execute", "merge", "replace", "set", "lock", "vacuum", "analyze", "reindex", "cluster",
     "attach", "detach", "pragma", "load", "load_extension", "outfile", "dumpfile", "nextval", "setval",
     "for", "share", "handler", "rename", "begin", "commit")
)  # fmt: skip
_SLASH: Final = re.compile(
    r"\\(?:d[a-zA-Z]*[+S]*|l\+?|conninfo|dt\+?|z|encoding|timing|x|a|t|pset \w+)(?: [\w.*?\"-]+)?\s*"
)
_DOT: Final = re.compile(
    r"\.(?:tables|schema|indexes|indices|databases|dbinfo|headers?|mode|show|width|nullvalue|separator|"
    r"fullschema|stats|timer)"
    r"(?:\s+[\w.*%-]+)*"
)
_LOCAL: Final = frozenset(("localhost", "127.0.0.1", "::1", "/tmp", "/var/run/postgresql", "/run/postgresql"))


def sql_doubt(text: str) -> str | None:
    """Say what a piece of SQL does beyond asking, or None."""
    if "--" in text or "/*" in text or "\\" in text or "$$" in text or "#" in text:
        return "has comments or escapes"
    statement: list[str] = []
    for match in _SQL_TOKEN.finditer(text + ";"):
        token, word, called = match.group(), match.group(1), match.group(2)
        if token in ("'", '"', "`"):
            return "has a quote that is not certain"
        if token == ";":
            joined = "".join(statement)
            if joined.strip() and not _ASKS.match(joined):
                return f"runs {joined.strip().split()[0]}"
            statement = []
            continue
        statement.append(token)
        if word is not None and word.lower() in _SQL_CHANGES:
            return f"says {word}"
        if word is not None and called and word.lower() not in _SQL_FUNCTIONS:
            return f"calls {word}"
    return None


_PSQL: Final = prepare(
    "psql",
    Entry(
        short="AtxqXzEneVlw0 c: d: U: p: F: R: P: h: f:! o:> L:> v: W s S 1 a b",
        long="no-align tuples-only expanded quiet no-psqlrc list version command= dbname= username= port= "
        "host= csv "
        "html field-separator= record-separator= pset= file=! output=> log-file=> no-password echo-errors",
        operands="text",
    ),
)
_MYSQL: Final = prepare(
    "mysql",
    Entry(
        short="NBstvHEXrCLAG u: p:? D: P: h: S: e:",
        long="execute= user= password=? database= port= host= socket= batch silent table vertical "
        "skip-column-names raw "
        "html xml no-auto-rehash version default-character-set=",
        operands="text",
    ),
)
_SQLITE: Final = prepare(
    "sqlite3",
    Entry(
        word="readonly header noheader csv column json line list html markdown table box quote ascii tabs "
        "batch bail "
        "separator: nullvalue: newline: safe nofollow version immutable cmd:! init:! interactive* A!",
        style="word",
        operands="text",
    ),
)


_SECRET_TABLES: Final = re.compile(
    r"\b(?:pg_authid|pg_shadow|pg_user_mapping|rolpassword|authentication_string|mysql\W+user)\b", re.IGNORECASE
)


def psql(judge: Judge, call: Call, spec: Spec) -> None:
    """`psql`: `-l` and `-c` with plain questions."""
    seen, _ = scan(_PSQL, call.arguments, call.scope)
    options(judge, call, _PSQL, seen)
    _far(judge, call, seen)
    asked = [given.value for given in seen.options if given.name in ("-c", "--command")]
    if not asked and not {"-l", "--list", "-V", "--version"} & seen.names:
        judge.note(fx.EXECUTES, call.name, call.text, "reads statements from its input")
    _statements(judge, call, asked, _SLASH)


def mysql(judge: Judge, call: Call, spec: Spec) -> None:
    """`mysql`: `-e` with plain questions."""
    seen, _ = scan(_MYSQL, call.arguments, call.scope)
    options(judge, call, _MYSQL, seen)
    _far(judge, call, seen)
    asked = [given.value for given in seen.options if given.name in ("-e", "--execute")]
    if not asked and not {"-V", "--version"} & seen.names:
        judge.note(fx.EXECUTES, call.name, call.text, "reads statements from its input")
    _statements(judge, call, asked, None)


def sqlite3(judge: Judge, call: Call, spec: Spec) -> None:
    """`sqlite3`: a database opened for reading only, and plain questions or `.tables`, `.schema`."""
    seen, _ = scan(_SQLITE, call.arguments, call.scope)
    options(judge, call, _SQLITE, seen)
    if not {"-readonly", "--readonly"} & seen.names:
        judge.note(
            fx.WRITES, call.name, call.text, "creates the database when there is none; -readonly would not"
        )
    if len(seen.operands) < 2:
        judge.note(fx.EXECUTES, call.name, call.text, "reads statements from its input")
    judge.reads(seen.operands[:1], call.text)
    _statements(judge, call, seen.operands[1:], _DOT)


def _far(judge: Judge, call: Call, seen: Seen) -> None:
    for given in seen.options:
        if given.name in ("-h", "--host") and given.value is not None and given.value.text not in _LOCAL:
            judge.note(fx.SENDS, given.value.text, call.text, f"talks to {given.value.text}")
    named = [given.value for given in seen.options if given.name in ("-d", "--dbname") and given.value]
    for word in (*seen.operands, *named):
        if "://" in word.text or "=" in word.text or not word.fixed:
            judge.note(fx.SENDS, word.text, call.text, f"talks to {word.text}")


def _statements(
    judge: Judge, call: Call, asked: Sequence[Word | None], special: re.Pattern[str] | None
) -> None:
    for word in asked:
        texts = None if word is None else call.scope.texts(word)
        if texts is None:
            judge.unproven(call, "is given statements that are not written out")
        for text in texts or ():
            if special is not None and special.fullmatch(text.strip()):
                continue
            if _SECRET_TABLES.search(text):
                judge.note(fx.CREDENTIALS, text, call.text, "reads what passwords are checked against")
            doubt = sql_doubt(text)
            if doubt is not None:
                judge.note(fx.WRITES, text, call.text, f"may change data: it {doubt}")


_REDIS_ASKS: Final = frozenset(
    ("get", "mget", "keys", "scan", "info", "ping", "dbsize", "ttl", "pttl", "type", "exists", "llen",
     "lrange", "lindex", "hget", "hgetall", "hkeys", "hvals", "hlen", "hmget", "hexists", "smembers",
     "scard", "sismember", "sscan", "zrange", "zrevrange", "zcard", "zscore", "zrank", "zcount", "strlen",
     "getrange", "lastsave", "time", "xlen", "xrange", "xinfo", "randomkey", "role", "hscan", "zscan",
     "bitcount", "echo")
)  # fmt: skip
_REDIS_PAIRS: Final = frozenset(
    ("memory usage", "memory stats", "client list", "client id", "client info", "client getname",
     "config get",
     "slowlog get", "slowlog len", "object encoding", "object idletime", "object refcount", "cluster info",
     "cluster nodes", "command count", "latency latest", "latency history", "pubsub channels", "acl whoami")
)  # fmt: skip
_REDIS: Final = prepare(
    "redis-cli",
    Entry(short="n: p: h: u:^ s: a:$ r: i: x!", long="raw no-raw csv json no-auth-warning stat* latency* "
    "bigkeys "
          "memkeys hotkeys scan pattern= count= version eval=! pipe! rdb=> user= pass=$"),
)  # fmt: skip


def redis(judge: Judge, call: Call, spec: Spec) -> None:
    """`redis-cli`: commands that read keys or the state of the server."""
    seen, at = scan(_REDIS, call.arguments, call.scope, stop=True)
    options(judge, call, _REDIS, seen)
    _far(judge, call, seen)
    words = [word.text.lower() if word.fixed else "" for word in call.arguments[at:]]
    plain = {"--version", "--bigkeys", "--memkeys", "--hotkeys", "--stat", "--latency", "--scan"} & seen.names
    if not words and plain:
        return
    if not words or (words[0] not in _REDIS_ASKS and " ".join(words[:2]) not in _REDIS_PAIRS):
        judge.note(fx.WRITES, words[0] if words else "", call.text, "is not a command that only reads keys")


READERS.update({"psql": psql, "mysql": mysql, "sqlite3": sqlite3, "redis": redis})
