# ruff: noqa: E501 (tables of texts and patterns: one row a line reads best)
"""What do secrets look like? One row for each kind, with examples and counter-examples that the tests check.

In the examples `¦` stands for nothing: without it this file would itself look like a leak.
"""

from msgspec import Struct


class SecretKind(Struct, frozen=True, gc=False):
    """A kind of secret.

    `pattern` has a group `secret`. It is only tried on texts that hold one of `keywords` (any case). A value
    counts with at least `entropy` bits a character; `mixed` asks for both letters and digits. `case` tells
    whether the pattern means its letters' case. A kind is looked for in the line of a keyword, or up to `reach`
    characters from it. `telling` values have a
    format that nothing else has. A value of ordinary `words` counts unless one of them says that it is a name.
    Kinds for `config` are only looked for in files that hold settings: in source such a value would be code.
    """

    name: str
    pattern: str
    keywords: tuple[str, ...]
    entropy: float = 2.5
    mixed: bool = False
    case: bool = True
    reach: int = 0
    telling: bool = False
    words: bool = False
    config: bool = False
    examples: tuple[str, ...] = ()
    not_examples: tuple[str, ...] = ()


def _token(name: str, prefix: str, body: str, *keywords: str, example: str, **more: float) -> SecretKind:
    """A kind whose value begins with a fixed prefix and stands free."""
    return SecretKind(
        name, rf"(?<![A-Za-z0-9_])(?P<secret>{prefix}{body})(?![A-Za-z0-9_])", keywords,
        entropy=more.get("entropy", 2.8), telling=True, examples=(example,),
    )  # fmt: skip


_NAME = r"[A-Za-z0-9_.\-]{0,40}"
_ASSIGNED = r"[\"']?\s*(?::=|=>|=|:)\s*"
_SECRET_WORD = r"(?:api[_-]?key|apikey|secret|token|auth[_-]?key|access[_-]?key|private[_-]?key|credential|client[_-]?key|signing[_-]?key|encryption[_-]?key)"
_PASSWORD_WORD = r"(?:passw(?:or)?d|passwd|passphrase|pwd|密码|口令)"
_PASSWORD_KEYS = ("passwd", "password", "passphrase", "pwd", "passw", "密码", "口令")
_BEFORE = r"(?:^|[\n,{;])[ \t]*(?:(?:export|set|ENV|ARG|-e|-)[ \t]+)?"
_LINE_END = r"[ \t]*(?=\r?(?:\n|\Z)|[ \t]#)"

KINDS: tuple[SecretKind, ...] = (
    SecretKind(
        "private-key",
        r"(?P<secret>-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:\\n|\s)+(?:[A-Za-z-]+: [^\n]{1,100}\s+){0,3}"
        r"[A-Za-z0-9+/=]{16,}(?:(?:\\n|\s)+[A-Za-z0-9+/=]+)*(?:(?:\\n|\s)*-----END[A-Z0-9 ]{1,40}-----)?)",
        ("PRIVATE KEY",), reach=12_000,
        examples=(
            "-----BEGIN¦ RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEA04up8hoqzS1\n-----END RSA PRIVATE KEY-----",
            "-----BEGIN¦ OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAABG5v\n",
            "key = \"-----BEGIN¦ PRIVATE KEY-----\\nMIIEvQIBADANBgkqhkiG9w0BAQ\\n\"",
        ),
        not_examples=("if line.startswith('-----BEGIN RSA PRIVATE KEY-----'):", "-----BEGIN PUBLIC KEY-----\nMIIBIjANBg"),
    ),
    SecretKind(
        "private-key-encoded", r"(?<![A-Za-z0-9+/])(?P<secret>LS0tLS1CRUdJTiB(?!D|QVUJM)[A-Za-z0-9+/]{60,}={0,2})", ("LS0tLS1CRUdJTi",),
        entropy=3.5, telling=True,
        examples=("client-key-data: LS0tLS1CRUdJTiB¦SU0EgUFJJVkFURSBLRVktLS0tLQpNSUlFcEFJQkFBS0NBUUVBMDR1cDhob3F6UzFrVDlMbVh2",),
        not_examples=("certificate-authority-data: LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS0tLS0tCk1JSURCVENDQWUyZ0F3SUJBZ0lJQmtqUDhob3F6UzFrVDlM",
                      "key: LS0tLS1CRUdJTiBQVUJMSUMgS0VZLS0tLS0KTUlJQklqQU5CZ2txaGtpRzl3MEJBUUVGQUFPQ0FROEFNSUlCQ2dLQ0FRRUE"),
    ),
    SecretKind(
        "putty-key", r"Private-Lines: \d+\r?\n(?P<secret>[A-Za-z0-9+/=]{16,64}(?:\r?\n[A-Za-z0-9+/=]{4,64}(?=\r?\n|\Z))*)", ("Private-Lines:",),
        entropy=3.0, reach=6_000, telling=True, examples=("Private-Lines: 1\n¦AAAAIQDx9kT3sWn4RcYhJpD1bGuE7xq9LmXvZ8f3kT2s=\nPrivate-MAC: 0a\n",),
    ),
    _token("aws-access-key", "(?:AKIA|ASIA|ABIA|ACCA)", "[A-Z0-9]{16}", "AKIA", "ASIA", "ABIA", "ACCA",
           example="aws_access_key_id = AKIA¦Y3FDQ6XWJ5KPLN7Z"),
    SecretKind(
        "aws-secret-key",
        r"aws.{0,30}?(?:secret|key).{0,30}?[=:]\s*[\"']?(?P<secret>[A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])",
        ("aws",), entropy=4.0, case=False, telling=True,
        examples=("aws_secret_access_key = wJalrXUt¦nFEMIK7MDENGbPxRfiCYzzTUVwQ8Lk1m",),
        not_examples=("aws_secret_sha = da39a3ee5e6b4b0d3255bfef95601890afd80709zz",),
    ),
    _token("github-token", "gh[pousr]_", "[A-Za-z0-9]{36,255}", "ghp_", "gho_", "ghu_", "ghs_", "ghr_",
           example="ghp_¦R7dKq2LmXv9TzB4nWc8YhJ3sPf6GuE1aQo5i"),
    _token("github-fine-grained", "github_pat_", "[A-Za-z0-9_]{22,255}", "github_pat_",
           example="github_pat_¦11ABCDE7Y0qLr8TzXwVuKs_hJ3n"),
    _token("gitlab-token", "gl(?:pat|ptt|dt|rt|cbt|soat|ft|agent)-", "[A-Za-z0-9_.\\-]{20,80}", "glpat-", "glptt-", "gldt-",
           "glrt-", "glcbt-", "glsoat-", "glft-", "glagent-", example="glpat-¦xY7sKq2Lm9TzB4nWc8Yh"),
    _token("slack-token", "xox[abeoprs]-", "[A-Za-z0-9-]{10,200}", "xoxa-", "xoxb-", "xoxe-", "xoxo-", "xoxp-", "xoxr-",
           "xoxs-", example="xoxb-¦2817364509-8f3kTq9LmXvZ"),
    _token("slack-app-token", "xapp-", "\\d-[A-Z0-9]+-\\d+-[a-f0-9]{30,80}", "xapp-",
           example="xapp-¦1-A02B7CDE9-2817364-8f3a9c1b7d5e2f4a6c8b0d9e1f3a5c7b"),
    SecretKind(
        "webhook",
        r"(?P<secret>hooks\.slack\.com/(?:services|workflows)/[A-Za-z0-9/]{24,}|discord(?:app)?\.com/api/webhooks/\d+/[\w-]{40,})",
        ("hooks.slack.com", "api/webhooks"),
        examples=("https://hooks.slack.com/¦services/T02B7CDE9/B07XYZ123/q9LmXvZ8f3kT2sWn4RcYhJpD",),
    ),
    _token("anthropic-key", "sk-ant-", "[A-Za-z0-9]{2,10}-[A-Za-z0-9_-]{20,200}", "sk-ant-",
           example="sk-ant-¦api03-xY7sKq2Lm9TzB4nWc8YhR7dKq2LmXv"),
    _token("openai-key", "sk-", "(?:(?:proj|svcacct|admin|or-v1)-[A-Za-z0-9_-]{20,250}|[A-Za-z0-9]{32,100})", "sk-",
           example="sk-¦proj-xY7sKq2Lm9TzB4nWc8YhR7dKq2LmXv", entropy=3.5),
    _token("google-api-key", "AIza", "[A-Za-z0-9_-]{35}", "AIza", example="AIza¦SyB7sKq2Lm9TzB4nWc8YhR7dKq2LmXv1Zk3"),
    _token("google-oauth", "(?:GOCSPX-|ya29\\.)", "[A-Za-z0-9_-]{20,250}", "GOCSPX-", "ya29.",
           example="GOCSPX-¦xY7sKq2Lm9TzB4nWc8YhR7dKq2Lm"),
    _token("stripe-key", "(?:[sr]k_(?:live|test)_|whsec_)", "[A-Za-z0-9+/]{16,120}=*", "sk_live_", "sk_test_", "rk_live_",
           "rk_test_", "whsec_", example="sk_live_¦51Y7sKq2Lm9TzB4nWc8YhR7d"),
    _token("sendgrid-key", "SG\\.", "[A-Za-z0-9_-]{16,32}\\.[A-Za-z0-9_-]{32,64}", "SG.",
           example="SG.¦xY7sKq2Lm9TzB4nWc8YhR7.dKq2LmXv9TzB4nWc8YhJ3sPf6GuE1aQo5iR7dKq2LmXv"),
    _token("npm-token", "npm_", "[A-Za-z0-9]{36}", "npm_", example="npm_¦R7dKq2LmXv9TzB4nWc8YhJ3sPf6GuE1aQo5i"),
    _token("pypi-token", "pypi-", "AgE[A-Za-z0-9_-]{50,250}", "pypi-AgE",
           example="pypi-¦AgEIcHlwaS5vcmcCJDR7dKq2LmXv9TzB4nWc8YhJ3sPf6GuE1aQo5iR7d"),
    _token("huggingface-token", "hf_", "[A-Za-z0-9]{30,40}", "hf_", example="hf_¦R7dKqLmXvTzBnWcYhJsPfGuEaQoiRdKqLm",
           entropy=3.5),
    SecretKind("azure-key", r"(?:AccountKey|SharedAccessKey)=(?P<secret>[A-Za-z0-9+/]{40,88}={0,2})",
               ("AccountKey=", "SharedAccessKey="), entropy=3.5,
               examples=("AccountKey=¦R7dKq2LmXv9TzB4nWc8YhJ3sPf6GuE1aQo5iR7dKq2LmXv9TzB4nWc8YhJ3sPf6GuE1aQo5iR7dKq2LmXvAA==",)),
    _token("digitalocean-token", "do[opr]_v1_", "[a-f0-9]{64}", "dop_v1_", "doo_v1_", "dor_v1_",
           example="dop_v1_¦8f3a9c1b7d5e2f4a6c8b0d9e1f3a5c7b8f3a9c1b7d5e2f4a6c8b0d9e1f3a5c7b"),
    _token("databricks-token", "dapi", "[a-f0-9]{32}(?:-\\d)?", "dapi", example="dapi¦8f3a9c1b7d5e2f4a6c8b0d9e1f3a5c7b"),
    SecretKind(
        "jwt",
        r"(?<![A-Za-z0-9_-])(?P<secret>eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{16,})",
        ("eyJ",), entropy=3.5,
        examples=("eyJhbGciOiJIUzI1NiJ9.¦eyJzdWIiOiI0ODIxIiwibiI6IkpvIn0.dBjftJeZ4CVPmB92K27uhbUJU1p1r",),
    ),
    SecretKind("telegram-bot-token", r"(?<!\d)(?P<secret>\d{8,10}:AA[A-Za-z0-9_-]{33})(?![A-Za-z0-9_-])", (":AA",),
               examples=("7182930465:¦AAHk8f3kTq9LmXvZ2sWn4RcYhJpD1bGuE7x",)),
    SecretKind("discord-token", r"(?<![\w.-])(?P<secret>[MNO][A-Za-z0-9]{23,25}\.[\w-]{6}\.[\w-]{27,40})(?![\w.-])",
               ("discord", "bot", "token"), entropy=4.2,
               examples=("DISCORD_TOKEN=M¦TE3NzY4MjQ0NzE2NTQzMjE4.GaBcDe.f3kTq9LmXvZ2sWn4RcYhJpD1bGuE7x",)),
    _token("shopify-token", "shp(?:at|ca|pa|ss)_", "[a-fA-F0-9]{32}", "shpat_", "shpca_", "shppa_", "shpss_",
           example="shpat_¦8f3a9c1b7d5e2f4a6c8b0d9e1f3a5c7b"),
    _token("vault-token", "hv[sbr]\\.", "[A-Za-z0-9_-]{24,200}", "hvs.", "hvb.", "hvr.",
           example="hvs.¦CAESIJ3sPf6GuE1aQo5iR7dKq2LmXv9T", entropy=3.2),
    _token("age-key", "AGE-SECRET-KEY-1", "[0-9A-Z]{58}", "AGE-SECRET-KEY-",
           example="AGE-SECRET-KEY-1¦QY7SKQ2LM9TZ84NWC8YHR7DKQ2LMXV9TZ84NWC8YHJ3SPF6GUE1AQ05JR7"),
    _token("docker-token", "dckr_(?:pat|oat)_", "[A-Za-z0-9_-]{20,60}", "dckr_pat_", "dckr_oat_",
           example="dckr_pat_¦xY7sKq2Lm9TzB4nWc8YhR7dKq2L"),
    _token("mailgun-key", "key-", "[0-9a-f]{32}", "key-", example="key-¦8f3a9c1b7d5e2f4a6c8b0d9e1f3a5c7b"),
    SecretKind("twilio-key", r"twilio[^\n]{0,60}?(?P<secret>\b(?:SK)?[0-9a-f]{32}\b)", ("twilio",), entropy=3.0, case=False,
               mixed=True, examples=("TWILIO_AUTH_TOKEN=¦8f3a9c1b7d5e2f4a6c8b0d9e1f3a5c7b",)),
    _token("atlassian-token", "ATATT3", "[A-Za-z0-9_=-]{60,250}", "ATATT3",
           example="ATATT3¦xFfGF0R7dKq2LmXv9TzB4nWc8YhJ3sPf6GuE1aQo5iR7dKq2LmXv9TzB4nWc8YhJ3sP"),
    _token("vendor-token",
           "(?:lin_api_|ntn_|figd_|PMAK-|NRAK-|glsa_|glc_|sntrys_|sntryu_|dp\\.[ps]t\\.|sbp_|pscale_tkn_|gsk_|r8_|pplx-|"
           "xai-|HRKU-|rpa_|tskey-(?:auth|api)-|rubygems_|cio[A-Za-z0-9]{2}_|EAACEdEose0cBA|sq0csp-|PRIVATE-)",
           "[A-Za-z0-9_-]{20,250}",
           "lin_api_", "ntn_", "figd_", "PMAK-", "NRAK-", "glsa_", "glc_", "sntrys_", "sntryu_", "dp.pt.", "dp.st.", "sbp_",
           "pscale_tkn_", "gsk_", "r8_", "pplx-", "xai-", "HRKU-", "rpa_", "tskey-", "rubygems_", "sq0csp-",
           example="lin_api_¦R7dKq2LmXv9TzB4nWc8YhJ3sPf6GuE1aQo5i", entropy=3.4),
    SecretKind(
        "url-password",
        r"\b[a-zA-Z][a-zA-Z0-9+.-]{1,20}://[^\s:/?#\[\]@\"'<>{}$%]{0,64}:(?P<secret>[^\s/@\"'<>{}$]{3,128})@[A-Za-z0-9\[]",
        ("://",), entropy=1.5,
        examples=("postgres://app:¦hunter2@db.internal:5432/x", "redis://:¦s3cr3tpw@cache:6379", "https://bot:¦q9LmXvZ8@git.corp/x.git"),
        not_examples=("http://localhost:8080/@x", "https://user:pass@host/x", "http://user:password@example.com", "ssh://git@host:22/x",
                      "postgres://user:${PASSWORD}@db/x", "scheme://username:password@host"),
    ),
    SecretKind("authorization-header", r"authorization[\"']?\s*[:=,]\s*[\"']?(?:bearer|basic|token)\s+(?P<secret>[A-Za-z0-9._~+/=-]{16,400})",
               ("authorization",), entropy=3.2, case=False, mixed=True,
               examples=("Authorization: Bearer ¦R7dKq2LmXv9TzB4nWc8YhJ3s", "-H 'authorization: Basic ¦YWRtaW46cTlMbVh2Wjg='")),
    SecretKind("netrc-password", r"\bmachine\s+\S+\s+login\s+\S+\s+password\s+(?P<secret>\S{4,128})", ("machine ",), entropy=1.5, reach=300,
               examples=("machine git.corp login bot password ¦q9LmXvZ8",), not_examples=("machine x login y password",)),
    SecretKind("command-password",
               r"(?:(?:PGPASSWORD|MYSQL_PWD|SSHPASS|REDISCLI_AUTH|RESTIC_PASSWORD|BORG_PASSPHRASE)=[\"']?|sshpass\s+-p\s*[\"']?|"
               r"\bcurl\s(?:[^\n|;&]{0,200}\s)?(?:-u|--user)[ =][\"']?[^\s:\"']{1,64}:|mysql\w*\s(?:[^\n|;&]{0,100}\s)?-p)"
               r"(?P<secret>[^\s\"'$;|&@]{3,128})",
               ("PGPASSWORD", "MYSQL_PWD", "SSHPASS", "REDISCLI_AUTH", "RESTIC_PASSWORD", "BORG_PASSPHRASE", "curl", "mysql"),
               entropy=1.5,
               examples=("PGPASSWORD=¦hunter2 psql -c 'select 1'", "sshpass -p ¦q9LmXv ssh u@h", "curl -s -u bot:¦q9LmXvZ8 https://x/",
                         "mysql -u root -p¦q9LmXvZ8 db")),
    SecretKind("password-option", r"--(?:password|passwd|passphrase|token|secret|api-key)[= ][\"']?(?P<secret>[^\s\"'$<\[{|;&]{6,128})",
               ("--password", "--passwd", "--passphrase", "--token", "--secret", "--api-key"), entropy=2.2, mixed=True,
               examples=("tool --password=¦hunter2x --host a", "deploy --token ¦q9LmXvZ8f3kT"),
               not_examples=("--password PASSWORD", "--token TOKEN1", "--password-file x1.txt")),
    SecretKind("connection-password", r"(?:^|[;\"'\s])(?:password|pwd)=(?P<secret>[^;\"'\s{}$<]{4,128});", ("password=", "pwd="),
               entropy=1.5, case=False, examples=("Server=db;User Id=app;Password=¦hunter2;Timeout=3",)),
    SecretKind(
        "password",
        rf"{_PASSWORD_WORD}{_NAME}{_ASSIGNED}[urbURB]?(?P<q>[\"'])(?P<secret>[^\"'\s\\{{}}<>$()\[\]]{{6,128}})(?P=q)(?![.\w])",
        _PASSWORD_KEYS, entropy=2.0, case=False, mixed=True,
        examples=("password = \"¦hunter2\"", "DB_PASSWORD: '¦q9LmXvZ8'", "{\"passwd\": \"¦S3cure!pass\"}", "密码: \"¦hunter2\""),
        not_examples=("password = \"password\"", "password_field = \"id_password1.name\"[0]", "password = getpass()",
                      "PASSWORD = '${DB_PASSWORD}'", "password: \"required\""),
    ),
    SecretKind(
        "password-line",
        rf"(?:^|[\n,;])[ \t]*(?:(?:export|set|ENV|ARG|-e|-)[ \t]+)?[A-Za-z0-9_.\-]{{0,40}}?{_PASSWORD_WORD}[A-Za-z0-9_]*[ \t]*(?:=|:[ \t]+)[ \t]*"
        r"(?P<secret>[^\s\"'\\{}<>$%()\[\],;.:]{6,128})[ \t]*(?=\r?(?:\n|\Z)|#)",
        _PASSWORD_KEYS, entropy=2.0, case=False, mixed=True,
        examples=("DB_PASSWORD=¦hunter2\n", "  password: ¦q9LmXvZ8\n", "export ADMIN_PWD=¦S3cure!pass9"),
        not_examples=("    password = self.password1\n", "password: str\n", "password = md5_password\n", "password=None"),
    ),
    SecretKind(
        "password-in-words",
        rf"{_PASSWORD_WORD}\s*(?:\bis\b|\bwas\b|为|是|：|:)\s*[\"'“「`]?(?P<secret>(?=[^\s\"'`]*\d)[A-Za-z0-9!@#%^&*+\-]{{6,64}})(?![\w(.=\[])",
        _PASSWORD_KEYS, entropy=2.0, case=False, mixed=True,
        examples=("the db password is ¦hunter2", "密码是¦hunter2", "口令：¦q9LmXvZ8"),
        not_examples=("the password is required", "password is 8 characters", "password: sha256("),
    ),
    SecretKind(
        "passphrase",
        rf"{_PASSWORD_WORD}\d?{_ASSIGNED}(?P<q>[\"']?)(?P<secret>[a-z0-9]{{3,}}(?:-[a-z0-9]{{2,}}){{2,}})(?P=q)(?![\w.(\[-])",
        _PASSWORD_KEYS, case=False, words=True,
        examples=("password=¦correct-horse-battery", "passphrase: \"¦tiger-lily-garden-73\""),
        not_examples=("password = a-b-c", "password: my-password-file", "password=reset-user-name-field"),
    ),
    SecretKind(
        "password-variable",
        r"(?:^|[\n;&\s])(?:[A-Z0-9]+_){0,6}(?:PASSWORD|PASSWD|PASSPHRASE|PWD|PASS)\d?=(?P<q>[\"']?)"
        r"(?P<secret>[^\s\"'\\{}<>$()`,;/][^\s\"'\\{}<>$()`,;]{5,127})(?P=q)(?=\s|\Z|[;&])",
        ("PASSWORD=", "PASSWD=", "PASSPHRASE=", "PWD=", "_PASS="), entropy=1.9, words=True,
        examples=("DB_PASSWORD=¦tigerlily\n", "ENV MYSQL_ROOT_PASSWORD=¦tiger_lily_7", "- REDIS_PASS=¦silver.river"),
        not_examples=("OLDPWD=/home/me/src", "DB_PASSWORD=${PW}", "PASSWORD=changeme", "DB_PASSWORD=db_password", "PASSWORD=None"),
    ),
    SecretKind(
        "password-element",
        rf"<(?:[\w.-]+:)?[\w.-]{{0,40}}{_PASSWORD_WORD}>\s*(?P<secret>[^\s<>{{}}$]{{6,128}})\s*</", _PASSWORD_KEYS, entropy=1.9,
        case=False, words=True,
        examples=("<password>¦tiger.lily</password>", "<db:Password>¦q9LmXvZ8</db:Password>"),
        not_examples=("<password>password</password>", "<password>${db.password}</password>", "<password>string</password>"),
    ),
    SecretKind(
        "pgpass-line", r"(?:^|\n)[^\s:#]{1,80}:(?:5432|\*):[^\s:]{1,64}:[^\s:]{1,64}:(?P<secret>[^\s:]{4,128})[ \t]*(?=\r?(?:\n|\Z))",
        (":5432:", ":*:"), entropy=1.5, words=True,
        examples=("db.internal:5432:app:app:¦tigerlily\n", "*:*:*:bot:¦q9LmXvZ8"), not_examples=("db:5432:app:user:password",),
    ),
    SecretKind(
        "password-setting",
        rf"{_BEFORE}[\"']?[A-Za-z0-9_.\-]{{0,60}}?(?:{_PASSWORD_WORD}|[_.\-]pass|(?<![\w.\-])pass)\d?[\"']?[ \t]*(?:=|:[ \t]+|:(?=[\"']))[ \t]*(?P<q>[\"']?)"
        rf"(?P<secret>[^\s\"'\\{{}}<>$,;/!&*|][^\s\"'\\{{}}<>$,;]{{5,127}})(?P=q)(?:{_LINE_END}|[ \t]*(?=[,;}}\]]))",
        (*_PASSWORD_KEYS, "_pass", ".pass", "-pass", "pass =", "pass=", "pass:"), entropy=2.2, case=False, words=True, config=True,
        examples=("password: ¦tigerlily\n", "spring.datasource.password=¦silver_river\n", "{\"password\": \"¦tiger.lily\"}", "smtp_pass = ¦goldfinch", "pass = ¦goldfinch"),
        not_examples=("password: required\n", "password: db_password\n", "show_password: true\n", "password: /run/secrets/db\n",
                      "password_hash: tigerlily\n", "password: !vault\n", "{\"password\": \"string\"}"),
    ),
    SecretKind(
        "registry-auth",
        r"(?:_auth(?:Token)?[ \t]*=[ \t]*[\"']?|\"(?:auth|identitytoken)\"\s*:\s*\")(?P<secret>[A-Za-z0-9+/_.\-]{16,512}={0,2})(?=[\"'\s]|\Z)",
        ("_auth=", "_auth =", "_authToken", "\"auth\"", "\"identitytoken\""), entropy=3.2, case=False, mixed=True,
        examples=("//registry.npmjs.org/:_authToken=¦R7dKq2Lm-9TzB-4nWc-8YhJ3sPf6GuE", "{\"auth\": \"¦Ym90OnE5TG1Ydlo4ZjNrVA==\"}"),
        not_examples=("_authToken=${NPM_TOKEN}", "\"auth\": \"oauth2_client_credentials\"", "use_auth = basic_and_digest_2"),
    ),
    SecretKind(
        "query-password", r"[?&](?:ssl)?(?:password|passwd|pwd)=(?P<secret>[^&\s\"'<>{}$;#]{4,128})", ("password=", "passwd=", "pwd="), entropy=1.9,
        case=False, mixed=True, words=True, examples=("jdbc:postgresql://db/x?user=app&password=¦hunter2x",),
        not_examples=("/login?password=password1", "x?user=a&password=%s", "?password={pw1}"),
    ),
    SecretKind(
        "query-token", r"[?&](?:access_token|auth_?token|api_?key|client_secret|token|sig)=(?P<secret>[A-Za-z0-9%+/_=~.\-]{16,512})",
        ("token=", "key=", "secret=", "sig="), entropy=3.5, case=False, mixed=True,
        examples=("https://api.corp/v1?api_key=¦R7dKq2LmXv9TzB4nWc8Y", "https://x/a.zip?se=2031&sig=¦R7dKq2LmXv9TzB4nWc8YhJ3s%3D"),
        not_examples=("?token=next_page_token_of_2", "?access_token=your_access_token_1"),
    ),
    SecretKind(
        "key-of-32-bytes", r"(?<!public)(?<!public[_-])key\d?[\"']?\s*[=:]\s*b?[\"']?(?P<secret>[A-Za-z0-9_+/\-]{43}=)(?![\w=+/])", ("key",), entropy=4.2,
        case=False, mixed=True, examples=("FERNET_KEY = b\"¦x9kT3sWn4RcYhJpD1bGuE7xq9LmXvZ8f3kT2sWn4RcY=\"",),
        not_examples=("PublicKey = x9kT3sWn4RcYhJpD1bGuE7xq9LmXvZ8f3kT2sWn4RcY=",),
    ),
    SecretKind(
        "django-secret", r"SECRET_KEY[\"']?\s*[=:]\s*[\"'](?P<secret>[^\s\"'\\{}<>]{32,128})[\"']", ("SECRET_KEY",), entropy=4.0, mixed=True,
        examples=("SECRET_KEY = '¦x9%4fq@k2(v!m3^z&w7*e1-r5+t8=y0$u6h2j4l8p'",), not_examples=("SECRET_KEY = 'django-insecure-change-me-in-production'",),
    ),
    SecretKind(
        "secret-value",
        rf"{_SECRET_WORD}{_NAME}{_ASSIGNED}[urbURB]?(?P<q>[\"'])(?P<secret>[A-Za-z0-9_+/=.~\-]{{16,512}})(?P=q)(?![.\w])",
        ("key", "secret", "token", "credential"), entropy=3.6, case=False, mixed=True,
        examples=("API_KEY = \"¦R7dKq2LmXv9TzB4nWc8Y\"", "client_secret: '¦8f3a9c1b7d5e2f4a6c8b0d9e'"),
        not_examples=("token = 'next_page_token'", "secret_name = \"projects/x/secrets/y\"", "token_url = 'https://x.y/oauth2/token'"),
    ),
    SecretKind(
        "secret-line",
        rf"(?:^|\n)[ \t]*(?:(?:export|set|ENV|ARG|-e|-)[ \t]+)?[A-Za-z0-9_.\-]{{0,40}}?{_SECRET_WORD}[A-Za-z0-9_]*[ \t]*(?:=|:[ \t]+)[ \t]*"
        r"(?P<secret>(?=[^\s]*\d)[A-Za-z0-9_+/=~\-]{16,512})[ \t]*(?=\r?(?:\n|\Z)|#)",
        ("key", "secret", "token", "credential"), entropy=3.6, case=False, mixed=True,
        examples=("SERVICE_TOKEN=¦R7dKq2LmXv9TzB4nWc8Y\n", "DD_API_KEY=¦8d17fb56a8d17fb56a218de30d77592a\n", "  api_key: ¦8f3a9c1b7d5e2f4a6c8b0d9e\n"),
        not_examples=("    token = next_token_of_stream_2\n", "secret_key: Optional\n"),
    ),
)  # fmt: skip
