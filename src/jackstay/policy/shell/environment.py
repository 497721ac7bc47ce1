"""Does setting this variable change which code a reader runs, or where it reads from?

Only listed programs are ever accepted, so the variables that matter are those the listed programs and the
shell listen to.
"""

from __future__ import annotations

from typing import Final

_HARMLESS: Final = frozenset(
    ("LANG", "LANGUAGE", "TZ", "COLUMNS", "LINES", "NO_COLOR", "CLICOLOR", "CLICOLOR_FORCE", "FORCE_COLOR",
     "GREP_COLOR", "GREP_COLORS", "LS_COLORS", "GIT_OPTIONAL_LOCKS", "GIT_TERMINAL_PROMPT", "BLOCKSIZE",
     "BLOCK_SIZE", "DU_BLOCK_SIZE", "DF_BLOCK_SIZE", "TIME_STYLE", "QUOTING_STYLE", "POSIXLY_CORRECT",
     "SYSTEMD_COLORS", "TIMEFORMAT", "REPLY", "PIP_NO_INPUT", "HISTTIMEFORMAT",
     "PIP_DISABLE_PIP_VERSION_CHECK", "HOMEBREW_NO_AUTO_UPDATE", "CI", "TERM")
)  # fmt: skip
_POWERFUL: Final = frozenset(
    ("PATH", "ENV", "IFS", "PS0", "PS1", "PS2", "PS3", "PS4", "BASHOPTS", "SHELLOPTS", "HOME", "ZDOTDIR",
     "SHELL", "PWD", "OLDPWD", "TMPDIR", "CDPATH", "GLOBIGNORE", "FIGNORE", "EXECIGNORE", "INPUTRC",
     "FCEDIT", "FUNCNEST", "COPROC", "DIRSTACK", "PROMPT_COMMAND", "PROMPT_DIRTRIM", "HISTFILE",
     "HISTCONTROL", "HISTIGNORE", "HISTSIZE", "HISTFILESIZE", "MAIL", "MAILPATH", "MAILCHECK",
     "command_not_found_handle", "BASH", "histchars", "MANPATH", "MANPAGER", "MANOPT", "MANROFFOPT",
     "MANSECT", "MANLESS", "INFOPATH", "CLASSPATH", "GCONV_PATH", "LOCPATH", "LOCALE_ARCHIVE", "NLSPATH",
     "TERMINFO", "TERMINFO_DIRS", "TERMCAP", "VISUAL", "BROWSER", "MORE", "PAGER", "EDITOR", "AWKPATH",
     "AWKLIBPATH", "LIBPATH", "SHLIB_PATH", "CPATH", "LIBRARY_PATH", "COMPILER_PATH", "C_INCLUDE_PATH",
     "MODULEPATH", "QT_PLUGIN_PATH", "PKG_CONFIG_PATH", "PKG_CONFIG_LIBDIR", "MAGIC", "GREP_OPTIONS", "TAPE",
     "RSH", "GZIP", "BZIP", "BZIP2", "XZ_OPT", "XZ_DEFAULTS", "UNZIP", "UNZIPOPT", "ZIPINFO", "ZIPINFOOPT",
     "WGETRC", "PSQLRC", "ACKRC", "SCREENRC", "SCREENDIR", "TIGRC", "CC", "CXX", "CPP", "CFLAGS", "CXXFLAGS",
     "LDFLAGS", "MAKE", "MAKEFLAGS", "MAKEFILES", "MFLAGS", "HOSTALIASES", "RES_OPTIONS", "LOCALDOMAIN",
     "RANDOM", "SRANDOM", "BASHPID", "HISTCMD", "OPTIND",  # assigning evaluates the value
     "DISPLAY", "KUBECONFIG", "_JAVA_OPTIONS", "JAVA_HOME", "EXINIT", "GOFLAGS", "GOPATH", "GOROOT", "GOBIN",
     "GOPROXY", "GOENV", "GOOS", "GOARCH", "GOTOOLCHAIN", "GOCACHE", "GOMODCACHE", "GOWORK", "GOVCS",
     "GOPRIVATE", "GOSUMDB", "GOINSECURE", "GOEXPERIMENT", "GOTMPDIR", "GO111MODULE", "GODEBUG", "COLORDIFF",
     "DIFF_OPTIONS", "DIFFPROG", "FORCE_SOURCE_DATE", "LSOF_", "VAULT_ADDR")
)  # fmt: skip
_FAMILIES: Final = (
    "LD_", "DYLD_", "BASH_", "LESS", "MAN_", "GIT_", "SSH_", "GPG", "GNUPG", "PYTHON", "PERL", "RUBY",
    "GEM_", "BUNDLE_",
    "NODE_", "NPM_", "npm_", "YARN_", "PNPM_", "JAVA_", "JDK_", "MAVEN_", "GRADLE_", "LUA_", "PHP", "R_",
    "CGO_", "CARGO_",
    "RUST", "TAR_", "ZSTD_", "RIPGREP_", "ACK_", "AWK_", "FZF_", "BAT_", "JQ_", "RESOLV_", "MALLOC_",
    "GLIBC_", "CURL_",
    "SYSTEMD_", "PG", "MYSQL_", "SQLITE_", "REDISCLI_", "DOCKER_", "COMPOSE_", "CONTAINER_", "CONTAINERS_",
    "PODMAN_",
    "KUBE_", "KUBECTL_", "KUBERNETES_", "HELM_", "TF_", "AWS_", "AZURE_", "GOOGLE_", "CLOUDSDK_", "GH_",
    "GITHUB_",
    "GITLAB_", "GLAB_", "PIP_", "UV_", "POETRY_", "CONDA_", "HOMEBREW_", "APT_", "DPKG_", "RPM_", "DEB_",
    "DEBCONF_",
    "XDG_", "DBUS_", "WAYLAND_", "SUDO_", "OPENSSL_", "SSL_", "PS_", "LIBPROC", "W3M_", "EMACS", "VIM",
    "NVIM_", "TMUX",
    "LIBVIRT_", "VAGRANT_", "ANSIBLE_", "DIFF_", "LC_ALL_", "pipe_",
)  # fmt: skip
_ENDINGS: Final = (
    "PAGER",
    "EDITOR",
    "_PRELOAD",
    "_OPTS",
    "_OPTIONS",
    "PROXY",
    "proxy",
    "_LIBRARY_PATH",
    "_PYTHON_PATH",
)
_SCRATCH: Final = frozenset(
    ("FOO", "BAR", "BAZ", "QUX", "MYVAR", "VAR", "NAME", "MSG", "FILE", "DIR", "COUNT")
)  # fmt: skip
"""Upper-case names people use for their own values; no listed program reads them."""


def power_of(name: str, *, exported: bool) -> str | None:
    """Say why setting a variable may change what runs, or None.

    An exported variable has to be known to be harmless. One that is only set in the shell reaches other
    programs
    when it was exported before, so the names they listen to are refused there too.
    """
    if name in _HARMLESS or name.startswith("LC_"):
        return None
    if name in _POWERFUL or name.startswith(_FAMILIES) or name.endswith(_ENDINGS):
        return f"sets {name}, which can change what runs"
    if exported and not (name.islower() or len(name) == 1 or name in _SCRATCH):
        return f"hands {name} to the program, and it is not known what that changes"
    return None
