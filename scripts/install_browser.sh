#!/bin/sh
# Finds Chromium, or installs Debian's; says how where it cannot.
for name in chromium chromium-browser google-chrome; do
  command -v "$name" >/dev/null 2>&1 && exit 0
done
sudo=""
[ "$(id -u)" = 0 ] || sudo="sudo -n"
if command -v apt-get >/dev/null 2>&1 && $sudo true 2>/dev/null; then
  $sudo apt-get update -qq && $sudo apt-get install -y -qq chromium >/dev/null && exit 0
fi
echo "expected Chromium for the browser tests, found none and could not install it." >&2
echo "Install the package 'chromium' (Debian, Ubuntu) or Google Chrome, then run make again." >&2
exit 1
