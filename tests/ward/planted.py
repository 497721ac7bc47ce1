"""Secrets of thirty kinds made from a seed, planted in the places where people leave them."""

import base64
import random
import string
from collections.abc import Callable

LETTERS, DIGITS = string.ascii_letters, string.digits
ALNUM = LETTERS + DIGITS
URLSAFE = ALNUM + "-_"
HEX = "0123456789abcdef"
B64 = ALNUM + "+/"

Make = Callable[[random.Random], str]


def chars(alphabet: str, count: int) -> Callable[[random.Random], str]:
    return lambda r: "".join(r.choice(alphabet) for _ in range(count))


def after(prefix: str, alphabet: str, count: int) -> Make:
    return lambda r: prefix + chars(alphabet, count)(r)


def jwt(r: random.Random) -> str:
    def part(length: int) -> str:
        return chars(URLSAFE, length)(r)

    return f"eyJ{part(33)}.eyJ{part(60)}.{part(43)}"


def private_key(r: random.Random) -> str:
    body = base64.b64encode(r.randbytes(300)).decode()
    lines = "\n".join(body[i : i + 64] for i in range(0, len(body), 64))
    kind = r.choice(["RSA ", "EC ", "OPENSSH ", ""])
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{lines}\n-----END {kind}PRIVATE KEY-----"


WORDS = (
    "correct", "horse", "battery", "staple", "window", "orange", "tiger", "lily", "garden", "silver",
    "monday", "river", "stone", "cloud", "copper", "anchor", "maple", "winter", "summer", "dragon",
    "coffee", "rocket", "violin", "planet", "candle", "harbor", "meadow", "falcon",
)  # fmt: skip


def of_words(r: random.Random) -> str:
    """A password that people can remember."""
    said = r.choice("-_.").join(r.choice(WORDS) for _ in range(r.randint(3, 4)))
    return r.choice(
        [said, r.choice(WORDS) + r.choice(WORDS), r.choice(WORDS).capitalize() + f"{r.randint(10, 999)}!"]
    )


def password(r: random.Random) -> str:
    word = r.choice(["hunter", "Sommer", "trustno", "Winter", "letmein", "S3cure!", "qwErty", "m0nkey#"])
    return word + chars(DIGITS, r.randint(2, 5))(r) + r.choice(["", "!", "#x", "_K"])


KINDS: dict[str, Make] = {
    "aws access key": after("AKIA", string.ascii_uppercase + "234567", 16),
    "github token": after("ghp_", ALNUM, 36),
    "github fine-grained": after("github_pat_", ALNUM + "_", 82),
    "gitlab token": after("glpat-", URLSAFE, 20),
    "slack bot token": lambda r: f"xoxb-{chars(DIGITS, 12)(r)}-{chars(DIGITS, 13)(r)}-{chars(ALNUM, 24)(r)}",
    "slack webhook": lambda r: (
        f"https://hooks.slack.com/services/T{chars(string.ascii_uppercase + DIGITS, 8)(r)}/B{chars(string.ascii_uppercase + DIGITS, 8)(r)}/{chars(ALNUM, 24)(r)}"
    ),
    "anthropic key": lambda r: f"sk-ant-api03-{chars(URLSAFE, 93)(r)}AA",
    "openai project key": after("sk-proj-", URLSAFE, 120),
    "openai old key": after("sk-", ALNUM, 48),
    "google api key": after("AIza", URLSAFE, 35),
    "google oauth secret": after("GOCSPX-", URLSAFE, 28),
    "stripe live key": after("sk_live_", ALNUM, 24),
    "sendgrid key": lambda r: f"SG.{chars(URLSAFE, 22)(r)}.{chars(URLSAFE, 43)(r)}",
    "npm token": after("npm_", ALNUM, 36),
    "pypi token": after("pypi-AgEIcHlwaS5vcmc", URLSAFE, 120),
    "huggingface token": after("hf_", LETTERS, 34),
    "azure storage key": lambda r: (
        f"DefaultEndpointsProtocol=https;AccountName=a;AccountKey={chars(B64, 86)(r)}==;EndpointSuffix=core.windows.net"
    ),
    "digitalocean token": after("dop_v1_", HEX, 64),
    "databricks token": after("dapi", HEX, 32),
    "jwt": jwt,
    "private key": private_key,
    "telegram bot token": lambda r: f"{r.randint(10**9, 10**10 - 1)}:AA{chars(URLSAFE, 33)(r)}",
    "shopify token": after("shpat_", HEX, 32),
    "vault token": after("hvs.", URLSAFE, 90),
    "docker token": after("dckr_pat_", URLSAFE, 27),
    "mailgun key": after("key-", HEX, 32),
    "database url": lambda r: f"postgresql://app:{password(r)}@db.internal:5432/app",
    "connection string": lambda r: f"Server=db;User Id=app;Password={password(r)};Timeout=3",
    "netrc": lambda r: f"machine git.corp login bot password {password(r)}",
    "bearer header": lambda r: f"Authorization: Bearer {chars(ALNUM, 40)(r)}",
    "command password": lambda r: f"PGPASSWORD={password(r)} psql -h db -c 'select 1'",
    "grafana token": after("glsa_", ALNUM, 32),
    "github app token": after("ghs_", ALNUM, 36),
    "slack app token": lambda r: (
        f"xapp-1-A{chars(ALNUM.upper(), 10)(r)}-{chars(DIGITS, 13)(r)}-{chars(HEX, 64)(r)}"
    ),
    "openrouter key": after("sk-or-v1-", HEX, 64),
    "linear key": after("lin_api_", ALNUM, 40),
    "notion token": after("ntn_", ALNUM, 46),
    "postman key": lambda r: f"PMAK-{chars(HEX, 24)(r)}-{chars(HEX, 34)(r)}",
    "doppler token": after("dp.pt.", ALNUM, 43),
    "groq key": after("gsk_", ALNUM, 52),
    "tailscale key": lambda r: f"tskey-auth-{chars(ALNUM, 12)(r)}-{chars(ALNUM, 32)(r)}",
    "age key": after("AGE-SECRET-KEY-1", "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L", 58),
    "atlassian token": after("ATATT3xFfGF0", URLSAFE, 170),
}


def encoded(r: random.Random) -> str:
    """A user and password as registries keep them."""
    return base64.b64encode(f"bot:{chars(ALNUM, 20)(r)}".encode()).decode()


# Values that only their surroundings give away.
NAMED: dict[str, Make] = {
    "password in python": lambda r: f'DB_PASSWORD = "{password(r)}"\n',
    "password in .env": lambda r: f"ADMIN_PASSWORD={password(r)}\n",
    "password in yaml": lambda r: f"database:\n  user: app\n  password: {password(r)}\n",
    "password in json": lambda r: f'{{"user": "app", "password": "{password(r)}"}}\n',
    "api key in python": lambda r: f"api_key = '{chars(ALNUM, 32)(r)}'\n",
    "secret in .env": lambda r: f"CLIENT_SECRET={chars(ALNUM, 40)(r)}\n",
    "token in yaml": lambda r: f"  auth_token: {chars(HEX, 40)(r)}\n",
    "password in words": lambda r: (
        f"the db password is {r.choice(['hunter', 'summer', 'dragon'])}{r.randint(10, 9999)}\n"
    ),
    "npmrc": lambda r: f"//registry.npmjs.org/:_authToken={chars(ALNUM, 36)(r)}\n",
    "docker config": lambda r: f'{{"auths": {{"r.corp": {{"auth": "{encoded(r)}"}}}}}}\n',
    "encoded private key": lambda r: (
        f"    client-key-data: {base64.b64encode(private_key(r).encode()).decode()}\n"
    ),
    "putty key": lambda r: (
        f"Encryption: none\nPrivate-Lines: 1\n{base64.b64encode(r.randbytes(36)).decode()}\n"
    ),
    "fernet key": lambda r: f'FERNET_KEY = "{base64.urlsafe_b64encode(r.randbytes(32)).decode()}"\n',
    "jdbc url": lambda r: f"url=jdbc:postgresql://db/x?user=app&password={password(r)}\n",
    "token in a url": lambda r: f"GET https://api.corp/v1?access_token={chars(ALNUM, 32)(r)}\n",
    "hex api key": lambda r: f"DD_API_KEY={chars(HEX, 32)(r)}\n",
    "密码": lambda r: f"密码：{r.choice(['hunter', 'summer'])}{r.randint(10, 9999)}\n",
}

# Passwords of ordinary words, in the files in which people keep settings: (file name, text).
SETTINGS: dict[str, tuple[str, Make]] = {
    "words in .env": (".env", lambda r: f"{r.choice(['DB_', 'SMTP_', ''])}PASSWORD={of_words(r)}\n"),
    "words in quotes": (".env.local", lambda r: f'DB_PASSWORD="{of_words(r)}"\n'),
    "words in yaml": (
        "app.yaml",
        lambda r: f"db:\n  user: app\n  {r.choice(['', 'root-'])}password: {of_words(r)}\n",
    ),
    "words in ini": ("app.ini", lambda r: f"[db]\nuser = app\npasswd = {of_words(r)}\n"),
    "words for pass": ("mail.ini", lambda r: f"[smtp]\nuser = app\npass = {of_words(r)}\n"),
    "words in toml": ("app.toml", lambda r: f'[db]\npassword = "{of_words(r)}"\n'),
    "words in json": ("app.json", lambda r: f'{{\n  "user": "app",\n  "password": "{of_words(r)}"\n}}\n'),
    "words in properties": ("app.properties", lambda r: f"spring.datasource.password={of_words(r)}\n"),
    "words in compose": (
        "compose.yml",
        lambda r: f"    environment:\n      - POSTGRES_PASSWORD={of_words(r)}\n",
    ),
    "words in a Dockerfile": ("Dockerfile", lambda r: f"ENV MYSQL_ROOT_PASSWORD={of_words(r)}\n"),
    "words in xml": ("app.xml", lambda r: f"<password>{of_words(r)}</password>\n"),
    "words in .pgpass": (".pgpass", lambda r: f"db.internal:5432:app:app:{of_words(r)}\n"),
}

PLACES: tuple[str, ...] = (
    "{}\n", "KEY={}\n", "key: {}\n", '{{"value": "{}"}}\n', "client = Client('{}')\n", "# {}\n", "export THING='{}'\n",
    "curl -H 'x-api-key: {}' https://api.example.org/v1\n", "The value is {} for now.\n", "   {}   \n",
)  # fmt: skip

AROUND = "import os\n\n\ndef main() -> int:\n    total = sum(range(10))\n    return total\n\n"


def planted(seed: int, rounds: int) -> list[tuple[str, str]]:
    """(kind, file text) with one secret in each."""
    r = random.Random(seed)
    found = []
    for name, make in KINDS.items():
        for _ in range(rounds):
            found.append((name, AROUND + r.choice(PLACES).format(make(r)) + AROUND))
    for name, make in NAMED.items():
        found += [(name, AROUND + make(r) + AROUND) for _ in range(rounds)]
    return found
