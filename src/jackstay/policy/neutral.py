"""In which environment does a command that was judged read-only only read?

What a text says is not all that runs: git starts pagers, file-system monitors, external diffs and filters that
its configuration names, bash sources BASH_ENV, others read their options from variables. Commands judged
read-only run without any of it.
"""

from collections.abc import Iterable, Mapping

FIXED_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/opt/homebrew/bin"

# Variables that make a program run or write something its words do not say.
_CLEARED = frozenset({
    "BASH_ENV", "ENV", "PROMPT_COMMAND", "SHELLOPTS", "BASHOPTS", "CDPATH", "GLOBIGNORE", "IFS", "PS4",
    "BASH_XTRACEFD", "FPATH", "LESSOPEN", "LESSCLOSE", "LESS", "LESSKEY", "LESSKEYIN", "MORE", "MANPAGER",
    "MANOPT", "BROWSER", "EDITOR", "VISUAL", "RIPGREP_CONFIG_PATH", "GREP_OPTIONS", "TAR_OPTIONS", "GZIP",
    "BZIP2", "XZ_OPT", "XZ_DEFAULTS", "ZSTD_CLEVEL", "JQ_LIB_DIR", "AWKPATH", "AWKLIBPATH", "BAT_PAGER",
    "BAT_CONFIG_PATH", "DELTA_PAGER", "SYSTEMD_PAGER", "SYSTEMD_EDITOR", "PSQLRC", "PSQL_PAGER",
    "DOCKER_CONFIG", "KUBECONFIG", "CURL_HOME", "WGETRC", "SSH_ASKPASS", "SUDO_ASKPASS", "SSH_AUTH_SOCK",
    "GPG_AGENT_INFO", "NODE_OPTIONS", "NODE_PATH", "RUBYOPT", "RUBYLIB", "PERL5OPT", "PERL5LIB", "PERL5DB",
    "JAVA_TOOL_OPTIONS", "_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "GCONV_PATH", "LOCPATH", "NLSPATH",
    "MAILPATH", "TERMINFO", "TERMINFO_DIRS", "TERMCAP",
})  # fmt: skip
_CLEARED_PREFIXES = (
    "GIT_",
    "LD_",
    "DYLD_",
    "BASH_FUNC_",
    "PYTHON",
    "NPM_CONFIG_",
    "npm_config_",
    "PIP_",
    "CARGO_",
)

_SET = {
    "PATH": FIXED_PATH,
    "PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "",
    "GIT_PAGER": "cat",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "GIT_EDITOR": "true",
    "GIT_SSH_COMMAND": "ssh -o BatchMode=yes",
    "GIT_ALLOW_PROTOCOL": "file:git:http:https:ssh",  # not ext, which runs its address
    # Other programs that run what the files around them name.
    "HGRCSKIPREPO": "1",
    "YARN_IGNORE_PATH": "1",
    "npm_config_ignore_pnpmfile": "true",
    "npm_config_ignore_scripts": "true",
    "RUSTC": "rustc",
    "RUSTC_WRAPPER": "",
    "RUSTC_WORKSPACE_WRAPPER": "",
    "GOTOOLCHAIN": "local",
}

# An external diff gets path, old file, hex, mode, new file, hex, mode; this one only compares.
_PLAIN_DIFF = """sh -c 'diff -u "$1" "$4" || :'"""
_GIT_ALWAYS = {
    "core.fsmonitor": "false", "core.pager": "cat", "core.hooksPath": "/dev/null", "credential.helper": "",
    "help.format": "man", "log.showSignature": "false",
    # A sub-module has settings of its own, and git looks into it with those.
    "diff.ignoreSubmodules": "dirty", "diff.submodule": "short", "status.submoduleSummary": "false",
}  # fmt: skip
# Settings that name programs, by section and last word; "*" stands for every other one of the section.
_GIT_PROGRAMS: dict[str, dict[str, str]] = {
    "core": {
        "sshcommand": "ssh -o BatchMode=yes", "gitproxy": "", "askpass": "true", "alternaterefscommand": "true",
        "editor": "true",
    },
    "diff": {"external": _PLAIN_DIFF, "command": _PLAIN_DIFF, "textconv": "cat"},
    "filter": {"clean": "", "smudge": "", "process": "", "required": "false"},
    "gpg": {"program": "true", "defaultkeycommand": "true"},
    "remote": {"vcs": ""},
    "credential": {"helper": ""},
    "alias": {"*": ""},
    "pager": {"*": "false"},
    "man": {"cmd": "man", "path": "man"},
    "browser": {"cmd": "true", "path": "true"},
    "submodule": {"ignore": "dirty"},
}  # fmt: skip


def neutral_environment(base: Mapping[str, str], git_keys: Iterable[str] = ()) -> dict[str, str]:
    """The environment for a command judged read-only, made from the one at hand.

    `git_keys` are those of the repositories at hand (`ward.gitconfig.program_keys`): settings that
    name programs are overridden by ones that only read.
    """
    kept = {
        name: value
        for name, value in base.items()
        if name not in _CLEARED and not name.startswith(_CLEARED_PREFIXES)
    }
    return {**kept, **_SET, **_git_overrides(git_keys)}


def _git_overrides(git_keys: Iterable[str]) -> dict[str, str]:
    settings = dict(_GIT_ALWAYS)
    pairs: dict[str, str] = {}
    for key in git_keys:
        ending = key.rpartition(".")[2].lower()
        programs = _GIT_PROGRAMS.get(key.partition(".")[0].lower(), {})
        value = programs.get(ending, programs.get("*"))
        if value is not None:
            settings[key] = value
        if ending == "uploadpack":  # the first of several counts, so that it cannot be overridden
            pairs["GIT_ALLOW_PROTOCOL"] = "git:http:https"
    pairs["GIT_CONFIG_COUNT"] = str(len(settings))
    for number, (key, value) in enumerate(settings.items()):
        pairs[f"GIT_CONFIG_KEY_{number}"], pairs[f"GIT_CONFIG_VALUE_{number}"] = key, value
    return pairs
