"""What keeps a host from being taken down while other stacks' demos stand on it."""

from __future__ import annotations

from models.host import Host


def nobody_else(host: Host, stack: str, project: str = "berth") -> str:
    """A shell script that fails, naming them, if entries of other stacks are in the repository.

    The owner of an entry stands in its marker, see `host/model_entry.py`.
    """
    return f"""\
others=
for entry in {host.repository}/*/; do
  [ -d "$entry" ] || continue
  owner=$(sed -n 's/.*"owner": "\\([^"]*\\)".*/\\1/p' "$entry.berth-owner.json" 2>/dev/null || true)
  case "$owner" in {project}/{stack}/*) ;; *)
    others="$others $(basename "$entry") (${{owner:-not made by Berth}})" ;;
  esac
done
[ -z "$others" ] && exit 0
echo "other demos stand on this host:$others" >&2
echo "  They would lose their servers, so nothing of it is taken down." >&2
echo "  Fix: pulumi destroy their stacks first (owners are project/stack/demo)." >&2
exit 1
"""
