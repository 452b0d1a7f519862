#!/usr/bin/env bash
# What the Makefile needs from the system: a Python with venv, a Vulkan driver, a Chromium.
#   setup.sh venv PYTHON DIR                  make DIR, or say what is missing
#   setup.sh vulkan PYTHON required|optional  find a Vulkan adapter, or install the software driver;
#                                             without one: exit 1 when required, 0 when optional
#   setup.sh browser                          find a Chromium, or install it; without one: exit 1
# Debian packages are installed only where root is at hand without a question.
set -euo pipefail

as_root=()

have_root() {
  if [ "$(id -u)" = 0 ]; then return; fi
  if command -v sudo >/dev/null && sudo -n true 2>/dev/null; then as_root=(sudo -n); return; fi
  return 1
}

apt_install() {
  command -v apt-get >/dev/null && have_root || return 1
  echo "installing the Debian packages $*" >&2
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive
    apt-get -qq -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0)
  "${apt[@]}" update >/dev/null || true    # one stale source must not stop the rest: install decides
  "${apt[@]}" install -y --no-install-recommends "$@" >/dev/null
}

by_hand() {
  if command -v apt-get >/dev/null; then
    echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends $*" >&2
  else
    echo "  with your system's package manager (on Debian: $*)" >&2
  fi
}

make_venv() {
  local python=$1 dir=$2 version
  if ! command -v "$python" >/dev/null; then
    echo "error: there is no '$python'; convdsl needs Python 3.11 or newer: make PYTHON=python3.12 ..." >&2
    return 1
  fi
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
  if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "error: '$python' is Python $version; convdsl needs 3.11 or newer: make PYTHON=python3.12 ..." >&2
    return 1
  fi
  if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
    if ! apt_install "python$version-venv" || ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
      echo "error: '$python' cannot make virtual environments; install its venv package:" >&2
      by_hand "python$version-venv"
      return 1
    fi
  fi
  echo "making $dir with Python $version" >&2
  "$python" -m venv --clear "$dir"
}

# Prints the first adapter. Linux is asked for Vulkan: its OpenGL adapters lack what the tests need.
adapter() {
  "$1" - 2>/dev/null <<'PY'
import sys
import wgpu
backend = {"darwin": "Metal", "win32": "D3D12"}.get(sys.platform, "Vulkan")
for found in wgpu.gpu.enumerate_adapters_sync():
    if found.info["backend_type"] == backend:
        print(f"adapter: {found.info['device']} ({backend})")
        sys.exit(0)
sys.exit(1)
PY
}

find_vulkan() {
  local python=$1 need=$2 packages=(libvulkan1 mesa-vulkan-drivers)
  if adapter "$python"; then return; fi
  if [ "$(uname)" = Linux ]; then
    if apt_install "${packages[@]}" && adapter "$python"; then return; fi
    echo "no Vulkan adapter was found; to add the software driver, run:" >&2
    by_hand "${packages[@]}"
  else
    echo "no adapter was found" >&2
  fi
  if [ "$need" = required ]; then return 1; fi
  echo "going on without it: WGSL is compiled but not run" >&2
}

find_browser() {
  local name
  for name in chromium chromium-browser google-chrome; do
    if command -v "$name"; then return; fi
  done
  if apt_install chromium && command -v chromium; then return; fi
  echo "no Chromium was found; to add it, run:" >&2
  by_hand chromium
  return 1
}

case "${1-}:$#" in
  venv:3) make_venv "$2" "$3" ;;
  browser:1) find_browser ;;
  vulkan:3) find_vulkan "$2" "$3" ;;
  *) sed -n '2,7s/^# \{0,1\}//p' "$0" >&2; exit 2 ;;
esac
