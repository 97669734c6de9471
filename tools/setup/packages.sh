# shellcheck shell=bash
# Installing Debian packages. Sourced after terminal.sh; logs go to $build/logs.

as_root=()

# Sets as_root to what turns a command into root's; fails if only a password would help.
can_install() {
  if (($(id -u) == 0)); then
    as_root=()
  elif type -P sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root=(sudo -n)
  else
    return 1
  fi
}

apt_get() {
  # Ubuntu's unattended upgrades may hold dpkg's lock just after boot: wait for them.
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive "${uninterrupted[@]}" \
    apt-get -o DPkg::Lock::Timeout=180 -o Acquire::Retries=2 "$@"
}

download_and_install() {
  local uninterrupted=()
  # A broken third-party source fails the update, yet Debian's own lists may be fine: let the installation decide.
  apt_get update || true
  apt_get install -y --no-install-recommends --download-only "$@" || return
  # Ctrl-C in the middle of dpkg would leave half-installed packages, which block every later apt-get: from here on it
  # waits for the end. Ignoring the signal is not enough, apt-get has a handler; a session of its own never gets it.
  trap '' INT
  uninterrupted=(setsid --wait)
  apt_get install -y --no-install-recommends "$@"
}

# The line that a person with the right to install can type.
line_to_type() {
  local install="apt-get update && apt-get install -y --no-install-recommends $*"
  if type -P sudo >/dev/null; then
    printf '%s' "sudo sh -c '$install'"
  else
    printf '%s' "su -c '$install'"
  fi
}

install_packages() {
  local log="$build/logs/packages.log"
  type -P apt-get >/dev/null ||
    refuse "missing: $*. These are Debian's names: install them with this system's own package manager, then try again."
  can_install || refuse "missing packages. Install them with this line, then try again:"$'\n'"  $(line_to_type "$@")"
  say "installing Debian's packages $*"
  if ! logged 'installing packages' "$log" download_and_install "$@"; then
    show_log_tail "$log"
    fail "could not install $*. Is there a network? The course needs Debian 12, Ubuntu 22.04 or newer."
  fi
}
