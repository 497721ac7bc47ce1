"""The seed's list of read-only terminal commands (16.3.4), row by row, as typed and with everyday
arguments."""

from __future__ import annotations

import pytest

from jackstay.policy.shell import analyse_command

ACCEPTED = {
    "cat": ["cat", "cat README.md", "cat -n src/main.py"],
    "ls": ["ls", "ls -la src", "ls -lt *.py"],
    "head": ["head", "head -n 20 app.log", "head -5 a b"],
    "tail": ["tail", "tail -n 50 app.log", "tail -100 app.log"],
    "grep": ["grep", "grep -rn TODO src", "grep -i error app.log"],
    "find": ["find", "find . -name '*.py'", "find src -type f -mtime -1"],
    "stat": ["stat", "stat README.md", "stat -c %s a.bin"],
    "df": ["df", "df -h", "df -h /var"],
    "du": ["du", "du -sh .", "du -d 1 -h src"],
    "ps": ["ps", "ps aux", "ps -ef"],
    "which": ["which", "which python3", "which -a git"],
    "systemctl status": ["systemctl status", "systemctl status nginx", "systemctl status nginx --no-pager"],
    "journalctl": ["journalctl", "journalctl -u nginx -n 50", "journalctl --since '1 hour ago' --no-pager"],
    "docker ps": ["docker ps", "docker ps -a", "docker ps --format '{{.Names}}'"],
    "docker images": ["docker images", "docker images -q", "docker images nginx"],
    "podman ps": ["podman ps", "podman ps -a", "podman ps --format json"],
    "podman images": ["podman images", "podman images -a", "podman images --quiet"],
    "curl -I": ["curl -I", "curl -I https://example.org", "curl -sI https://example.org/x"],
    "wget --spider": [
        "wget --spider",
        "wget --spider https://example.org",
        "wget -q --spider https://example.org/f",
    ],
    "dig": ["dig", "dig example.org", "dig +short example.org MX"],
    "nslookup": ["nslookup example.org", "nslookup -type=mx example.org", "nslookup example.org 1.1.1.1"],
    "ip addr": ["ip addr", "ip addr show", "ip addr show dev eth0"],
    "git status": ["git status", "git status -s", "git status --porcelain"],
    "git log": ["git log", "git log --oneline -5", "git log -p -1 -- README.md"],
    "git diff": ["git diff", "git diff --stat", "git diff HEAD~1 -- src"],
    "nvidia-smi": ["nvidia-smi", "nvidia-smi -L", "nvidia-smi --query-gpu=name --format=csv"],
}
REFUSED = {
    "git push": ["git push", "git push origin main", "git push --force"],
    "git commit": ["git commit", "git commit -m x", "git commit --amend"],
    "git merge": ["git merge", "git merge feature", "git merge --abort"],
    "git reset": ["git reset", "git reset --hard", "git reset HEAD~1"],
    "docker run": ["docker run", "docker run alpine", "docker run --rm -it alpine sh"],
    "docker rm": ["docker rm", "docker rm web", "docker rm -f web"],
    "docker build": ["docker build", "docker build .", "docker build -t app ."],
    "podman run": ["podman run", "podman run alpine", "podman run --rm -it alpine sh"],
    "podman rm": ["podman rm", "podman rm web", "podman rm -f web"],
    "podman build": ["podman build", "podman build .", "podman build -t app ."],
    "systemctl start": ["systemctl start", "systemctl start nginx", "systemctl start --now nginx"],
    "systemctl stop": ["systemctl stop", "systemctl stop nginx", "systemctl --user stop x"],
    "systemctl restart": [
        "systemctl restart",
        "systemctl restart nginx",
        "systemctl --no-pager restart nginx",
    ],
}


@pytest.mark.parametrize("row", ACCEPTED)
def test_the_seed_allows(row):
    assert [
        (one, analyse_command(one).reason) for one in ACCEPTED[row] if not analyse_command(one).read_only
    ] == []


@pytest.mark.parametrize("row", REFUSED)
def test_the_seed_blocks(row):
    assert [one for one in REFUSED[row] if analyse_command(one).read_only] == []
